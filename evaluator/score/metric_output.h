/*
 * metric_output.h - finds metrics in the output of a command. Pure: takes bytes in pieces of any size, returns names
 * and numbers. A line gives metrics if the whole line has one of these forms; all other lines are ignored:
 *
 *   accuracy 0.91                   a name and a number
 *   accuracy=0.91 loss = 0.3        names and numbers with '=' or ':' between them; pairs may be separated by blanks,
 *   loss: 0.3, accuracy: 0.91       commas or semicolons
 *   {"accuracy": 0.91, "n": 5}      a JSON object: its members that are numbers (not true, texts, lists or objects)
 *   {'accuracy': 0.91, 'n': 5}      the same as Python prints it
 *   0.91                            a number alone, where the caller has a name for it
 *
 * and, where the name has one value in all of the output,
 *
 *   Test accuracy: 0.703            a name of several words, with '=' or ':' behind it
 *   Accuracy: 70.3%                 a percentage, which counts as its hundredth part, 0.703
 *
 * A name begins with a letter or '_'; letters, digits and _ . / @ % + - # follow. Numbers are decimal, or nan, inf or
 * infinity in any case, with an optional sign; in JSON also the bare NaN, Infinity and -Infinity of Python. One may
 * be in an object as Python prints it: tensor(0.7, device='cuda:0'), np.float64(0.7), Array(0.7, dtype=float32).
 * `step` and `global_step` are not metrics: the step is the checkpoint's. A metric may occur only once, since nobody
 * can know which of two values counts; twice is an error unless both are equal.
 */
#ifndef EVALUATOR_SCORE_METRIC_OUTPUT_H
#define EVALUATOR_SCORE_METRIC_OUTPUT_H

#include "base/buffer.h"
#include "base/error.h"
#include "evaluator/score/evaluation.h"

#include <stddef.h>

enum { METRIC_LINE_MAX = 1 << 20 }; /* longer lines are ignored, so memory stays bounded */

struct metric_output {
    struct buffer line; /* the beginning of an incomplete line */
    int too_long;       /* 1: the rest of this line is ignored */
    size_t lines;       /* whole lines so far */
    struct error error; /* the first error */
    const char *alone;  /* the name of a number alone; NULL: it is none */
    char last[80];      /* the beginning of the last line with something in it */
    struct evaluation_metrics loose,
        clashes; /* of lines with names of several words and percentages; with several values */
    struct error loose_error;
};

/* alone: borrowed, or NULL. */
void metric_output_init(struct metric_output *o, const char *alone);
void metric_output_release(struct metric_output *o);
/* Takes n bytes, and adds the metrics of whole lines. */
void metric_output_add(struct metric_output *o, const char *bytes, size_t n, struct evaluation_metrics *metrics);
/* Ends the output; a newline at its end may be missing. ERR_ARG: a metric occurs twice, or there is none; ERR_NOMEM. */
int metric_output_finish(struct metric_output *o, struct evaluation_metrics *metrics, struct error *e);

#endif
