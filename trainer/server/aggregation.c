#include "trainer/server/aggregation.h"

#include <stdlib.h>
#include <string.h>

struct aggregation {
    const struct optimizer *optimizer;
    struct packed_state layout;
    const struct reduction *reduction;
    int synchronous;
    size_t row;         /* elements of the packets of one vector, and one for flags */
    real *state, *sent; /* (layout.length) the current state; as last sent */
    real *before;       /* (layout.length) each packet before its last update; synchronous */
    real *incoming;     /* (vectors, row): of a worker, packet by packet, one vector after the other */
    real *outgoing;     /* (workers, row); synchronous: (row), of which only the last packet and the flags are used */
    real *sum;          /* (row) of the current packet, and the weight of packet 0 */
    const real **rows;  /* (vectors) of the packet that is added: row[at] is its first element */
    struct phase_clock *clock;
};

int aggregation_new(struct aggregation **out, struct optimizer *o, const struct packing *p,
                    const struct reduction *reduction, int synchronous, struct error *e)
{
    struct aggregation *a = calloc(1, sizeof *a);
    const size_t count = (size_t)reduction->count, row = p->length + 1;

    if (a) {
        a->optimizer = o;
        a->layout = packed_state_of(o, p);
        a->reduction = reduction;
        a->synchronous = synchronous;
        a->row = row;
        a->state = calloc(a->layout.length + 1, sizeof *a->state); /* no state is kept for shared elements */
        a->sent = malloc((a->layout.length + 1) * sizeof *a->sent);
        a->before = synchronous ? malloc((a->layout.length + 1) * sizeof *a->before) : NULL;
        a->incoming = malloc(count * row * sizeof *a->incoming);
        a->outgoing = malloc((synchronous ? 1 : count) * row * sizeof *a->outgoing);
        a->sum = malloc(row * sizeof *a->sum);
        a->rows = calloc(count, sizeof *a->rows);
    }
    if (!a || !a->state || !a->sent || (synchronous && !a->before) || !a->incoming || !a->outgoing || !a->sum ||
        !a->rows) {
        aggregation_free(a);
        return error_memory(e, NULL, "for a server that holds %zu values", p->length);
    }
    packed_state_take(&a->layout, o, a->state);
    if (synchronous)
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

real *aggregation_incoming(struct aggregation *a, int worker, size_t k)
{
    const size_t first = (size_t)a->reduction->first[worker], count = (size_t)reduction_vectors(a->reduction, worker);

    return a->incoming + first * a->row + count * a->layout.packing->packets[k].at;
}

/* Where packet k of vector v of this worker is, less its place in the packed vector. */
static const real *row_of(struct aggregation *a, int worker, int v, size_t k)
{
    const struct packet *packet = &a->layout.packing->packets[k];

    return aggregation_incoming(a, worker, k) + (size_t)v * packet->length - packet->at;
}

void aggregation_update(struct aggregation *a, int worker, size_t k, int64_t step, uint32_t flags)
{
    const struct packing *p = a->layout.packing;
    const struct packet *packet = &p->packets[k];
    real *const out = a->outgoing + (a->synchronous ? 0 : (size_t)worker * a->row);
    const real *sum = row_of(a, a->synchronous ? 0 : worker, 0, k);
    const enum phase before = phase_clock_enter_bucket(a->clock, PHASE_REDUCING, (int)k);

    if (a->synchronous) {
        packed_state_copy(&a->layout, k, a->before, a->state);
        if (a->reduction->count > 1) {
            for (int w = 0; w < a->reduction->workers; w++)
                for (int v = a->reduction->first[w]; v < a->reduction->first[w + 1]; v++)
                    a->rows[v] = row_of(a, w, v - a->reduction->first[w], k);
            reduction_sum(a->reduction, a->sum, a->rows, packet->at, packet->at + packet->length);
            sum = a->sum;
        }
    }
    phase_clock_enter_bucket(a->clock, PHASE_UPDATING, (int)k);
    for (size_t at = packet->at, i = 0; i < packet->pieces; i++) {
        const struct extent x = p->pieces[packet->first_piece + i];
        const struct optimizer_state state = packed_state_at(&a->layout, a->state, at);

        optimizer_apply_to(a->optimizer, step, sum + at, sum[packing_shared_at(p)], x.from, x.to, &state);
        at += x.to - x.from;
    }
    /* An asynchronous worker's answer may still be being sent when the next push changes the values. The last packet is
     * one longer than its values. */
    if (!a->synchronous || k + 1 == p->packet_count)
        memcpy(out + packet->at, a->state + packet->at, packet->length * sizeof *out);
    if (k + 1 == p->packet_count)
        out[p->length] = (real)flags;
    phase_clock_enter(a->clock, before);
}

const real *aggregation_values(const struct aggregation *a, int worker, size_t k, size_t *count)
{
    const struct packing *p = a->layout.packing;
    const int last = k + 1 == p->packet_count;

    *count = p->packets[k].length + (size_t)last;
    if (a->synchronous)
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
