/*
 * schedule.h - the learning rate of each update: scaled with the workers, warmed up, then decayed. A pure function of
 * the global step, so every rank, every server and a resumed run have the same rates.
 *
 * With eta the base rate (of one worker) and t the number of updates before this one,
 *   rate(t) = D(R, t) * W(t)
 *   R       = eta * workers             linear scaling (Goyal et al. 2017, section 2.1): the mean over n workers is
 *                                       that of an n times larger batch
 *   D(R, t) = R * factor^k              after k of the decays; without decays the recipe's own schedule of R, or R
 *   W(t)    = s + (1 - s) * t / warmup  for t < warmup, else 1: gradual warm-up (section 2.2), linear in t and complete
 *                                       at update `warmup`
 *   s       = 1 / workers               if the rate is scaled: from one worker's rate, as in the paper
 *             1 / (warmup + 1)          if not: no update is made at rate 0
 */
#ifndef TRAINER_OPTIMIZERS_SCHEDULE_H
#define TRAINER_OPTIMIZERS_SCHEDULE_H

#include "base/error.h"
#include "model/file/recipe.h"

#include <stddef.h>
#include <stdint.h>

enum { SCHEDULE_DECAYS_MAX = 32 };

/* Zeroed: always the base rate. */
struct schedule {
    const struct rate_curve *recipe;       /* the model's schedule, without decays; borrowed; NULL: none */
    int workers;                           /* by whose number the rate is scaled; 0, 1: not scaled */
    int64_t warmup;                        /* updates; 0: none */
    int decays;                            /* 0: the recipe decides */
    int64_t decay_at[SCHEDULE_DECAYS_MAX]; /* rising: from this step on the rate is multiplied once more */
    double decay_factor;
};

/* The rate of update `step` for a base rate. */
double schedule_rate(const struct schedule *s, double base, int64_t step);

/* The rate after warm-up and before any decay: R. */
double schedule_full_rate(const struct schedule *s, double base);

/* Into text (size bytes): "0.2 (0.05 x 4 workers), warm-up over 500 steps, x 0.1 at 2000, 3000", with what there is of
 * it. The recipe's own schedule is not mentioned. Cut off if too long. */
void schedule_describe(const struct schedule *s, double base, char *text, size_t size);

/* Reads "STEP[,STEP...]", rising and from 1, into decay_at and decays. ERR_ARG: s is unchanged, and e says what is
 * wrong with the text. */
int schedule_parse_decays(struct schedule *s, const char *text, struct error *e);

#endif
