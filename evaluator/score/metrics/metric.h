/*
 * metric.h - the table of metrics that the built-in runner measures besides precision, loss and cross entropy, as named
 * by --metrics. A metric is one file in this folder with a struct metric, and one row below, from which choices, counts
 * per example, numbers, and content of event files are made.
 */
#ifndef EVALUATOR_SCORE_METRICS_METRIC_H
#define EVALUATOR_SCORE_METRICS_METRIC_H

#include "eventlog/eventlog.h"
#include "evaluator/score/evaluation.h"

#include <stddef.h>
#include <stdint.h>

struct classification; /* classification.h */
struct runner_job;

struct metric_example {
    int classes;
    const float *logits;   /* (classes) */
    const double *softmax; /* (classes) */
    int32_t label, predicted;
};

/* the results of one evaluation; all borrowed */
struct metric_evaluation {
    const struct classification *counts;
    const char *const *names; /* (classes) names usable in tags */
    const struct runner_job *job;
    double begin, scored; /* monotonic seconds when the evaluation and the scoring began */
};

/* all may be 0 and NULL */
struct metric {
    int of_classes; /* 1: has results per class, of which there may be too many */
    /* The number of integers counted, and the call that counts one example. Exact, so separate counts add up. */
    size_t (*cells)(int classes);
    void (*count)(const struct metric_example *x, int64_t *cells);
    /* Adds numbers by name, for ledger, event files and log lines. */
    int (*add)(const struct metric_evaluation *v, const int64_t *cells, struct evaluation_metrics *out,
               struct error *e);
    /* Writes results that are not numbers, under tags of its own: only at the evaluations that --detail-every
     * selects. */
    int (*write)(const struct classification *counts, const int64_t *cells, const char *const *names,
                 struct eventlog_writer *writer, int64_t step, double wall_time, struct eventlog_error *error);
};

/* The table: a row is the word for --metrics, the name of a file in this folder, and of its metric_NAME. */
#define METRICS(ROW) \
    ROW(top5) \
    ROW(classes) \
    ROW(confusion) \
    ROW(curves) \
    ROW(speed)

#define METRIC_DECLARATION(name) extern const struct metric metric_##name;
METRICS(METRIC_DECLARATION)
#undef METRIC_DECLARATION
#define METRIC_PLACE(name) METRIC_##name,
enum metric_place { METRICS(METRIC_PLACE) METRIC_COUNT };
#undef METRIC_PLACE
extern const struct metric *const metric_table[METRIC_COUNT];
extern const char *const metric_names[METRIC_COUNT]; /* their words */

/* A choice: 1 << place for each metric; METRIC_SETTINGS for "hparams", the settings of the training for TensorBoard's
 * HParams tab, which any runner may have; METRIC_CAPTIONS for "captions", which a decoder tells (captioning.h). */
enum {
    METRIC_SETTINGS = 1 << METRIC_COUNT,
    METRIC_CAPTIONS = 2 * METRIC_SETTINGS,
    METRIC_ALL = 2 * METRIC_CAPTIONS - 1
};

/* What --metrics accepts: one or more of these, separated by commas. */
#define METRIC_WORD(name) "|" #name
#define METRIC_CHOICES "basic|all" METRICS(METRIC_WORD) "|captions|hparams"

/* text: as above; NULL means "basic". */
unsigned metric_choice(const char *text);
/* Those metrics of a choice that have `write`, and those that are of_classes. */
unsigned metric_written(unsigned choice);
unsigned metric_of_classes(unsigned choice);

/* Sets the error for missing memory and returns its code, for `write`. */
int metric_no_memory(struct eventlog_error *error);

#endif
