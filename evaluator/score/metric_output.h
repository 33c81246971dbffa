/*
 * metric_output.h - finds metrics in what a command prints. Pure: bytes in, in pieces of any size, names and numbers
 * out. A line gives metrics if all of it is one of these; every other line is talk, and passed over:
 *
 *   accuracy 0.91                   a name and a number
 *   accuracy=0.91 loss = 0.3        names and numbers with '=' or ':' between them; pairs may be parted by blanks,
 *   loss: 0.3, accuracy: 0.91       commas or semicolons
 *   {"accuracy": 0.91, "n": 5}      a JSON object: its members that are numbers (true, texts, lists, objects are not)
 *
 * A name begins with a letter or '_'; letters, digits and _ . / @ % + - # follow. Numbers are decimal, or nan, inf,
 * infinity in any case, with a sign; in JSON also the bare NaN, Infinity and -Infinity that Python writes. `step` and
 * `global_step` are no metrics: the step is the checkpoint's. A metric may be named once only: which of two values
 * counts nobody can know, so that is an error, unless both are the same.
 */
#ifndef EVALUATOR_SCORE_METRIC_OUTPUT_H
#define EVALUATOR_SCORE_METRIC_OUTPUT_H

#include "base/buffer.h"
#include "base/error.h"
#include "evaluator/score/evaluation.h"

#include <stddef.h>

enum { METRIC_LINE_MAX = 1 << 20 }; /* longer lines are passed over, so memory stays bounded */

struct metric_output {
    struct buffer line; /* what came of a line that is not whole yet */
    int too_long;       /* 1: the rest of this line is passed over */
    size_t lines;       /* whole lines so far */
    struct error error; /* the first thing that was wrong */
};

void metric_output_init(struct metric_output *o);
void metric_output_release(struct metric_output *o);
/* Takes n bytes; what whole lines give is added to metrics. */
void metric_output_add(struct metric_output *o, const char *bytes, size_t n, struct evaluation_metrics *metrics);
/* The end: a last line without a newline counts, too. ERR_ARG: a metric named twice, or none at all; ERR_NOMEM. */
int metric_output_finish(struct metric_output *o, struct evaluation_metrics *metrics, struct error *e);

#endif
