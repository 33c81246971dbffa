/*
 * tally.h - the results of a step: each worker's part, the sum of all parts, and whether another step follows. Pure.
 */
#ifndef TRAINER_COLLECTIVE_TALLY_H
#define TRAINER_COLLECTIVE_TALLY_H

#include "base/batch.h"

#include <stdint.h>

enum tally_flag {
    TALLY_STOP = 1,  /* end after this step, with a checkpoint */
    TALLY_SAVE = 2,  /* write a checkpoint after this step */
    TALLY_BAD = 4,   /* the loss is not finite: end after this step, without a checkpoint */
    TALLY_LEFT = 8,  /* a worker abandoned the step: nobody applies it, and the run ends with a checkpoint */
    TALLY_TERM = 16, /* a rank got SIGTERM: as TALLY_STOP */
    TALLY_INT = 32,  /* a rank got SIGINT: likewise */
    TALLY_FINE = 64, /* the loss is finite: with TALLY_BAD, of some workers only */
    TALLY_ENDS = TALLY_STOP | TALLY_BAD | TALLY_LEFT | TALLY_TERM | TALLY_INT
};

/* The flag of a signal; 0 for 0, no signal. */
uint32_t tally_signal(int number);

/* In: this worker's part of a step. Out: all workers' together. */
struct tally {
    struct score score;
    uint32_t flags;      /* in: requests to this rank; out: to any rank */
    int64_t global_step; /* out: updates applied, this one included */
    int more;            /* out: 1: train another step, 0: enough */
};

/* one worker's, as it is sent */
struct tally_part {
    struct score score;
    uint64_t hash;   /* of weights and statistics before the update */
    uint32_t flags;  /* TALLY_* */
    uint32_t hashed; /* 1: hash is set */
};

/* Adds the parts of `count` workers in their order, for global step `step` (the updates before this one): counts the
 * step unless a worker abandoned it; another one follows below max_steps unless a flag ends the run. */
struct tally tally_sum(const struct tally_part *parts, int count, int64_t step, int64_t max_steps);

/* The first part, from `first` on, whose hash differs from part 0's; -1: none, or not hashed. */
int tally_differs(const struct tally_part *parts, int count, int first);

#endif
