#include "trainer/server/aggregation.h"

#include "trainer/collective/exchange.h"

#include <stdlib.h>
#include <string.h>

struct aggregation {
    const struct optimizer *optimizer;
    struct packed_state layout;
    const struct reduction *reduction;
    enum aggregation_kind kind;
    size_t row;         /* elements of the packets of one vector, and one for flags */
    real *state, *sent; /* (layout.length) the current state; as last sent */
    real *before;       /* (layout.length) each packet before its last update; together */
    real *incoming;     /* (slots, vectors, row): of a worker, packet by packet, one vector after the other */
    real *outgoing;     /* (workers, row); together: (row), of which only the last packet and the flags are used */
    real *sum;          /* (row) of the current packet, and the weight of packet 0 */
    const real **rows;  /* (slots * vectors) of the packet that is added: row[at] is its first element */
    struct phase_clock *clock;
};

int aggregation_new(struct aggregation **out, struct optimizer *o, const struct packing *p,
                    const struct reduction *reduction, enum aggregation_kind kind, int slots, struct error *e)
{
    struct aggregation *a = calloc(1, sizeof *a);
    const size_t count = (size_t)reduction->count * (size_t)slots, row = p->length + 1;
    const int together = kind == AGGREGATION_TOGETHER;

    if (a) {
        a->optimizer = o;
        a->layout = packed_state_of(o, p);
        a->reduction = reduction;
        a->kind = kind;
        a->row = row;
        a->state = calloc(a->layout.length + 1, sizeof *a->state); /* no state is kept for shared elements */
        a->sent = malloc((a->layout.length + 1) * sizeof *a->sent);
        a->before = together ? malloc((a->layout.length + 1) * sizeof *a->before) : NULL;
        a->incoming = malloc(count * row * sizeof *a->incoming);
        a->outgoing = malloc((together ? 1 : (size_t)reduction->workers) * row * sizeof *a->outgoing);
        a->sum = malloc(row * sizeof *a->sum);
        a->rows = calloc(count, sizeof *a->rows);
    }
    if (!a || !a->state || !a->sent || (together && !a->before) || !a->incoming || !a->outgoing || !a->sum ||
        !a->rows) {
        aggregation_free(a);
        return error_memory(e, NULL, "for a server that holds %zu values", p->length);
    }
    packed_state_take(&a->layout, o, a->state);
    if (together)
        memcpy(a->before, a->state, a->layout.length * sizeof *a->before);
    *out = a;
    return OK;
}

void aggregation_free(struct aggregation *a)
{
    if (!a)
        return;
    free(a->state);
    free(a->sent);
    free(a->before);
    free(a->incoming);
    free(a->outgoing);
    free(a->sum);
    free(a->rows);
    free(a);
}

void aggregation_set_clock(struct aggregation *a, struct phase_clock *clock)
{
    a->clock = clock;
}

real *aggregation_incoming(struct aggregation *a, int row, size_t k)
{
    const int worker = row % a->reduction->workers;
    const size_t slot = (size_t)(row / a->reduction->workers), count = (size_t)reduction_vectors(a->reduction, worker);
    const size_t first = slot * (size_t)a->reduction->count + (size_t)a->reduction->first[worker];

    return a->incoming + first * a->row + count * a->layout.packing->packets[k].at;
}

/* Where packet k of vector v of this row is, less its place in the packed vector. */
static const real *row_of(struct aggregation *a, int row, int v, size_t k)
{
    const struct packet *packet = &a->layout.packing->packets[k];

    return aggregation_incoming(a, row, k) + (size_t)v * packet->length - packet->at;
}

