/*
 * gradient_parts.h - the norm of a gradient of which each of several holders, such as parameter servers, has some
 * parts. Each adds up the squares of its parts, to one sum for every node of a variable's tree that is whole within a
 * part (gradient_norm.h); whoever has the sums of all holders gets the norm, with the bits of one that has the whole
 * gradient. So few doubles travel: at most about 2 log2(n) of a part of n values.
 *
 * Pure.
 */
#ifndef TRAINER_UPDATE_GRADIENT_PARTS_H
#define TRAINER_UPDATE_GRADIENT_PARTS_H

#include "base/error.h"
#include "model/network.h"

#include <stddef.h>

/* Elements [from, to) of the exchange vector, of one variable. */
struct gradient_part {
    size_t from, to;
    int holder;
    size_t variable;  /* index in network_variables() */
    size_t at, count; /* which of its holder's sums are of this part */
};

struct gradient_parts {
    const struct network *network; /* borrowed */
    struct gradient_part *parts;   /* ascending; together all weights */
    size_t count;
    size_t *sums; /* (holders) how many each has */
    int holders;
};

/* held: `count` parts that have from, to and holder, in any order; each may have several variables, and elements that
 * are no weights, which are left out. Together they have all weights, each once. ERR_NOMEM. On OK
 * gradient_parts_release() it. */
int gradient_parts_init(struct gradient_parts *out, const struct network *n, const struct gradient_part *held,
                        size_t count, int holders, struct error *e);
void gradient_parts_release(struct gradient_parts *p); /* zeroed is fine */

/* sums: (holders) those of each. */
double gradient_parts_norm(const struct gradient_parts *p, const double *const *sums);

#endif
