/*
 * evaluation.h - the result of one evaluation: named numbers in the order in which they were measured, and how many
 * examples they are based on. An all-zero struct is empty. One thread at a time.
 */
#ifndef EVALUATOR_SCORE_EVALUATION_H
#define EVALUATOR_SCORE_EVALUATION_H

#include "base/buffer.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { EVALUATION_NAME_MAX = 256, EVALUATION_METRICS_MAX = 4096 }; /* bytes of a name with its NUL; names */

/* Measured by the built-in runner; the presets of --tags know these, and the best precision so far. */
#define EVALUATION_PRECISION "precision"
#define EVALUATION_LOSS "loss"
#define EVALUATION_CROSS_ENTROPY "cross_entropy"
#define EVALUATION_BEST "best_" /* before a metric's name: its best value so far */

struct evaluation_metric {
    char *name; /* owned by the list */
    double value;
};

struct evaluation_metrics {
    struct evaluation_metric *items; /* in the order in which they were added; names are unique */
    size_t count, capacity;
};

/* Adds at the end; insert: before items[at], at <= count. name is copied. ERR_ARG: the name is empty, too long or used
 * already, or there are too many metrics; ERR_NOMEM. On an error nothing has changed. */
int evaluation_metrics_add(struct evaluation_metrics *m, const char *name, double value, struct error *e);
int evaluation_metrics_insert(struct evaluation_metrics *m, size_t at, const char *name, double value, struct error *e);
/* Borrowed until the next change; NULL: not found. */
const struct evaluation_metric *evaluation_metrics_find(const struct evaluation_metrics *m, const char *name);
/* NaN where there is none. */
double evaluation_metrics_value(const struct evaluation_metrics *m, const char *name);
/* Sets text to "loss: 1.012, precision: 0.657, best precision: 0.661", which people parse, followed by other metrics in
 * their order; truncated to size. */
void evaluation_metrics_text(const struct evaluation_metrics *m, char *text, size_t size);
/* Appends an object, {"precision":0.657,"loss":1.012}, in their order. */
void evaluation_metrics_json(const struct evaluation_metrics *m, struct buffer *out);
void evaluation_metrics_release(struct evaluation_metrics *m); /* and empties m */

/* Which values of the variables were evaluated; mixed: averages for those variables that have one. */
enum evaluation_weights { WEIGHTS_UNKNOWN, WEIGHTS_VARIABLES, WEIGHTS_AVERAGES, WEIGHTS_MIXED };
/* As in the ledger, static: "", "variables", "moving averages", "mixed". */
const char *evaluation_weights_text(enum evaluation_weights weights);

struct evaluation_detail; /* counts per class and curves; known to the runner and to the code that writes them */

struct evaluation {
    struct evaluation_metrics metrics;
    int64_t examples, correct; /* -1: not counted */
    enum evaluation_weights weights;
    struct evaluation_detail *detail; /* or NULL */
    void (*detail_free)(struct evaluation_detail *detail);
};

void evaluation_release(struct evaluation *v); /* frees its content and empties v */

#endif
