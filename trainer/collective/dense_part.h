/*
 * dense_part.h - the exchange vector without its tables (variable.row_width), for strategies that send these otherwise:
 * the other elements in their order, packed. Pure.
 */
#ifndef TRAINER_COLLECTIVE_DENSE_PART_H
#define TRAINER_COLLECTIVE_DENSE_PART_H

#include "base/error.h"
#include "trainer/collective/exchange.h"

#include <stddef.h>
#include <stdint.h>

struct dense_part {
    struct extent *extents; /* of the exchange vector, ascending; none is of weights and statistics both */
    size_t count;
    size_t total; /* elements packed; the last one is the batch's weight */
};

/* ERR_NOMEM. On OK dense_part_release() it. */
int dense_part_init(struct dense_part *out, const struct network *n, struct error *e);
void dense_part_release(struct dense_part *p); /* zeroed is fine */

/* Of the values of its variables: a network's weights and statistics without its tables. */
uint64_t dense_part_hash(const struct dense_part *p, struct network *n);

/* How many packed elements are below element `low` of the exchange vector. */
size_t dense_part_below(const struct dense_part *p, size_t low);
/* The elements of the exchange vector from the first to the last of the packed ones in x. */
struct extent dense_part_extent(const struct dense_part *p, struct extent x);
/* packed[i] = its element of `vector`, for i in [from, to). */
void dense_part_gather(const struct dense_part *p, size_t from, size_t to, const real *vector, real *packed);
/* Sets all of these elements of `vector` to the packed ones; others stay. */
void dense_part_scatter(const struct dense_part *p, const real *packed, real *vector);

#endif
