/*
 * planning.h - a plan: rows of strategies and numbers of workers, predicted from one setting, or from what is fitted to
 * measurements of some of them. Pure.
 */
#ifndef TRAINER_PLAN_PLANNING_H
#define TRAINER_PLAN_PLANNING_H

#include "base/buffer.h"
#include "trainer/plan/measured.h"
#include "trainer/plan/plan_table.h"

struct planning {
    struct plan_work work; /* of a worker with a batch of its own */
    struct plan_machine machine;
    int per_host, servers;
    const int
        *slots; /* (slot_count) workers that each host has room for, borrowed; NULL: per_host on each of any number */
    size_t slot_count;
    double global_batch; /* samples that all workers share in a step; 0: each has work.batch */
    struct plan_row *rows;
    size_t count, capacity;
};

/* Frees the rows. */
void planning_release(struct planning *p);

/* How many workers there is room for; INT_MAX: any number. */
int planning_room(const struct planning *p);

/* Adds a row, of at most planning_room() workers. measured: steps a second, or 0. ERR_NOMEM. */
int planning_add(struct planning *p, const struct plan_strategy *strategy, int workers, double measured,
                 struct error *e);

/* What of the setting is to be fitted: what nobody gave. */
struct planning_free {
    int compute;   /* forward, backward and update, by one factor */
    int bandwidth; /* of the network */
    int points;    /* the first of each strategy's measurements to be fitted to */
};

/* Fits the setting to the first measurements of each strategy, and adds a row for each of its measurements and for each
 * of `workers` that was not measured, in ascending order. Appends to `about` a line for each strategy with what was
 * found. With one measurement of a strategy the bandwidth remains unknown: then it has only a row for that. ERR_NOMEM,
 * ERR_ARG. */
int planning_fit(struct planning *p, const struct planning_free *what, const struct measured *measured,
                 const int *workers, int worker_count, struct buffer *about, struct error *e);

#endif