/* Updates packet k with its sum; both arrays begin where the packed vector does. */
static void update_packet(struct aggregation *a, size_t k, int64_t step, const real *sum)
{
    const struct packing *p = a->layout.packing;
    const struct packet *packet = &p->packets[k];

    phase_clock_enter_bucket(a->clock, PHASE_UPDATING, (int)k);
    for (size_t at = packet->at, i = 0; i < packet->pieces; i++) {
        const struct extent x = p->pieces[packet->first_piece + i];
        const struct optimizer_state state = packed_state_at(&a->layout, a->state, at);

        optimizer_apply_to(a->optimizer, step, sum + at, sum[packing_shared_at(p)], x.from, x.to, &state);
        at += x.to - x.from;
    }
}

/* Copies packet k for a worker, or all; the last packet is one longer than its values. */
static void copy_out(struct aggregation *a, real *out, size_t k, uint32_t flags)
{
    const struct packing *p = a->layout.packing;
    const struct packet *packet = &p->packets[k];

    memcpy(out + packet->at, a->state + packet->at, packet->length * sizeof *out);
    if (k + 1 == p->packet_count)
        out[p->length] = (real)flags;
}

void aggregation_update(struct aggregation *a, int worker, size_t k, int64_t step, uint32_t flags)
{
    const struct packing *p = a->layout.packing;
    const struct packet *packet = &p->packets[k];
    const int together = a->kind == AGGREGATION_TOGETHER;
    real *const out = a->outgoing + (together ? 0 : (size_t)worker * a->row);
    const real *sum = row_of(a, together ? 0 : worker, 0, k);
    const enum phase before = phase_clock_enter_bucket(a->clock, PHASE_REDUCING, (int)k);

    if (together) {
        packed_state_copy(&a->layout, k, a->before, a->state);
        if (a->reduction->count > 1) {
            for (int w = 0; w < a->reduction->workers; w++)
                for (int v = a->reduction->first[w]; v < a->reduction->first[w + 1]; v++)
                    a->rows[v] = row_of(a, w, v - a->reduction->first[w], k);
            reduction_sum(a->reduction, a->sum, a->rows, packet->at, packet->at + packet->length);
            sum = a->sum;
        }
    }
    update_packet(a, k, step, sum);
    /* An asynchronous worker's answer may still be being sent when the next push changes the values. */
    if (!together || k + 1 == p->packet_count)
        copy_out(a, out, k, flags);
    phase_clock_enter(a->clock, before);
}

void aggregation_update_chosen(struct aggregation *a, const int *rows, int count, size_t k, int64_t step)
{
    const struct packing *p = a->layout.packing;
    const struct packet *packet = &p->packets[k];
    const size_t shared = packing_shared_at(p);
    const enum phase before = phase_clock_enter_bucket(a->clock, PHASE_REDUCING, (int)k);

    for (int i = 0; i < count; i++)
        a->rows[i] = row_of(a, rows[i], 0, k);
    if (count > 1) {
        /* The weight anew with each packet, because packet 0 may be further, at an update with other members. */
        exchange_sum(a->sum, a->rows, count, shared, shared + 1);
        exchange_sum(a->sum, a->rows, count, packet->at, packet->at + packet->length);
    }
    update_packet(a, k, step, count > 1 ? a->sum : a->rows[0]);
    phase_clock_enter(a->clock, before);
}

void aggregation_answer(struct aggregation *a, int worker, size_t k, uint32_t flags)
{
    copy_out(a, a->outgoing + (size_t)worker * a->row, k, flags);
}

const real *aggregation_values(const struct aggregation *a, int worker, size_t k, size_t *count)
{
    const struct packing *p = a->layout.packing;
    const int last = k + 1 == p->packet_count;

    *count = p->packets[k].length + (size_t)last;
    if (a->kind == AGGREGATION_TOGETHER)
        return (last ? a->outgoing : a->state) + p->packets[k].at;
    return a->outgoing + (size_t)worker * a->row + p->packets[k].at;
}

const real *aggregation_snapshot(struct aggregation *a, int before, size_t *count)
{
    *count = a->layout.length;
    if (before)
        return a->before;
    memcpy(a->sent, a->state, a->layout.length * sizeof *a->sent);
    return a->sent;
}
