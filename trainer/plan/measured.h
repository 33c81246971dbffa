/*
 * measured.h - reads how fast trainings were, as `trainer compare` writes it or as people do: CSV with the columns
 * strategy, workers (or ranks) and steps_per_second; or JSON: objects with these members, in an array, in the member
 * "cells" of an object, or one a line. Other columns and members are skipped. Pure.
 *
 * A strategy is written as for `trainer compare`, NAME[:OPTION[=VALUE]]...; options that make no difference here are
 * dropped. Asynchronous steps are those of all workers together.
 */
#ifndef TRAINER_PLAN_MEASURED_H
#define TRAINER_PLAN_MEASURED_H

#include "base/error.h"
#include "trainer/plan/cost.h"

#include <stddef.h>

struct measurement {
    const struct plan_strategy *strategy;
    int workers;
    double steps; /* a second */
};

struct measured {
    struct measurement *items;
    size_t count, capacity;
    size_t skipped; /* of strategies that have no model, or without a result */
};

/* Reads n bytes; `path` names them in errors: ERR_ARG "PATH:LINE: what is wrong". On OK *out is yours,
 * measured_release() it; it has at least one item. */
int measured_parse(struct measured *out, const char *text, size_t n, const char *path, struct error *e);
void measured_release(struct measured *m);

#endif
