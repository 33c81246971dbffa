/*
 * evaluation_detail.h - the results of an evaluation besides named numbers: the confusion matrix and the curves of each
 * class, and how they are written to an event file. One thread at a time.
 */
#ifndef EVALUATOR_SCORE_EVALUATION_DETAIL_H
#define EVALUATOR_SCORE_EVALUATION_DETAIL_H

#include "base/error.h"
#include "evaluator/score/classification.h"
#include "eventlog/eventlog.h"

#include <stdint.h>

struct caption_samples; /* captioning.h */

struct evaluation_detail {
    unsigned metrics;                 /* of a choice (metric.h) those that write */
    struct classification counts;     /* owned */
    const char *const *names;         /* (classes); borrowed from the runner */
    struct caption_samples *captions; /* owned; NULL: none */
};

/* Copies the counts. ERR_NOMEM. On OK *out is yours: evaluation_detail_free() it. */
int evaluation_detail_new(struct evaluation_detail **out, unsigned metrics, const struct classification *counts,
                          const char *const *names, struct error *e);
void evaluation_detail_free(struct evaluation_detail *d); /* NULL is fine */

/* EVENTLOG_OK, or the writer's error in *error. */
int evaluation_detail_write(const struct evaluation_detail *d, struct eventlog_writer *writer, int64_t step,
                            double wall_time, struct eventlog_error *error);

/* 1 if pictures, tables and curves are written for the evaluation with this number (0, 1, 2, ...). every k: each k-th.
 * 0: the first twenty, then ten per doubling of the number (20, 22, ... 38, 40, 44, ...), so that a long training's
 * event file grows with the logarithm of its length. */
int evaluation_detail_wanted(int64_t number, int64_t every);

#endif
