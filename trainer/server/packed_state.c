#include "trainer/server/packed_state.h"

#include <string.h>

enum { ARRAYS = 4 };

/* The optimizer's arrays that packed array i consists of: one of weights, one of statistics or ARRAY_KINDS. */
static const struct {
    enum optimizer_array_kind weights, statistics;
} arrays[ARRAYS] = {
    { ARRAY_WEIGHTS, ARRAY_STATISTICS },
    { ARRAY_SLOT_1, ARRAY_BIASED },
    { ARRAY_SLOT_2, ARRAY_KINDS },
    { ARRAY_AVERAGES, ARRAY_KINDS },
};

struct packed_state packed_state_of(struct optimizer *o, const struct packing *p)
{
    struct packed_state s = { .packing = p, .length = p->length };
    size_t *const begins[ARRAYS] = { NULL, &s.first, &s.second, &s.averages };

    for (int i = 1; i < ARRAYS; i++)
        if (p->length > 0 &&
            (optimizer_array(o, arrays[i].weights).count || optimizer_array(o, arrays[i].statistics).count)) {
            *begins[i] = s.length;
            s.length += p->length;
        }
    return s;
}

/* Where packed array i begins; 0 for one that is not there, and for the values. */
static size_t array_begin(const struct packed_state *s, int i)
{
    return i == 0 ? 0 : i == 1 ? s->first : i == 2 ? s->second : s->averages;
}

/* Copies the elements of extent x that the optimizer's array a holds; x begins at `packed`. */
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

/* Packet k of array i, which begins at `packed`, out of the optimizer; or from `given` into it. */
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
    for (int i = 0; i < ARRAYS; i++)
        for (size_t k = 0; k < s->packing->packet_count && (i == 0 || array_begin(s, i) > 0); k++) {
            const size_t at = array_begin(s, i) + s->packing->packets[k].at;

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
    copy_packet(s, o, 0, k, NULL, values);
}

struct optimizer_state packed_state_at(const struct packed_state *s, real *packed, size_t at)
{
    return (struct optimizer_state){ .values = packed + at, .first = s->first ? packed + s->first + at : NULL,
                                     .second = s->second ? packed + s->second + at : NULL,
                                     .averages = s->averages ? packed + s->averages + at : NULL };
}

void packed_state_copy(const struct packed_state *s, size_t k, real *to, const real *from)
{
    const struct packet *packet = &s->packing->packets[k];

    for (int i = 0; i < ARRAYS; i++) {
        const size_t at = array_begin(s, i) + packet->at;

        if (i == 0 || array_begin(s, i) > 0)
            memcpy(to + at, from + at, packet->length * sizeof *to);
    }
}
