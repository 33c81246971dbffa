/*
 * metric.h - the table of what the built-in runner measures beside precision, loss and cross entropy, as --metrics
 * names it. A metric is one file of this folder with a struct metric, and one row below: choices, what is counted of
 * each example, numbers, and what is written into event files come from there.
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

struct metric_evaluation { /* what one evaluation gave; all borrowed */
    const struct classification *counts;
    const char *const *names; /* (classes) of the classes, as parts of tags */
    const struct runner_job *job;
    double begin, scored;     /* monotonic seconds when it and when the scoring began */
};

struct metric { /* all may be 0 and NULL */
    int of_classes; /* has something of each class by name, for which there may be too many */
    /* How many integers are counted, and one example into them. Exact, so that parts counted apart add up. */
    size_t (*cells)(int classes);
    void (*count)(const struct metric_example *x, int64_t *cells);
    /* Adds numbers by their names: to ledger, event files and log lines. */
    int (*add)(const struct metric_evaluation *v, const int64_t *cells, struct evaluation_metrics *out,
               struct error *e);
    /* Writes what is no number, under tags of its own: at some evaluations only, as --detail-every says. */
    int (*write)(const struct classification *counts, const int64_t *cells, const char *const *names,
                 struct eventlog_writer *writer, int64_t step, double wall_time, struct eventlog_error *error);
};

/* The table: a row is the word for --metrics, the name of a file of this folder, and of its metric_NAME. */
#define METRICS(ROW) \
    ROW(top5)        \
    ROW(classes)     \
    ROW(confusion)   \
    ROW(curves)      \
    ROW(speed)

#define METRIC_DECLARATION(name) extern const struct metric metric_##name;
METRICS(METRIC_DECLARATION)
#undef METRIC_DECLARATION
#define METRIC_PLACE(name) METRIC_##name,
enum metric_place { METRICS(METRIC_PLACE) METRIC_COUNT };
#undef METRIC_PLACE
extern const struct metric *const metric_table[METRIC_COUNT];

/* A choice: 1 << place for each, and METRIC_SETTINGS for "hparams", the settings of the training for TensorBoard's
 * HParams tab, which any runner can have. */
enum { METRIC_SETTINGS = 1 << METRIC_COUNT, METRIC_ALL = 2 * METRIC_SETTINGS - 1 };

/* What --metrics accepts, which is one or more of these with commas between. */
#define METRIC_WORD(name) "|" #name
#define METRIC_CHOICES "basic|all" METRICS(METRIC_WORD) "|hparams"

/* text: as above; NULL: "basic". */
unsigned metric_choice(const char *text);
/* Those of a choice that write something, and those that are of classes. */
unsigned metric_written(unsigned choice);
unsigned metric_of_classes(unsigned choice);

/* Sets the sentence and returns its code, for `write`. */
int metric_no_memory(struct eventlog_error *error);

#endif
