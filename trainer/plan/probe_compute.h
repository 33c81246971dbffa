/*
 * probe_compute.h - what a step of a model costs on this machine, alone: forward, backward and update, and when in
 * backward which gradients are final. On noise for samples: the arithmetic does not care.
 */
#ifndef TRAINER_PLAN_PROBE_COMPUTE_H
#define TRAINER_PLAN_PROBE_COMPUTE_H

#include "base/error.h"
#include "model/model.h"
#include "trainer/plan/setting.h"

#include <stddef.h>

enum { PROBE_FINALS_MOST = 512 };

struct probe_compute {
    double forward, backward, update; /* seconds: medians */
    double least, most;               /* of whole steps */
    int steps;
    struct plan_final finals[PROBE_FINALS_MOST];
    size_t final_count;
};

/* Trains with batches of so many samples for about `seconds`, at least 5 steps, in so many threads, which share each
 * batch equally. ERR_ARG, ERR_IO, ERR_NOMEM. */
int probe_compute(struct probe_compute *out, const struct model *model, int batch, int threads, double seconds,
                  struct error *e);

#endif
