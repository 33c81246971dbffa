/*
 * scoring.h - runs a model over labelled examples with several threads and counts the results. Each thread has a
 * network of its own, with the weights of the first. The batches do not depend on the number of threads, counts are
 * integers, and the loss is summed in the order of the examples: the result is the same to the bit for any number of
 * threads and any timing.
 *
 * Called by one thread, which does its share of the work inside scoring_step(); threads - 1 helpers sleep between
 * evaluations. Memory is allocated only at the start.
 */
#ifndef EVALUATOR_SCORE_SCORING_H
#define EVALUATOR_SCORE_SCORING_H

#include "base/error.h"
#include "evaluator/score/classification.h"
#include "model/network.h"

#include <stddef.h>
#include <stdint.h>

/* Where the examples come from. Called by all threads at once, so it must only read. */
struct scoring_source {
    /* (count, height, width, channels) floats, or int32_t of a model that reads integers, of examples [first, first +
     * count): written to `room`, which is returned; or a pointer to existing ones. */
    const void *(*input)(const void *context, size_t first, size_t count, void *room);
    const void *context;
    const int32_t *labels; /* (examples, labels of a sample); -1: padding, which is not scored; borrowed */
    size_t examples;       /* > 0 */
    /* Of a model that reads features: writes those of the examples, (count, features). NULL: the model reads none. */
    void (*features)(const void *context, size_t first, size_t count, float *out);
};

struct scoring_options {
    const struct model *model;
    int threads;      /* >= 1 */
    int batch_size;   /* >= 1: examples that a thread takes at a time */
    unsigned metrics; /* a choice (metric.h) */
};

struct scoring;

/* ERR_NOMEM, ERR_ARG, ERR_IO (cannot start a thread). source's arrays are borrowed. On OK *out is yours. */
int scoring_new(struct scoring **out, const struct scoring_options *options, const struct scoring_source *source,
                struct error *e);
void scoring_free(struct scoring *s); /* NULL is fine; ends a running evaluation */

/* The network whose weights are used: write to its parameters and statistics only while no evaluation runs. */
struct network *scoring_network(struct scoring *s);

/* Starts an evaluation with the weights as they are now. */
void scoring_begin(struct scoring *s);
/* Does one batch. 1: there are more. 0: all are done, by any thread. Between two calls the caller may do other things;
 * the helpers continue. */
int scoring_step(struct scoring *s);
/* Share of the examples that were started, 0 to 1. */
double scoring_share(const struct scoring *s);
/* After scoring_step() returned 0: counts (borrowed until the next begin) and the sum of the cross entropies. Earlier:
 * cancels the evaluation, and both are meaningless. Either may be NULL. */
void scoring_end(struct scoring *s, const struct classification **counts, double *cross_entropy);

#endif
