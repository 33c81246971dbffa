/*
 * optimizer.h - one update of the weights from summed gradients by the rule of an optimizer (optimizer_rule.h, one file
 * each), with weight decay, the moving statistics of batch norm (zero-debiased where the model says so) and moving
 * averages of the variables.
 *
 * Everything is indexed like the exchange vector of network.h: [0, P) weights, [P, P + S) statistics, and at P + S the
 * weight of the batches, by which sums are divided. An update of a range is a pure function of the values in that
 * range, the sum, its weight and the step, so a server can hold parts of the vector, or every replica all of it, and
 * both give the same bits. Nothing else is kept between calls. One optimizer is for one thread at a time, but several
 * threads may make the same update of different ranges.
 *
 * Tables (variable.row_width, network.h). An update changes those rows whose summed gradient is not 0 in all elements,
 * whether the sum comes as a dense vector or as rows, so both give the same bits:
 *   sgd, momentum, adagrad, lazy_adam    only these rows and their slots; others have no weight decay either, and no
 *                                        part in the norm of the gradient
 *   adam                                 all rows, as with a gradient of 0: their moments decay, they move
 * -0 counts as 0, NaN does not. Moving averages of all rows follow.
 */
#ifndef TRAINER_OPTIMIZERS_OPTIMIZER_H
#define TRAINER_OPTIMIZERS_OPTIMIZER_H

#include "base/error.h"
#include "model/network.h"
#include "trainer/optimizers/optimizer_rule.h"
#include "trainer/optimizers/schedule.h"

#include <stddef.h>
#include <stdint.h>

#define OPTIMIZER_PLACE(place, name) OPTIMIZER_##place,
enum optimizer_kind { OPTIMIZERS(OPTIMIZER_PLACE) OPTIMIZER_KINDS };
#undef OPTIMIZER_PLACE
extern const char *const optimizer_kind_names[OPTIMIZER_KINDS]; /* "sgd", ...: for --optimizer, and in files */
extern const struct optimizer_rule *const optimizer_kind_rules[OPTIMIZER_KINDS];

struct optimizer_options {
    enum optimizer_kind kind;
    double learning_rate;     /* the base rate, of one worker */
    struct schedule schedule; /* zeroed: always the base rate */
    double momentum;          /* OPTIMIZER_MOMENTUM: usually 0.9 */
    double clip_norm;         /* the largest norm of an update's gradient; 0: any. See optimizer_measure() */
    double moving_average;    /* decay of the moving averages of the variables; 0: no averages */
};

struct optimizer;
struct team;

/* Works on n's weights and statistics in place; n is borrowed until free. Initially slots are 0, averages the current
 * weights, biased statistics 0, as defined. On OK *out is yours, optimizer_free() it. */
int optimizer_new(struct optimizer **out, struct network *n, const struct optimizer_options *options, struct error *e);
void optimizer_free(struct optimizer *o); /* NULL is fine */

/* Call after weights were set in the network: slots, averages and counters become those of a new run that begins at
 * global step `step` with these weights; the biased statistics become those of an uninterrupted run (m (1 -
 * d^step)). */
void optimizer_reset(struct optimizer *o, int64_t step);

/*
 * With clip_norm: call it before the first optimizer_apply() of update `step`, with the whole sum. The gradients of
 * this update (means over the samples, with weight decay's part) are then multiplied by clip_norm / max(clip_norm, n),
 * n being the norm of all of them together: TensorFlow's clip_by_global_norm of the gradients of the whole loss.
 * Without clip_norm: does nothing.
 */
void optimizer_measure(struct optimizer *o, int64_t step, const real *sum);
/* The same with the gradients of some tables as rows, ascending by variable; their elements of `sum` are not read. */
void optimizer_measure_rows(struct optimizer *o, int64_t step, const real *sum, const struct row_gradient *tables,
                            size_t count);
/* Instead, where only parts of the sum are at hand: the sums of squares of the nodes (gradient_norm.h) of elements
 * [from, to) of the exchange vector, all of one variable, so that the norm can be put together (gradient_norm.h).
 * sum: of element `from` on, or as rows of the whole table; weight: the sum's last element. Returns how many. */
size_t optimizer_squares(const struct optimizer *o, int64_t step, const real *sum, real weight, size_t from, size_t to,
                         double *squares);
