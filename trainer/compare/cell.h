/*
 * cell.h - the cells of a comparison: each strategy, with options of its own, on each number of workers. Pure.
 *
 * A strategy is written NAME[:OPTION[=VALUE]]...: ps:async:staleness=2 is --run-option ps --async --staleness 2. The
 * names are those of the table of strategies; the options are checked by the trainer's own command line.
 */
#ifndef TRAINER_COMPARE_CELL_H
#define TRAINER_COMPARE_CELL_H

#include "base/error.h"

#include <stddef.h>

enum { CELL_TEXT = 96, CELL_WORDS = 24, CELLS_MOST = 512, CELL_WORKERS_MOST = 4096 };

struct cell {
    char strategy[CELL_TEXT]; /* as written: "ps:async" */
    int workers;
    char name[CELL_TEXT + 16]; /* of its directory, and so of its curves: "ps-async-4" */
};

/* The words of its command line that choose the strategy; they point into the struct. */
struct cell_words {
    char text[2 * CELL_TEXT + 32];
    const char *words[CELL_WORDS];
    size_t count;
};

/* Reads "mpi,ps:async" and "1,2,4". names: of all strategies, NULL at the end. ERR_ARG: an unknown name (the nearest is
 * suggested), a number that is none, or something that is there twice. On OK *out is yours: free() it. */
int cells_parse(struct cell **out, size_t *count, const char *strategies, const char *ranks, const char *const *names,
                struct error *e);

/* "--run-option", "ps", "--async", and so on. ERR_ARG: too many. */
int cell_words(const struct cell *c, struct cell_words *out, struct error *e);

/* Which of `count` cells comes at this place (from 0) of this round (from 1) of `rounds`: each round begins further
 * on, so that none is always the first or the last. */
size_t cell_turn(size_t count, int rounds, int round, size_t place);

#endif
