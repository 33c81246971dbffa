#include "trainer/server/tables/row_gather.h"

#include "trainer/collective/exchange.h"
#include "trainer/collective/places.h"
#include "trainer/server/tables/row_packet.h"
#include "trainer/server/tables/table_protocol.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

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

int row_gather_begin(struct row_gather *g, int64_t step, struct error *e)
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

int row_gather_send(struct row_gather *g, const struct micro_shards *m, real *const *vectors, struct error *e)
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

int row_gather_add(struct row_gather *g, struct error *e)
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

void row_gather_measure(const struct row_gather *g, const real *sum)
{
    table_update_measure(g->update, g->step, sum);
}

void row_gather_update(struct row_gather *g)
{
    table_update_apply(g->update, g->step);
}

int row_gather_finish(struct row_gather *g, struct error *e)
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

int row_gather_new(struct row_gather **out, const struct table_setup *setup, int worker, struct error *e)
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

void row_gather_free(struct row_gather *g)
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
