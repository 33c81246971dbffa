/*
 * builtin_runner.h - evaluates checkpoints of the built-in models on the test split of a data set. The nets are built
 * and the images are transformed once; memory stays the same from the first checkpoint on. Called by one thread; starts
 * threads - 1 more, on which results do not depend, and as many for as long as it reads a checkpoint.
 */
#ifndef EVALUATOR_SCORE_BUILTIN_RUNNER_H
#define EVALUATOR_SCORE_BUILTIN_RUNNER_H

#include "evaluator/score/scorer.h"

#include <stddef.h>

struct builtin_runner_options {
    const char *model, *data;   /* names in the tables of model/ and dataset/ */
    const char *data_directory; /* NULL: the usual place */
    int64_t num_examples;       /* the first so many, each once; 0: all */
    int batch_size;             /* 0: 128 */
    int threads;                /* that share the images, and a checkpoint's bytes; 0: 1 */
    int tutorial_denominator;   /* 1: as TensorFlow's CIFAR-10 tutorial counts, see BUILTIN_RUNNER_TUTORIAL_BATCH */
    unsigned metrics;           /* a choice (metrics/metric.h) beside precision, loss and cross entropy */
    int64_t detail_every;       /* pictures, tables and curves of each so many evaluations; 0: ever fewer, see
                                   evaluation_detail_wanted() */
    int moving_averages;        /* 1: <name>/ExponentialMovingAverage where model and checkpoint have them */
    size_t image_bytes;         /* transformed images are kept if they need no more than this, else made per batch;
                                   0: 512 MiB */
};

/* It measures precision, loss and cross_entropy, and what options.metrics asks for: metrics/<word>.c has the names.
 * ERR_ARG, ERR_IO, ERR_CORRUPT: a sentence for the user. On OK call out->free(out->context) in the end. */
int builtin_runner_new(struct scorer *out, const struct builtin_runner_options *options, struct error *e);

/* The tutorial evaluates whole batches of 128 and goes on from the first image where the last batch is not full: 10,112
 * examples of 10,000, the first 112 of them twice, and divides by that. */
enum { BUILTIN_RUNNER_TUTORIAL_BATCH = 128, BUILTIN_RUNNER_THREADS_MAX = 256 };

/* What stands behind a variable's name in the checkpoint for its moving average. */
#define BUILTIN_RUNNER_AVERAGE "/ExponentialMovingAverage"

#endif