size_t optimizer_squares_of_rows(const struct optimizer *o, int64_t step, const struct row_gradient *sum, real weight,
                                 size_t from, size_t to, double *squares);
/* Then with the norm of all: update `step` is clipped as optimizer_measure() says. */
void optimizer_clip(struct optimizer *o, int64_t step, double norm);
/* Update `step` is clipped by this factor, which optimizer_clip_factor() gave another optimizer. */
void optimizer_clip_by(struct optimizer *o, int64_t step, real factor);
real optimizer_clip_factor(const struct optimizer *o);
/* The norm that was measured last, before clipping; 0: none was. */
double optimizer_gradient_norm(const struct optimizer *o);

/*
 * Makes update number `step` (the number of updates before it) of the elements [from, to) of the exchange vector. sum:
 * the whole sum of all workers' exchange vectors: a row that the range cuts is looked at as a whole. For weights g =
 * sum / the last element + decay w; if everything scored has weight 0, g is only the decay's part.
 */
void optimizer_apply(struct optimizer *o, int64_t step, const real *sum, size_t from, size_t to);

/* Makes update number `step` of a table of which the batches used some rows (struct row_gradient, network.h), in
 * ascending order. sum: the rows of all workers added up; weight: the sum's. Other variables are unchanged. */
void optimizer_apply_rows(struct optimizer *o, int64_t step, const struct row_gradient *sum, real weight);

/* From now on optimizer_apply() of many elements is divided among the team's `threads` members, with the same bits. The
 * team is borrowed until free; its owner is the one who calls. */
void optimizer_use_threads(struct optimizer *o, struct team *team, int threads);

/* The state of consecutive elements of the exchange vector: values are weights or moving statistics; first is slot 1 of
 * weights and the biased mean of statistics; then slot 2 and moving averages of weights. NULL: the optimizer keeps
 * none. */
struct optimizer_state {
    real *values, *first, *second, *averages;
};
/* The same update for state outside the optimizer's own arrays, as on a parameter server. sum and state begin at
 * element `from`; weight: the sum's last element; state: NULL for the optimizer's own arrays. A range that cuts a row
 * of a table sees only its part of the row: give whole rows, unless optimizer_cuts_rows(). */
void optimizer_apply_to(const struct optimizer *o, int64_t step, const real *sum, real weight, size_t from, size_t to,
                        const struct optimizer_state *state);

/* 1: an update changes an element of a table as it does without regard to its row, so that ranges may cut rows: the
 * rule moves no element whose own gradient is 0, or moves all. */
int optimizer_cuts_rows(const struct optimizer *o);

/* The learning rate of update `step`. */
double optimizer_rate(const struct optimizer *o, int64_t step);

const struct optimizer_options *optimizer_options_of(const struct optimizer *o);
struct network *optimizer_network(const struct optimizer *o);

/* The state, array by array, for saving, sending and fetching. Element i of an array belongs to element base + i of the
 * exchange vector. Absent arrays have count 0. */
enum optimizer_array_kind {
    ARRAY_WEIGHTS,
    ARRAY_STATISTICS,
    ARRAY_SLOT_1,
    ARRAY_SLOT_2,
    ARRAY_AVERAGES,
    ARRAY_BIASED,
    ARRAY_KINDS
};
struct optimizer_array {
    real *values;
    size_t count, base;
};
struct optimizer_array optimizer_array(struct optimizer *o, enum optimizer_array_kind kind);

/* Moves all arrays, also those of the network, to that memory: each array that is not absent to to[kind], which has
 * room for its count. Borrowed until optimizer and network are freed. */
void optimizer_move(struct optimizer *o, real *const to[ARRAY_KINDS]);

/* Makes `to` a replica of `from`, an optimizer with the same options of a network of the same model: copies the weights
 * and moving statistics of its network, its slots, averages and counters. Returns how many copies of variables that
 * was, each array that has a variable counted as one: weights and adam's two slots are 3 a variable. */
size_t optimizer_copy(struct optimizer *to, struct optimizer *from);

/* How far adam's and the moving statistics' own step counters are ahead of the global step: 0 in our own runs; others
 * are from checkpoints of programs that count differently. */
struct optimizer_counters {
    int64_t adam_ahead, statistics_ahead;
};
struct optimizer_counters *optimizer_counters(struct optimizer *o);

#endif
