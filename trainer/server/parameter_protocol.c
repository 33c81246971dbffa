#include "trainer/server/parameter_protocol.h"

#include <string.h>

/* The part of x that array a holds: its place in the array and its length. */
static size_t overlap(struct extent x, struct optimizer_array a, size_t *at)
{
    size_t from = x.from > a.base ? x.from : a.base, to = x.to < a.base + a.count ? x.to : a.base + a.count;

    if (from >= to)
        return 0;
    *at = from - a.base;
    return to - from;
}

size_t state_gather(struct optimizer *o, const struct packing *p, size_t k, enum optimizer_array_kind first,
                    enum optimizer_array_kind last, real *packed)
{
    const struct packet *packet = &p->packets[k];
    size_t done = 0, at;

    for (size_t i = 0; i < packet->pieces; i++)
        for (int kind = (int)first; kind <= (int)last; kind++) {
            struct optimizer_array a = optimizer_array(o, (enum optimizer_array_kind)kind);
            size_t n = overlap(p->pieces[packet->first_piece + i], a, &at);

            if (packed && n > 0)
                memcpy(packed + done, a.values + at, n * sizeof *packed);
            done += n;
        }
    return done;
}

size_t state_scatter(struct optimizer *o, const struct packing *p, size_t k, enum optimizer_array_kind first,
                     enum optimizer_array_kind last, const real *packed)
{
    const struct packet *packet = &p->packets[k];
    size_t done = 0, at;

    for (size_t i = 0; i < packet->pieces; i++)
        for (int kind = (int)first; kind <= (int)last; kind++) {
            struct optimizer_array a = optimizer_array(o, (enum optimizer_array_kind)kind);
            size_t n = overlap(p->pieces[packet->first_piece + i], a, &at);

            if (n > 0)
                memcpy(a.values + at, packed + done, n * sizeof *packed);
            done += n;
        }
    return done;
}

size_t snapshot_gather(struct optimizer *o, const struct packing *p, real *packed)
{
    size_t done = 0;

    for (size_t k = 0; k < p->packet_count; k++)
        done += state_gather(o, p, k, ARRAY_WEIGHTS, ARRAY_BIASED, packed ? packed + done : NULL);
    return done;
}

void snapshot_scatter(struct optimizer *o, const struct packing *p, const real *packed)
{
    for (size_t k = 0; k < p->packet_count; k++)
        packed += state_scatter(o, p, k, ARRAY_WEIGHTS, ARRAY_BIASED, packed);
}
