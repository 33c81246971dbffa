/*
 * optimizer.h - one update of the weights from summed gradients by the rule of an optimizer (optimizers/, one file
 * each), with weight decay, the moving statistics of batch norm (zero-debiased where the model says so) and moving
 * averages of the variables.
 *
 * Everything is indexed as the exchange vector of network.h: [0, P) weights, [P, P + S) statistics, and the weight of
 * the batches at P + S, by which sums are divided. An update of a range is a pure function of the values in that range,
 * the sum, its weight and the step, so a server can hold parts of the vector, every replica can hold all of it, and
 * both give the same bits. Nothing else is remembered between calls.
 * One optimizer is for one thread at a time.
 */
#ifndef TRAINER_OPTIMIZER_H
#define TRAINER_OPTIMIZER_H

#include "base/error.h"
#include "model/network.h"
#include "trainer/optimizers/optimizer_rule.h"

#include <stddef.h>
#include <stdint.h>

#define OPTIMIZER_PLACE(place, name) OPTIMIZER_##place,
enum optimizer_kind { OPTIMIZERS(OPTIMIZER_PLACE) OPTIMIZER_KINDS };
#undef OPTIMIZER_PLACE
extern const char *const optimizer_kind_names[OPTIMIZER_KINDS]; /* "sgd", ...: for --optimizer, and in files */
extern const struct optimizer_rule *const optimizer_kind_rules[OPTIMIZER_KINDS];

struct optimizer_options {
    enum optimizer_kind kind;
    double learning_rate;  /* the base rate */
    double (*schedule)(double base, int64_t step); /* makes the rate of a step from it; NULL: the base rate always */
    double momentum;       /* OPTIMIZER_MOMENTUM: 0.9 as a rule */
    double moving_average; /* decay of the moving averages of the variables; 0: none are kept */
};

struct optimizer;

/* Works on n's weights and statistics in place; n is borrowed until free. Slots and averages start as the definitions
 * say: slots 0, averages the present weights, biased statistics 0. OK: *out is yours, optimizer_free() it. */
int optimizer_new(struct optimizer **out, struct network *n, const struct optimizer_options *options, struct error *e);
void optimizer_free(struct optimizer *o); /* NULL is fine */

/* After weights were put into the network: slots, averages and counters as for a new run that begins at global step
 * `step` from these weights; the biased statistics are those that an uninterrupted run would have (m (1 - d^step)). */
void optimizer_reset(struct optimizer *o, int64_t step);

/*
 * The update number `step` (counted from 0: the updates before it) of the elements [from, to) of the exchange vector.
 * sum: the exchange vectors of all workers added up. For weights g = sum / the last element + decay w; where all that
 * was scored has weight 0, g is the decay's part alone.
 */
void optimizer_apply(struct optimizer *o, int64_t step, const real *sum, size_t from, size_t to);

/* Where the state of consecutive elements of the exchange vector lies: values are weights or moving statistics; first
 * is slot 1 of weights and the biased mean of statistics; then slot 2 and moving averages of weights. NULL where the
 * optimizer keeps none. */
struct optimizer_state {
    real *values, *first, *second, *averages;
};
/* The same update of elements whose state is not in the optimizer's own arrays, as on a parameter server. sum and state
 * begin at element `from`; weight: the sum's last element. */
void optimizer_apply_to(const struct optimizer *o, int64_t step, const real *sum, real weight, size_t from, size_t to,
                        const struct optimizer_state *state);

/* The learning rate of update `step`. */
double optimizer_rate(const struct optimizer *o, int64_t step);

const struct optimizer_options *optimizer_options_of(const struct optimizer *o);
struct network *optimizer_network(const struct optimizer *o);

/* The state, array by array: what is saved, sent to a server, or fetched from one. Element i of an array belongs to
 * element base + i of the exchange vector. Absent arrays have count 0. */
enum optimizer_array_kind {
    ARRAY_WEIGHTS, ARRAY_STATISTICS, ARRAY_SLOT_1, ARRAY_SLOT_2, ARRAY_AVERAGES, ARRAY_BIASED, ARRAY_KINDS
};
struct optimizer_array {
    real *values;
    size_t count, base;
};
struct optimizer_array optimizer_array(struct optimizer *o, enum optimizer_array_kind kind);

/* How far adam's and the moving statistics' own step counters are ahead of the global step: 0 in our own runs; other
 * numbers come from checkpoints of programs that count otherwise. */
struct optimizer_counters {
    int64_t adam_ahead, statistics_ahead;
};
struct optimizer_counters *optimizer_counters(struct optimizer *o);

#endif
