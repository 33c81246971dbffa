/*
 * gathered_rows.c - every rank holds all weights, tables too. The gradients of dense variables are all-reduced; those
 * of tables are all-gathered as rows, as Horovod does. Every rank applies the same update to both. Source: strategies,
 * 5.1.
 */
#include "trainer/strategies/gathered_rows.h"

#include "base/error.h"
#include "trainer/collective/exchange.h"
#include "trainer/collective/micro_shards.h"
#include "trainer/collective/places.h"
#include "trainer/server/row_packet.h"
#include "trainer/server/table_protocol.h"
#include "trainer/server/table_server.h"
#include "trainer/strategies/dense_exchange.h"

#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- row gather -------------------------------------------------------------------------------------------------- */

/*
 * The gradients of tables all-gathered, as Horovod does with TensorFlow's IndexedSlices: every worker
 * sends the rows that its batch used to all others, and each adds those of all and makes the same update of its own,
 * whole tables. No servers. The sums are those of table_server.h, by the rule `mean`, so the bits are those of the same
 * gradients added as dense vectors. Source: strategies, 5.1, 5.
 *
 *   worker -> worker    ROWS    the sums of its vectors (row_packet.h), in every step
 *
 * A worker that abandons a step sends no rows, so that nobody waits for them. One thread.
 */

struct row_gather;

enum { ANY_SERVER = -1 };

/* with one other worker */
struct partner {
    struct message out, in;
    char *rows; /* as they come */
    size_t room, most;
};

struct row_gather {
    struct table_setup setup;
    int worker;
    int64_t step;
    struct table_parts parts;
    struct partner *with;           /* (workers); this worker's own has nothing */
    char *own;                      /* the message to all */
    struct row_gradient *gradients; /* (vectors of all, tables) */
    real *weights;                  /* (vectors of all) */
    struct table_update *update;
    char *late; /* (workers) */
};

static size_t gather_vectors(const struct row_gather *g, int worker)
{
    return (size_t)reduction_vectors(g->setup.reduction, worker);
}

/* Where a worker's sums are among all. */
static struct row_gradient *gradients_of(const struct row_gather *g, int worker)
{
    return g->gradients + (size_t)g->setup.reduction->first[worker] * g->parts.table_count;
}

