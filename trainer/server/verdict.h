/*
 * verdict.h - what a parameter server tells a worker at the end of a step, and other servers about pushes; and the
 * counts of a run. These are sent as they are.
 */
#ifndef TRAINER_SERVER_VERDICT_H
#define TRAINER_SERVER_VERDICT_H

#include "base/batch.h"
#include "trainer/collective/tally.h"
#include "trainer/server/staleness.h"

#include <stdint.h>

struct verdict {
    struct score score;
    int64_t global_step;
    double staleness_mean;
    int64_t staleness_max;
    uint32_t flags;
    int32_t more;
    int64_t other;         /* the first worker whose weights differ from those of worker `first`, -1: none */
    int32_t first;         /* the first worker of the step */
    int32_t values;        /* 1: the servers send new values; 0: none: end */
    int32_t used, dropped; /* of this worker's pushes since its last verdict; chosen members only */
    int64_t all_dropped;   /* pushes of all workers, so far; likewise */
};

/* What becomes of pushes, as server 0 decides it: see arbiter.h. */
struct decision {
    int64_t number;       /* of decisions before it */
    int64_t step;         /* updates before it */
    int updates;          /* 1: the used pushes make an update; 0: it only answers workers */
    const uint8_t *fates; /* (workers) DECISION_* */
};

/* What becomes of a worker's push, if it is decided; and whether the worker gets the values after the decision. */
enum { DECISION_USED = 1, DECISION_DROPPED = 2, DECISION_ANSWERED = 4 };

/* of a whole run */
struct server_statistics {
    struct staleness staleness;      /* of all pushes; asynchronous */
    int64_t used, dropped;           /* pushes, where server 0 decides about them */
    int64_t absent;                  /* workers that had no part in an update, over all updates; synchronous */
    double samples, samples_dropped; /* of the used pushes, of the others */
};

#endif
