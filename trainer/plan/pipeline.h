/*
 * pipeline.h - when work that passes through links and processors is done: tasks that wait for others, take up to two
 * resources at a time, and are served by each resource in the order in which they become ready. Pure.
 *
 * A task starts when the tasks it comes after are done and its resources are free. It holds each of them for that
 * resource's own duration, and is done `delay` after the longer one: a message holds the sender's link and the
 * receiver's, and arrives a latency later.
 *
 * Before it: computing, the tasks of forward and backward on one processor.
 */
#ifndef TRAINER_PLAN_PIPELINE_H
#define TRAINER_PLAN_PIPELINE_H

#include "base/error.h"
#include "trainer/plan/setting.h"

#include <stddef.h>

/* ---- computing --------------------------------------------------------------------------------------------------- */

/*
 * Lays out forward and backward on a processor, in pieces between which it does other things: adding, and
 * looking after messages, as the trainer does between layers. Pure.
 */

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

/* ---- pipeline ---------------------------------------------------------------------------------------------------- */

#define PIPELINE_NOTHING ((size_t)-1)

struct pipeline_task {
    int resource[2];    /* -1: none */
    double duration[2]; /* seconds */
    double delay;
    size_t after[2]; /* tasks that were added before; PIPELINE_NOTHING: none */
};

struct pipeline;

/* ERR_NOMEM. On OK *out is yours, pipeline_free() it. */
int pipeline_new(struct pipeline **out, int resources, struct error *e);
void pipeline_free(struct pipeline *p); /* NULL is fine */

/* Returns the task's number. Without memory the task is lost, and pipeline_run() says so. */
size_t pipeline_add(struct pipeline *p, const struct pipeline_task *task);

/* A task of one resource, after one other. */
size_t pipeline_then(struct pipeline *p, int resource, double duration, double delay, size_t after);

/* Sets *end to the seconds after which all is done. Once. ERR_NOMEM. */
int pipeline_run(struct pipeline *p, double *end, struct error *e);

#endif
