/*
 * builtin_runner.h - evaluates checkpoints of the built-in models on the test split of a data set. Networks are built
 * and images transformed once; memory does not grow after the first checkpoint. Called by one thread. Starts threads -
 * 1 more, which do not affect results, and as many again while it reads a checkpoint.
 */
#ifndef EVALUATOR_SCORE_BUILTIN_RUNNER_H
#define EVALUATOR_SCORE_BUILTIN_RUNNER_H

#include "base/program/log.h"
#include "dataset/dataset.h"
#include "evaluator/score/scorer.h"

#include <stddef.h>

struct builtin_runner_options {
    const char *model, *data;   /* names in the tables of model/ and dataset/ */
    const char *data_directory; /* NULL: the default */
    struct dataset_reading reading;
    struct log *log;      /* for the names of test images that are left out, and where bfloat16 is float32; NULL:
                                   nowhere */
    int64_t num_examples; /* the first N, each once; 0: all */
    int64_t batch_size;   /* 0: 128 */
    int64_t threads;      /* that share the images and the reading of a checkpoint; 0: 1 */
    int bfloat16;         /* 1: multiply in bfloat16 where the processor can */
    unsigned metrics;     /* a choice (metrics/metric.h) besides precision, loss and cross entropy */
    int64_t detail_every; /* pictures, tables and curves of every N-th evaluation; 0: fewer and fewer, see
                                   evaluation_detail_wanted() */
    int moving_averages;  /* 1: <name>/ExponentialMovingAverage if model and checkpoint have them */
    size_t image_bytes;   /* keep transformed images if they need no more than this, else transform each batch;
                                   0: 512 MiB */
};

/* Measures precision, loss and cross_entropy, and the metrics of options.metrics: metrics/<word>.c has their names.
 * ERR_ARG, ERR_IO, ERR_CORRUPT: a sentence for the user. On OK call out->free(out->context) at the end. */
int builtin_runner_new(struct scorer *out, const struct builtin_runner_options *options, struct error *e);

enum { BUILTIN_RUNNER_THREADS_MAX = 256 };

/* The suffix of a variable's name in the checkpoint for its moving average. */
#define BUILTIN_RUNNER_AVERAGE "/ExponentialMovingAverage"

#endif