static real *weights_of(const struct row_gather *g, int worker)
{
    return g->weights + g->setup.reduction->first[worker];
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

/* Before training: starts receiving the rows of `step`. */
static int row_gather_begin(struct row_gather *g, int64_t step, struct error *e)
{
    int rc = OK;

    g->step = step;
    for (int k = 0; k < g->setup.workers && rc == OK; k++)
        if (k != g->worker)
            rc = world_receive(g->setup.world, k, TAG_ROWS, g->with[k].rows, g->with[k].room, &g->with[k].in, e);
    return rc;
}

/* 1: all messages of one direction are done. late[k]: with whom they are not. */
static int all_done(struct row_gather *g, int incoming, struct error *e)
{
    int done = 1, rc;

    for (int k = 0; k < g->setup.workers; k++) {
        struct partner *with = &g->with[k];

        if ((rc = message_done(g->setup.world, incoming ? &with->in : &with->out, e)) < 0)
            return rc;
        g->late[k] = k != g->worker && !rc;
        done = done && !g->late[k];
    }
    return done;
}

static int gather_late_sentence(struct row_gather *g, const struct patience *p, struct error *e)
{
    size_t count;
    const struct variable *v = network_variables(optimizer_network(g->setup.optimizer), &count);
    struct buffer workers = BUFFER_EMPTY;
    int rc;

    if (!patience_speaks(p, g->late, g->setup.workers))
        return 0;
    world_narrow(g->setup.world, g->late, g->setup.workers);
    places_text(&workers, world_places(g->setup.world), g->late, g->setup.workers, 1);
    rc = patience_over(p, e, "at step %" PRId64 " for %s, for rows of %s%s", g->step, buffer_text(&workers),
                       v[g->parts.tables[0].variable].name, g->parts.table_count > 1 ? " and other tables" : "");
    buffer_release(&workers);
    return rc;
}

static int wait_for_all(struct row_gather *g, int incoming, struct error *e)
{
    const enum phase before = phase_clock_enter(g->setup.clock, PHASE_WAITING);
    struct patience p;
    int rc;

    patience_init(&p, g->setup.world, world_deadline(g->setup.world));
    while ((rc = all_done(g, incoming, e)) == 0)
        if (!patience_pause(&p) && (rc = gather_late_sentence(g, &p, e)) < 0)
            break;
    phase_clock_enter(g->setup.clock, before);
    return rc < 0 ? rc : OK;
}

/* After it: sends this worker's, out of m, whose other sums are in vectors; m NULL: the step is abandoned. They may be
 * waited for only after row_gather_begin(). */
static int row_gather_send(struct row_gather *g, const struct micro_shards *m, real *const *vectors, struct error *e)
{
    const size_t last = network_exchange_count(optimizer_network(g->setup.optimizer)) - 1;
    const struct row_packet_head head = { .step = g->step, .count = (int32_t)gather_vectors(g, g->worker) };
    struct row_gradient *gradients = gradients_of(g, g->worker);
    real *weights = weights_of(g, g->worker);
    size_t bytes;
    int rc = wait_for_all(g, 0, e); /* what was sent last is in g->own */

    for (size_t v = 0; v < gather_vectors(g, g->worker); v++) {
        weights[v] = m ? vectors[v][last] : 0;
        for (size_t t = 0; t < g->parts.table_count; t++) {
            const struct table *table = &g->parts.tables[t];
            const struct row_gradient none = { .variable = table->variable, .width = table->width };

            gradients[v * g->parts.table_count + t] = m ? *micro_shards_rows(m, (int)v, table->variable) : none;
        }
    }
    bytes = row_packet_put_sums(g->own, &head, &g->parts, ANY_SERVER, gradients, weights);
    for (int k = 0; k < g->setup.workers && rc == OK; k++) {
        const int to = exchange_partner(g->setup.workers, g->worker, k);

        if (to != g->worker)
            rc = world_send(g->setup.world, to, TAG_ROWS, g->own, bytes, &g->with[to].out, e);
    }
    return rc;
}

/* Lets the worker's gradients be those that have come. */
static int take(struct row_gather *g, int worker, struct error *e)
{
    struct partner *with = &g->with[worker];
    struct row_packet_head head;
    int rc = row_packet_get_sums(with->rows, with->room, &g->parts, ANY_SERVER, gather_vectors(g, worker), with->most,
                                 &head, gradients_of(g, worker), weights_of(g, worker), e);

    if (rc == OK && head.step != g->step)
        rc = error_set(e, ERR_CORRUPT, "the rows of step %" PRId64 ", not %" PRId64, head.step, g->step);
    return rc < 0 ? world_sign(g->setup.world, worker, e) : OK;
}

/* Waits for the rows of all others, and adds them. ERR_PEER, with a sentence that names those waited for; ERR_CORRUPT:
 * what came is not sound. */
static int row_gather_add(struct row_gather *g, struct error *e)
{
    enum phase before;
    int rc = wait_for_all(g, 1, e);

    for (int k = 0; k < g->setup.workers && rc == OK; k++)
        if (k != g->worker)
            rc = take(g, k, e);
    if (rc < 0)
        return rc;
    before = phase_clock_enter(g->setup.clock, PHASE_REDUCING);
    table_update_add(g->update, g->gradients, g->weights);
    phase_clock_enter(g->setup.clock, before);
    return OK;
}

/* Finds the norm of the whole gradient, if it is to be clipped (optimizer_measure_rows()): sum: the exchange vector's,
 * in which tables are not read. */
static void row_gather_measure(const struct row_gather *g, const real *sum)
{
    table_update_measure(g->update, g->step, sum);
}

/* Makes the update of the tables. */
static void row_gather_update(struct row_gather *g)
{
    table_update_apply(g->update, g->step);
}

/* After the last step: waits until all that was sent has left. */
static int row_gather_finish(struct row_gather *g, struct error *e)
{
    return wait_for_all(g, 0, e);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* *rows becomes the most rows that all workers send together. */
static int make_room(struct row_gather *g, size_t *rows, struct error *e)
{
    const struct table_setup *setup = &g->setup;
    const size_t vectors = (size_t)setup->reduction->count;
    const size_t most = table_parts_rows_most(&g->parts, optimizer_network(setup->optimizer), setup->samples);
    int good;

    *rows = 0;
    g->with = calloc((size_t)setup->workers, sizeof *g->with);
    g->late = calloc((size_t)setup->workers, 1);
    g->gradients = calloc(vectors * g->parts.table_count + 1, sizeof *g->gradients);
    g->weights = calloc(vectors + 1, sizeof *g->weights);
    good = g->with && g->late && g->gradients && g->weights;
    for (int k = 0; k < setup->workers && good; k++) {
        struct partner *with = &g->with[k];

        with->most = most * gather_vectors(g, k);
        with->room = row_packet_sums_room(&g->parts, with->most, gather_vectors(g, k));
        *rows += with->most;
        if (with->room > INT_MAX)
            return error_set(e, ERR_ARG,
                             "--sparse-exchange all-gather: a batch of %zu samples uses rows of %zu bytes, "
                             "more than a message can have",
                             setup->samples, with->room);
        *(k == g->worker ? &g->own : &with->rows) = malloc(with->room);
        good = k == g->worker ? g->own != NULL : with->rows != NULL;
    }
    return good ? OK : error_memory(e, NULL, "for the rows of %d workers", setup->workers);
}

static void row_gather_free(struct row_gather *g);

/* Of setup: world, optimizer, reduction, workers, samples, clock; it is copied, its pointers are borrowed. ERR_NOMEM;
 * ERR_ARG: more rows than a message can have. On OK *out is yours, row_gather_free() it. */
static int row_gather_new(struct row_gather **out, const struct table_setup *setup, int worker, struct error *e)
{
    struct row_gather *g = calloc(1, sizeof *g);
    size_t rows;
    int rc;

    if (!g)
        return error_memory(e, NULL, "for the rows of %d workers", setup->workers);
    g->setup = *setup;
    g->worker = worker;
    if ((rc = table_parts_make(&g->parts, optimizer_network(setup->optimizer), 1, 1, e)) == OK &&
        (rc = make_room(g, &rows, e)) == OK)
        rc = table_update_new(&g->update, setup->optimizer, &g->parts, setup->reduction, SPARSE_MEAN, rows, e);
    if (rc < 0) {
        row_gather_free(g);
        return rc;
    }
    *out = g;
    return OK;
}

static void row_gather_free(struct row_gather *g)
{
    if (!g)
        return;
    for (int k = 0; g->with && k < g->setup.workers; k++)
        free(g->with[k].rows);
    free(g->with);
    free(g->own);
    free(g->late);
    free(g->gradients);
    free(g->weights);
    table_update_free(g->update);
    table_parts_release(&g->parts);
    free(g);
}

/* ---- gathered rows ----------------------------------------------------------------------------------------------- */

struct gathered_rows {
    struct strategy base;
    struct dense_exchange dense;
    struct row_gather *rows;
    struct tally_part *parts; /* (workers) */
};

static struct gathered_rows *gathered_of(struct strategy *s)
{
    return (struct gathered_rows *)s;
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

static int gathered_step_begin(struct strategy *s, int64_t step, struct error *e)
{
    struct gathered_rows *g = gathered_of(s);

    dense_exchange_begin(&g->dense, step);
    return row_gather_begin(g->rows, s->global_step, e);
}

static void gathered_ready(struct strategy *s, size_t low)
{
    dense_exchange_ready(&gathered_of(s)->dense, low);
}

/* Finds the norm of the whole gradient, for which the dense part's sum is put where the exchange vector has it. */
static void measure(struct gathered_rows *g)
{
    struct strategy *s = &g->base;
    real *whole = g->dense.vectors[0]; /* the next training overwrites it */

    if (optimizer_options_of(s->optimizer)->clip_norm <= 0)
        return;
    dense_part_scatter(&g->dense.part, g->dense.transport->result, whole);
    row_gather_measure(g->rows, whole);
}

static int gathered_step_end(struct strategy *s, struct tally *tally, struct error *e)
{
    struct gathered_rows *g = gathered_of(s);
    const struct tally_part mine = strategy_part(s, tally);
    int rc;

    rc = row_gather_send(g->rows, tally->flags & TALLY_LEFT ? NULL : s->shards, g->dense.vectors, e);
    if (rc < 0 || (rc = dense_exchange_complete(&g->dense, &mine, g->parts, e)) < 0 ||
        (rc = row_gather_add(g->rows, e)) < 0)
        return rc;
    if (mine.hashed && (rc = strategy_compare_parts(s, g->parts, e)) < 0)
        return rc;
    *tally = tally_sum(g->parts, s->workers, s->global_step, s->options.max_steps);
    if (tally->flags & TALLY_LEFT)
        return OK;
    phase_clock_enter(s->options.clock, PHASE_UPDATING);
    measure(g);
    strategy_changes(s);
    dense_exchange_update(&g->dense);
    row_gather_update(g->rows);
    s->global_step = tally->global_step;
    return OK;
}

static int gathered_collect(struct strategy *s, int last, int64_t *step, struct error *e)
{
    (void)last;
    (void)e;
    *step = s->global_step; /* rank 0's replica is the state */
    return OK;
}

static int gathered_finish(struct strategy *s, struct error *e)
{
    const int rc = row_gather_finish(gathered_of(s)->rows, e);

    return rc < 0 ? rc : strategy_compare_replicas(s, 1, e);
}

static void gathered_report(const struct strategy *s, struct strategy_report *r)
{
    const struct gathered_rows *g = (const struct gathered_rows *)s;
    const struct world_sent *sent = world_sent(s->world);
    const int64_t steps = s->global_step - s->options.first_step;
    int64_t bytes = 0;

    for (int w = 0; w < s->workers; w++)
        bytes += sent[w].steps + sent[w].memory;
    *r = (struct strategy_report){ .transport = g->dense.transport->operations->name,
                                   .gradient_norm = optimizer_gradient_norm(s->optimizer) };
    r->bytes_step = steps > 0 ? (double)bytes / (double)steps : 0;
}

static void gathered_release(struct strategy *s)
{
    struct gathered_rows *g = gathered_of(s);

    dense_exchange_release(&g->dense);
    row_gather_free(g->rows);
    free(g->parts);
    free(g);
}

static const struct strategy_operations operations = {
    .step_begin = gathered_step_begin,
    .ready = gathered_ready,
    .step_end = gathered_step_end,
    .collect = gathered_collect,
    .finish = gathered_finish,
    .report = gathered_report,
    .free = gathered_release,
};

/* ---- the start --------------------------------------------------------------------------------------------------- */

static int gathered_room(struct gathered_rows *g, struct error *e)
{
    const struct strategy *s = &g->base;
    const struct table_setup setup = {
        .world = s->world,
        .optimizer = s->optimizer,
        .reduction = &s->reduction,
        .workers = s->workers,
        .samples = (size_t)s->options.batch_size,
        .clock = s->options.clock,
    };
    const int rc = dense_exchange_init(&g->dense, s, e);

    if (rc < 0)
        return rc;
    g->parts = calloc((size_t)s->workers, sizeof *g->parts);
    return g->parts ? row_gather_new(&g->rows, &setup, s->worker, e) : error_memory(e, NULL, "to start");
}

int gathered_rows_start(struct strategy **out, const struct strategy *common, const char *transport, struct error *e)
{
    struct gathered_rows *g = calloc(1, sizeof *g);
    int rc = g ? OK : error_memory(e, NULL, "to start");

    if (g) {
        g->base = *common;
        g->base.operations = &operations;
        g->base.holds_state = 1;
        g->base.takes_rows = 1;
        rc = gathered_room(g, e);
    }
    if ((rc = world_agree(common->world, "make room for the rows of tables", rc, e)) == OK)
        rc = dense_exchange_open(&g->dense, transport, 0, e);
    if (rc < 0) {
        if (g)
            gathered_release(&g->base);
        return rc;
    }
    g->base.vectors = g->dense.vectors;
    *out = &g->base;
    return OK;
}
