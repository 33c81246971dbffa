/*
 * row_sum.h - the sum of gradients that are rows of one table (struct row_gradient, model/network.h): row by row, a
 * part that does not have the row is skipped. The bits are those of the sum of the parts as dense vectors, in which
 * such rows are zeros, since no value of a row gradient is -0. Source: strategies, "Bitwise reproducible reduction",
 * rule 10.
 */
#ifndef TRAINER_COLLECTIVE_ROW_SUM_H
#define TRAINER_COLLECTIVE_ROW_SUM_H

#include "base/error.h"
#include "model/network.h"
#include "trainer/collective/reduction_tree.h"

#include <stddef.h>
#include <stdint.h>

/* Rows with the memory that they are in. */
struct row_sum {
    struct row_gradient sum; /* points into the arrays below; no rows at first */
    int32_t *rows;           /* (room) */
    real *values;            /* (room, sum.width) */
    size_t *next;            /* (parts_room) */
    size_t room, parts_room;
};

/* For at most `room` rows of table `variable`, summed from at most `parts` parts at a time. ERR_NOMEM. On OK
 * row_sum_release() it. */
int row_sum_init(struct row_sum *s, size_t variable, size_t width, size_t room, size_t parts, struct error *e);
void row_sum_release(struct row_sum *s); /* zeroed is fine */

void row_sum_copy(struct row_sum *s, const struct row_gradient *of);

/*
 * Sets s->sum to the sum of parts[0] to parts[count - 1], none of which is s->sum; together they have at most `room`
 * different rows. nodes (count): what each part is the sum of, as for reduction_tree_sum(): added in the tree. NULL:
 * added in their order. count may be 0.
 */
void row_sum_add(struct row_sum *s, const struct row_gradient *parts, const struct tree_node *nodes, int count);

#endif
