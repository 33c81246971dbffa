/*
 * gathered_rows.c - every rank holds all weights, tables too. The gradients of dense variables are all-reduced; those
 * of tables are all-gathered as rows (trainer/server/tables/row_gather.h), as Horovod does. Every rank applies the same
 * update to both. Source: strategies, 5.1.
 */
#include "trainer/strategies/gathered_rows.h"

#include "trainer/server/tables/row_gather.h"
#include "trainer/strategies/dense_exchange.h"

#include <stdlib.h>

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
