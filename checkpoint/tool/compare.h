/* compare.h - what the files of `checkpoint compare` share: what was found, and how it is told. */
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

struct finding { /* of a tensor of both, or of one that only one of them has */
    const struct source_tensor *a, *b;      /* one may be NULL */
    enum verdict verdict;
    struct tensor_difference difference;
    int numbers;                            /* its sums and largest differences mean something */
    struct buffer value_a, value_b;         /* the first element that differs; of bookkeeping the whole value */
};

struct tally { /* of some of the tensors */
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
    int first, first_bookkeeping;           /* of JSON's lists */
};

uint64_t tally_tensors(const struct tally *t);
uint64_t tally_unequal(const struct tally *t); /* how many of them differ, or are in one of the two alone */

/* *out sums up what decides: all but bookkeeping, or bookkeeping where nothing else was compared (which returns 1). */
int compare_decisive(const struct compare *x, struct tally *out);
/* 1: equal within tolerance. Nothing is where --tensor left nothing to compare. */
int compare_equal(const struct compare *x);

/* The norm of the difference, and the same divided by the larger norm of the two. */
double tally_norm(const struct tally *t);
double tally_relative_norm(const struct tally *t);

void compare_print_begin(struct compare *x);
void compare_print_finding(struct compare *x, const struct finding *f);
void compare_print_end(struct compare *x);
void compare_print_release(struct compare *x);

#endif
