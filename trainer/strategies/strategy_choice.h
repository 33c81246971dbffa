/*
 * strategy_choice.h - the strategies on a command line: --run-option, which chooses one, and the options that each has
 * of its own, from the table of kinds. An option that several strategies have is one row, and the chosen one gets its
 * value; one that the chosen strategy does not have is refused if it was given, since it would do nothing.
 *
 *   struct strategy_choice c;              strategy_choice_init(&c, strategy_kinds);
 *   count += strategy_choice_rows(&c, table + count);         parse
 *   strategy_choice_resolve(&c, &parsed, &options, e);
 *
 * Pure. The rows point into the struct, which must not move from then on.
 */
#ifndef TRAINER_STRATEGIES_STRATEGY_CHOICE_H
#define TRAINER_STRATEGIES_STRATEGY_CHOICE_H

#include "base/error.h"
#include "base/program/options.h"
#include "trainer/strategies/strategy.h"

#include <stddef.h>

enum { STRATEGY_CHOICE_ROWS = 1 + STRATEGY_KINDS * STRATEGY_ROWS };

struct strategy_choice {
    const struct strategy_kind *const *kinds; /* ends with NULL; at most STRATEGY_KINDS; the first is the default */
    const char *name;                         /* as given */
    char names[128], help[640];               /* of --run-option */
    struct strategy_own own[STRATEGY_KINDS];
    struct option rows[STRATEGY_KINDS][STRATEGY_ROWS];
    size_t counts[STRATEGY_KINDS];
};

/* Gives all options their defaults. */
void strategy_choice_init(struct strategy_choice *c, const struct strategy_kind *const *kinds);

/* Appends --run-option and the strategies' own options to a table, which has room for STRATEGY_CHOICE_ROWS. Returns how
 * many they are. */
size_t strategy_choice_rows(struct strategy_choice *c, struct option *table);

/* After the command line was read into `parsed`: sets kind, own, fingerprint, synchronous and label of *out, and all
 * else to 0. ERR_ARG, naming the strategies that take the option. */
int strategy_choice_resolve(struct strategy_choice *c, const struct options *parsed, struct strategy_options *out,
                            struct error *e);

#endif
