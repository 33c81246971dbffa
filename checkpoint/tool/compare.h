/* compare.h - what the files of `checkpoint compare` share: findings, and how to print them. */
#ifndef CHECKPOINT_TOOL_COMPARE_H
#define CHECKPOINT_TOOL_COMPARE_H

#include "base/buffer.h"
#include "base/program/selection.h"
#include "base/program/table.h"
#include "checkpoint/tensor_role.h"
#include "checkpoint/tensor_value.h"
#include "checkpoint/tool/output.h"
#include "checkpoint/tool/source.h"

#include <stdint.h>

enum verdict { SAME, WITHIN, DIFFER, DTYPE, SHAPE, ONLY_A, ONLY_B, VERDICTS };

/* for a tensor in both, or in only one of them */
struct finding {
    const struct source_tensor *a, *b; /* one may be NULL */
    enum verdict verdict;
    struct tensor_difference difference;
    int numbers;                    /* its sums and largest differences are meaningful */
    struct buffer value_a, value_b; /* the first element that differs; for bookkeeping the whole value */
};

/* of some of the tensors */
struct tally {
    uint64_t verdicts[VERDICTS];
    uint64_t values, different, other_bits; /* of those with the same dtype and shape in both */
    double squares, squares_a, squares_b;
};

struct compare {
    struct output out;
    struct selection tensors;
    double relative, absolute;
    int every;
    struct source a, b;
    struct tally tallies[TENSOR_ROLES];
    struct table rows, bookkeeping;
    struct buffer json_bookkeeping;
    int first, first_bookkeeping; /* of JSON's lists */
};

uint64_t tally_tensors(const struct tally *t);
uint64_t tally_unequal(const struct tally *t); /* how many of them differ, or are in only one checkpoint */

/* *out is the sum of the tallies that decide: all but bookkeeping, or, if nothing else was compared, bookkeeping; then
 * it returns 1. */
int compare_decisive(const struct compare *x, struct tally *out);
/* 1: equal within tolerance; 0 also if --tensor left nothing to compare. */
int compare_equal(const struct compare *x);

/* The norm of the difference, and the same divided by the larger norm of the two. */
double tally_norm(const struct tally *t);
double tally_relative_norm(const struct tally *t);

void compare_print_begin(struct compare *x);
void compare_print_finding(struct compare *x, const struct finding *f);
void compare_print_end(struct compare *x);
void compare_print_release(struct compare *x);

#endif
