#include "trainer/collective/dense_part.h"

#include <stdlib.h>
#include <string.h>

static int compare_extents(const void *a, const void *b)
{
    const struct extent *x = a, *y = b;

    return (x->from > y->from) - (x->from < y->from);
}

int dense_part_init(struct dense_part *out, const struct network *n, struct error *e)
{
    size_t count;
    const struct variable *v = network_variables(n, &count);
    const size_t end = network_exchange_count(n);
    struct dense_part p = { .extents = calloc(count + 1, sizeof *p.extents) };

    if (!p.extents)
        return error_memory(e, NULL, "for the places of %zu variables", count);
    for (size_t i = 0; i < count; i++) {
        const size_t from = network_exchange_place(n, &v[i]);

        if (!v[i].row_width)
            p.extents[p.count++] = (struct extent){ from, from + v[i].count };
    }
    p.extents[p.count++] = (struct extent){ end - 1, end };
    qsort(p.extents, p.count, sizeof *p.extents, compare_extents);
    for (size_t i = 0; i < p.count; i++)
        p.total += p.extents[i].to - p.extents[i].from;
    *out = p;
    return OK;
}

void dense_part_release(struct dense_part *p)
{
    free(p->extents);
    *p = (struct dense_part){ 0 };
}

uint64_t dense_part_hash(const struct dense_part *p, struct network *n)
{
    const size_t parameters = network_parameter_count(n);
    uint64_t hash = EXCHANGE_HASH_SEED;

    for (size_t i = 0; i + 1 < p->count; i++) { /* the last one is the batch's weight */
        const struct extent x = p->extents[i];
        const real *values = x.from < parameters ? network_parameters(n) + x.from
                                                 : network_statistics(n) + (x.from - parameters);

        hash = exchange_hash(values, (x.to - x.from) * sizeof *values, hash);
    }
    return hash;
}

size_t dense_part_below(const struct dense_part *p, size_t low)
{
    size_t below = 0;

    for (size_t i = 0; i < p->count && p->extents[i].from < low; i++)
        below += (p->extents[i].to < low ? p->extents[i].to : low) - p->extents[i].from;
    return below;
}

/* The element of the exchange vector that is packed at `at`, which must be below total. */
static size_t unpacked(const struct dense_part *p, size_t at)
{
    const struct extent *x = p->extents;

    for (; at >= x->to - x->from; x++)
        at -= x->to - x->from;
    return x->from + at;
}

struct extent dense_part_extent(const struct dense_part *p, struct extent x)
{
    const size_t from = unpacked(p, x.from);

    return (struct extent){ from, x.to > x.from ? unpacked(p, x.to - 1) + 1 : from };
}

void dense_part_gather(const struct dense_part *p, size_t from, size_t to, const real *vector, real *packed)
{
    size_t at = 0; /* where an extent begins */

    for (size_t i = 0; i < p->count && at < to; i++) {
        const size_t length = p->extents[i].to - p->extents[i].from;
        const size_t a = from > at ? from : at, b = to < at + length ? to : at + length;

        if (a < b)
            memcpy(packed + a, vector + p->extents[i].from + (a - at), (b - a) * sizeof *packed);
        at += length;
    }
}

void dense_part_scatter(const struct dense_part *p, const real *packed, real *vector)
{
    for (size_t i = 0; i < p->count; i++) {
        const size_t length = p->extents[i].to - p->extents[i].from;

        memcpy(vector + p->extents[i].from, packed, length * sizeof *packed);
        packed += length;
    }
}
