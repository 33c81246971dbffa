/*
 * computing.h - lays out forward and backward on a processor, in pieces between which it does other things: adding, and
 * looking after messages, as the trainer does between layers. Pure.
 */
#ifndef TRAINER_PLAN_COMPUTING_H
#define TRAINER_PLAN_COMPUTING_H

#include "trainer/plan/pipeline.h"
#include "trainer/plan/setting.h"

enum { COMPUTING_PIECES = 32 }; /* of a backward pass */

struct computing {
    const struct plan_work *work;
    struct pipeline *pipeline;
    int processor;   /* the resource */
    double crowding; /* how many times slower than alone */
    double begun;    /* seconds that are laid out */
    size_t last;     /* the last task; PIPELINE_NOTHING: none yet */
};

/* Lays out what is computed until the step is so many seconds old, if it were alone. c->last ends then. */
void computing_until(struct computing *c, double seconds);

#endif
