#include "trainer/server/packed_state.h"

#include <stdint.h>
#include <string.h>

/* The optimizer's arrays of which each packed array consists: one of weights, one of statistics or ARRAY_KINDS. */
static const struct {
    enum optimizer_array_kind weights, statistics;
} arrays[PACKED_ARRAYS] = {
    [PACKED_VALUES] = { ARRAY_WEIGHTS, ARRAY_STATISTICS },
    [PACKED_FIRST] = { ARRAY_SLOT_1, ARRAY_BIASED },
    [PACKED_SECOND] = { ARRAY_SLOT_2, ARRAY_KINDS },
    [PACKED_AVERAGES] = { ARRAY_AVERAGES, ARRAY_KINDS },
};

struct packed_state packed_state_of(struct optimizer *o, const struct packing *p)
{
    struct packed_state s = { .packing = p };

    for (int i = 0; i < PACKED_ARRAYS; i++) {
        const int kept = optimizer_array(o, arrays[i].weights).count || optimizer_array(o, arrays[i].statistics).count;

        s.begin[i] = kept ? s.length : SIZE_MAX;
        s.length += kept ? p->length : 0;
    }
    return s;
}

/* Copies the elements of extent x in the optimizer's array a; x begins at `packed`. */
static void copy_overlap(struct extent x, struct optimizer_array a, real *packed, const real *given)
{
    const size_t from = x.from > a.base ? x.from : a.base, to = x.to < a.base + a.count ? x.to : a.base + a.count;

    if (from >= to)
        return;
    if (given)
        memcpy(a.values + (from - a.base), given + (from - x.from), (to - from) * sizeof *given);
    else
        memcpy(packed + (from - x.from), a.values + (from - a.base), (to - from) * sizeof *packed);
}

/* Copies packet k of array i, which begins at `packed`, from the optimizer; or from `given` to it. */
static void copy_packet(const struct packed_state *s, struct optimizer *o, int i, size_t k, real *packed,
                        const real *given)
{
    const struct packet *packet = &s->packing->packets[k];

    for (size_t done = 0, j = 0; j < packet->pieces; j++) {
        const struct extent x = s->packing->pieces[packet->first_piece + j];

        copy_overlap(x, optimizer_array(o, arrays[i].weights), packed ? packed + done : NULL,
                     given ? given + done : NULL);
        copy_overlap(x, optimizer_array(o, arrays[i].statistics), packed ? packed + done : NULL,
                     given ? given + done : NULL);
        done += x.to - x.from;
    }
}

static void copy_all(const struct packed_state *s, struct optimizer *o, real *packed, const real *given)
{
    for (int i = 0; i < PACKED_ARRAYS; i++)
        for (size_t k = 0; s->begin[i] != SIZE_MAX && k < s->packing->packet_count; k++) {
            const size_t at = s->begin[i] + s->packing->packets[k].at;

            copy_packet(s, o, i, k, packed ? packed + at : NULL, given ? given + at : NULL);
        }
}

void packed_state_take(const struct packed_state *s, struct optimizer *o, real *packed)
{
    memset(packed, 0, s->length * sizeof *packed);
    copy_all(s, o, packed, NULL);
}

void packed_state_give(const struct packed_state *s, struct optimizer *o, const real *packed)
{
    copy_all(s, o, NULL, packed);
}

void packed_state_give_values(const struct packed_state *s, struct optimizer *o, size_t k, const real *values)
{
    copy_packet(s, o, PACKED_VALUES, k, NULL, values);
}

static real *array_at(const struct packed_state *s, int i, real *packed, size_t at)
{
    return s->begin[i] == SIZE_MAX ? NULL : packed + s->begin[i] + at;
}

struct optimizer_state packed_state_at(const struct packed_state *s, real *packed, size_t at)
{
    return (struct optimizer_state){ .values = array_at(s, PACKED_VALUES, packed, at),
                                     .first = array_at(s, PACKED_FIRST, packed, at),
                                     .second = array_at(s, PACKED_SECOND, packed, at),
                                     .averages = array_at(s, PACKED_AVERAGES, packed, at) };
}

void packed_state_copy(const struct packed_state *s, size_t k, real *to, const real *from)
{
    const struct packet *packet = &s->packing->packets[k];

    for (int i = 0; i < PACKED_ARRAYS; i++)
        if (s->begin[i] != SIZE_MAX)
            memcpy(to + s->begin[i] + packet->at, from + s->begin[i] + packet->at, packet->length * sizeof *to);
}
