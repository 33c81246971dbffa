/* kinds.h - strategies by their names, with options of their own, as the command line would have them. */
#ifndef TESTS_TRAINER_KINDS_H
#define TESTS_TRAINER_KINDS_H

#include "tests/check.h"
#include "trainer/strategies/strategy.h"

#include <stdlib.h>
#include <string.h>

/* NULL: there is none of that name. */
static inline const struct strategy_kind *kind_of(const char *name)
{
    for (size_t i = 0; strategy_kinds[i]; i++)
        if (!strcmp(name, strategy_kinds[i]->name))
            return strategy_kinds[i];
    return NULL;
}

/* A value for an option of that name, of any strategy; ends with a name of NULL. */
struct kind_setting {
    const char *name, *text; /* text: of a choice; NULL: a number */
    int64_t number;          /* or a flag */
};

/* Gives options->own the kind's defaults, then the settings of options that the kind has. */
static inline void kind_set(struct strategy_options *options, const struct kind_setting *settings)
{
    struct option rows[STRATEGY_ROWS];
    const size_t count = options->kind->options ? options->kind->options(rows, options->own.bytes) : 0;

    for (; settings->name; settings++)
        for (size_t i = 0; i < count; i++) {
            if (strcmp(rows[i].name, settings->name) != 0)
                continue;
            if (rows[i].kind == OPTION_CHOICE || rows[i].kind == OPTION_TEXT)
                *(const char **)rows[i].value = settings->text;
            else if (rows[i].kind == OPTION_FLAG)
                *(int *)rows[i].value = (int)settings->number;
            else
                *(int64_t *)rows[i].value = settings->number;
        }
    if (options->kind->resolve)
        options->kind->resolve(options);
}

#endif
