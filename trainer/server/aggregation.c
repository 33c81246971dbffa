#include "trainer/server/aggregation.h"

#include "trainer/collective/exchange.h"
#include "trainer/optimizers/gradient_norm.h"

#include <stdlib.h>
#include <string.h>

struct aggregation {
    struct optimizer *optimizer;
    struct packed_state layout;
    const struct reduction *reduction;
    enum aggregation_kind kind;
    enum aggregation_clipping clipping;
    size_t lead;        /* CLIPS_PUSHES: 1, the factor, before a push's packets */
    size_t row;         /* elements of the packets of one vector, and two for what goes with them */
    real *state, *sent; /* (layout.length) the current state; as last sent */
    real *before;       /* (layout.length) each packet before its last update; together */
    real *incoming;     /* (vectors, row): of a worker, packet by packet, one vector after the other */
    real *outgoing;     /* (workers, row); together: (row), of which only the last packet and the flags are used */
    real *sum;          /* (row) of the current packet, and the weight of packet 0; CLIPS_SUMS: of all packets */
    real *whole;        /* CLIPS_SUMS: (exchange vector) this server's part of the sum */
    const real **rows;  /* (vectors) of the packet that is added: row[at] is its first element */
    struct phase_clock *clock;
};

int aggregation_new(struct aggregation **out, struct optimizer *o, const struct packing *p,
                    const struct reduction *reduction, enum aggregation_kind kind, struct error *e)
{
    struct aggregation *a = calloc(1, sizeof *a);
    const size_t count = (size_t)reduction->count, row = p->length + 2;
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

int aggregation_clip(struct aggregation *a, enum aggregation_clipping clipping, struct error *e)
{
    const size_t count = network_exchange_count(optimizer_network(a->optimizer));

    a->clipping = clipping;
    a->lead = clipping == AGGREGATION_CLIPS_PUSHES;
    /* Pages of what other servers hold are never touched. */
    if (clipping == AGGREGATION_CLIPS_SUMS && !(a->whole = calloc(count + 1, sizeof *a->whole)))
        return error_memory(e, NULL, "for the sum of %zu gradients", count);
    return OK;
}

void aggregation_free(struct aggregation *a)
{
    if (!a)
        return;
    free(a->whole);
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

/* Where the push of a worker begins. */
static real *push_of(const struct aggregation *a, int worker)
{
    return a->incoming + (size_t)a->reduction->first[worker] * a->row;
}

real *aggregation_incoming(struct aggregation *a, int worker, size_t k)
{
    const size_t count = (size_t)reduction_vectors(a->reduction, worker);

    return push_of(a, worker) + (k > 0 ? a->lead + count * a->layout.packing->packets[k].at : 0);
}

/* Where packet k of vector v of this worker is, less its place in the packed vector. */
static const real *row_of(struct aggregation *a, int worker, int v, size_t k)
{
    const struct packet *packet = &a->layout.packing->packets[k];

    return aggregation_incoming(a, worker, k) + (k > 0 ? 0 : a->lead) + (size_t)v * packet->length - packet->at;
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
    if (k + 1 == p->packet_count) {
        out[p->length] = (real)flags;
        out[p->length + 1] = (real)optimizer_gradient_norm(a->optimizer);
    }
}

real aggregation_factor(const struct aggregation *a, int worker)
{
    return *push_of(a, worker);
}

/* Adds packet k of all workers; returns the sum, which begins where the packed vector does. */
static const real *add_together(struct aggregation *a, size_t k)
{
    const struct packet *packet = &a->layout.packing->packets[k];

    if (a->reduction->count == 1)
        return row_of(a, 0, 0, k);
    for (int w = 0; w < a->reduction->workers; w++)
        for (int v = a->reduction->first[w]; v < a->reduction->first[w + 1]; v++)
            a->rows[v] = row_of(a, w, v - a->reduction->first[w], k);
    reduction_sum(a->reduction, a->sum, a->rows, packet->at, packet->at + packet->length);
    return a->sum;
}

/* The same of these workers, with their weight. */
static const real *add_some(struct aggregation *a, const int *workers, int count, size_t k)
{
    const struct packet *packet = &a->layout.packing->packets[k];
    const size_t shared = packing_shared_at(a->layout.packing);

    for (int i = 0; i < count; i++)
        a->rows[i] = row_of(a, workers[i], 0, k);
    if (count == 1)
        return a->rows[0];
    /* The weight anew with each packet, because packet 0 may be further, at an update with other members. */
    exchange_sum(a->sum, a->rows, count, shared, shared + 1);
    exchange_sum(a->sum, a->rows, count, packet->at, packet->at + packet->length);
    return a->sum;
}

/* The sum of packet k, as above. */
static const real *add(struct aggregation *a, const int *workers, int count, size_t k)
{
    return a->kind == AGGREGATION_TOGETHER ? add_together(a, k) : add_some(a, workers, count, k);
}

/* Updates packet k, and makes what is sent to all of it. */
static void apply(struct aggregation *a, size_t k, int64_t step, const real *sum, uint32_t flags)
{
    if (a->kind == AGGREGATION_TOGETHER)
        packed_state_copy(&a->layout, k, a->before, a->state);
    update_packet(a, k, step, sum);
    if (a->kind == AGGREGATION_TOGETHER && k + 1 == a->layout.packing->packet_count)
        copy_out(a, a->outgoing, k, flags);
}

void aggregation_update(struct aggregation *a, const int *workers, int count, size_t k, int64_t step, uint32_t flags)
{
    const enum phase before = phase_clock_enter_bucket(a->clock, PHASE_REDUCING, (int)k);

    if (a->clipping == AGGREGATION_CLIPS_PUSHES) /* asynchronous: there is one */
        optimizer_clip_by(a->optimizer, step, aggregation_factor(a, workers[0]));
    apply(a, k, step, add(a, workers, count, k), flags);
    phase_clock_enter(a->clock, before);
}

void aggregation_add(struct aggregation *a, const int *workers, int count, size_t k)
{
    const struct packing *p = a->layout.packing;
    const struct packet *packet = &p->packets[k];
    const enum phase before = phase_clock_enter_bucket(a->clock, PHASE_REDUCING, (int)k);
    const real *sum = add(a, workers, count, k);

    if (sum != a->sum)
        memcpy(a->sum + packet->at, sum + packet->at, packet->length * sizeof *sum);
    for (size_t at = packet->at, i = 0; i < packet->pieces; i++) {
        const struct extent x = p->pieces[packet->first_piece + i];

        memcpy(a->whole + x.from, a->sum + at, (x.to - x.from) * sizeof *a->whole);
        at += x.to - x.from;
    }
    phase_clock_enter(a->clock, before);
}

void aggregation_squares(const struct aggregation *a, int64_t step, const struct gradient_parts *parts, int server,
                         int tables_elsewhere, double *sums)
{
    const enum phase before = phase_clock_enter(a->clock, PHASE_REDUCING);
    size_t count;
    const struct variable *v = network_variables(optimizer_network(a->optimizer), &count);

    for (size_t i = 0; i < parts->count; i++) {
        const struct gradient_part *part = &parts->parts[i];

        if (part->holder == server && !(tables_elsewhere && v[part->variable].row_width))
            optimizer_squares(a->optimizer, step, a->whole + part->from, a->sum[packing_shared_at(a->layout.packing)],
                              part->from, part->to, sums + part->at);
    }
    phase_clock_enter(a->clock, before);
}

void aggregation_apply(struct aggregation *a, size_t k, int64_t step, uint32_t flags)
{
    const enum phase before = phase_clock_enter_bucket(a->clock, PHASE_UPDATING, (int)k);

    apply(a, k, step, a->sum, flags);
    /* Weight decay has a part in the next norm. */
    packed_state_give_values(&a->layout, a->optimizer, k, a->state + a->layout.packing->packets[k].at);
    phase_clock_enter(a->clock, before);
}

void aggregation_answer(struct aggregation *a, int worker, size_t k, uint32_t flags)
{
    if (a->kind == AGGREGATION_CHOSEN)
        copy_out(a, a->outgoing + (size_t)worker * a->row, k, flags);
}

const real *aggregation_values(const struct aggregation *a, int worker, size_t k, size_t *count)
{
    const struct packing *p = a->layout.packing;
    const int last = k + 1 == p->packet_count;

    *count = p->packets[k].length + (last ? 1 + (size_t)(a->clipping == AGGREGATION_CLIPS_SUMS) : 0);
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
