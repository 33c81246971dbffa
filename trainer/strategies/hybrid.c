/*
 * hybrid.c - Parallax's hybrid: gradients of dense variables are all-reduced over the workers, as with mpi, and each
 * applies the same update; tables are on servers, as with ps, and only the rows that a batch uses travel
 * (trainer/server/table_server.h). Source: strategies, section 6.
 *
 * A model without tables is trained as with mpi, on all ranks. Of one that has nothing else, only the batches' weight
 * is all-reduced.
 */
#include "trainer/strategies/strategy.h"

#include "base/clock.h"
#include "trainer/collective/places.h"
#include "trainer/server/norm_exchange.h"
#include "trainer/server/partition_search.h"
#include "trainer/server/table_server.h"
#include "trainer/server/table_worker.h"
#include "trainer/strategies/dense_exchange.h"
#include "trainer/strategies/shared_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hybrid_options {
    struct strategy_servers servers;
    const char *transport;         /* TRANSPORT_CHOICES */
    const char *exchange;          /* float32, bfloat16 */
    const char *reduce;            /* SPARSE_REDUCES */
    const char *local_aggregation; /* auto, on, off */
    const char *partitions;        /* NULL or "search", or a number */
};

_Static_assert(sizeof(struct hybrid_options) <= STRATEGY_OWN_SIZE, "they have room");

static const struct hybrid_options *options_of(const struct strategy_options *o)
{
    return (const void *)o->own.bytes;
}

struct hybrid {
    struct strategy base;
    int servers;
    struct dense_exchange dense;
    struct table_groups groups;
    struct tally_part *parts; /* (workers) */
    struct table_setup setup; /* a trial until the number of partitions is found */
    struct partition_search search;
    struct table_worker *worker; /* NULL on a server */
    struct table_server *server; /* NULL on a worker */
    struct gradient_parts held;  /* --clip-norm: what each server holds, and a worker itself */
    struct norm_exchange *norm;  /* NULL without it, and while partitions are tried */
    int64_t offered;             /* server: of which step it has sent its squares; -1: of none */
    char *late;                  /* (ranks) */
    const struct batch *next;    /* NULL: not known */
};

static struct hybrid *hybrid_of(struct strategy *s)
{
    return (struct hybrid *)s;
}

/* ---- the number of partitions ------------------------------------------------------------------------------------ */

static const struct table_parts *parts_of(const struct hybrid *h)
{
    return h->worker ? table_worker_parts(h->worker) : table_server_parts(h->server);
}

/* How workers find the norm of a gradient whose tables are on servers: these send them the squares of their rows. */
static int open_norm(struct hybrid *h, struct error *e)
{
    const struct strategy *s = &h->base;
    const struct table_parts *tables = parts_of(h);
    const struct dense_part *dense = &h->dense.part;
    const int works = s->worker >= 0;
    const struct norm_exchange_setup setup = { .world = s->world,
                                               .parts = &h->held,
                                               .workers = s->workers,
                                               .servers = h->servers,
                                               .own = works ? h->servers : world_rank(s->world) - s->workers,
                                               .listens = works,
                                               .receivers = works ? 0 : s->workers };
    struct gradient_part *held = calloc(tables->count + dense->count + 1, sizeof *held);
    int rc;

    if (!held)
        return error_memory(e, NULL, "for the parts of a gradient");
    table_parts_held(tables, held);
    for (size_t i = 0; i < dense->count; i++)
        held[tables->count + i] = (struct gradient_part){ .from = dense->extents[i].from,
                                                          .to = dense->extents[i].to,
                                                          .holder = h->servers };
    rc = gradient_parts_init(&h->held, s->network, held, tables->count + dense->count, h->servers + 1, e);
    free(held);
    if (rc < 0 || (rc = norm_exchange_new(&h->norm, &setup, e)) < 0)
        return rc;
    return norm_exchange_begin(h->norm, e);
}

static int open_tables(struct hybrid *h, struct error *e)
{
    const struct strategy *s = &h->base;
    const int clips = optimizer_options_of(s->optimizer)->clip_norm > 0 && !h->setup.trial;
    int rc;

    h->setup.clipping = clips ? TABLE_CLIPS_BY_WORKER : TABLE_CLIPS_NOTHING;
    rc = s->worker < 0 ? table_server_new(&h->server, &h->setup, world_rank(s->world) - s->workers, e)
                       : table_worker_new(&h->worker, &h->setup, s->worker, e);
    return rc == OK && clips ? open_norm(h, e) : rc;
}

static void close_tables(struct hybrid *h)
{
    table_worker_free(h->worker);
    table_server_free(h->server);
    h->worker = NULL;
    h->server = NULL;
}

/* On all ranks, after a trial: cuts the tables as rank 0 says. */
static int cut_tables(struct hybrid *h, struct error *e)
{
    int64_t words[2] = { h->search.partitions, h->search.decided };
    int rc = world_agree(h->base.world, "end a trial of partitions", OK, e); /* so no message of it is on its way */

    if (rc < 0 || (rc = world_broadcast(h->base.world, words, sizeof words, "the number of partitions", e)) < 0)
        return rc;
    h->setup.partitions = (int)words[0];
    h->setup.trial = !words[1];
    close_tables(h);
    return open_tables(h, e);
}

/* On workers, before the first step: tries numbers until one is found. */
static int try_partitions(struct hybrid *h, const struct batch *batch, struct error *e)
{
    const int64_t last = PARTITION_SEARCH_BEFORE + PARTITION_SEARCH_STEPS;
    double begun = 0, seconds = 0;
    int rc = OK;

    while (h->setup.trial) {
        for (int64_t k = 0; k <= last && rc == OK; k++) {
            rc = table_worker_try(h->worker, h->setup.first_step + k, batch, e);
            if (k == PARTITION_SEARCH_BEFORE)
                begun = clock_monotonic();
            seconds = (clock_monotonic() - begun) / (double)PARTITION_SEARCH_STEPS;
        }
        if (rc < 0 || (rc = table_worker_finish(h->worker, e)) < 0)
            return rc;
        if (h->base.worker == 0)
            partition_search_next(&h->search, seconds);
        if ((rc = cut_tables(h, e)) < 0)
            return rc;
    }
    return OK;
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

static int hybrid_step_begin(struct strategy *s, int64_t step, struct error *e)
{
    (void)e;
    dense_exchange_begin(&hybrid_of(s)->dense, step);
    return OK;
}

static int hybrid_fetch(struct strategy *s, const struct batch *batch, struct error *e)
{
    struct hybrid *h = hybrid_of(s);
    const int rc = try_partitions(h, batch, e);

    return rc < 0 ? rc : table_worker_fetch(h->worker, s->global_step, batch, e);
}

static void hybrid_foresee(struct strategy *s, const struct batch *next)
{
    hybrid_of(s)->next = next;
}

static void hybrid_ready(struct strategy *s, size_t low)
{
    dense_exchange_ready(&hybrid_of(s)->dense, low);
}

/* The squares of what this worker has itself. */
static void add_dense_squares(struct hybrid *h)
{
    const struct dense_part *dense = &h->dense.part;
    const real *packed = h->dense.transport->result;
    double *own = norm_exchange_own(h->norm);

    for (size_t i = 0; i < h->held.count; i++) {
        const struct gradient_part *part = &h->held.parts[i];

        if (part->holder == h->servers)
            optimizer_squares(h->base.optimizer, h->base.global_step, packed + dense_part_below(dense, part->from),
                              packed[dense->total - 1], part->from, part->to, own + part->at);
    }
}

static int wait_for_norm(struct hybrid *h, double *norm, struct error *e)
{
    const struct strategy *s = &h->base;
    const double deadline = world_deadline(s->world);
    struct buffer servers = BUFFER_EMPTY;
    struct patience p;
    int rc;

    patience_init(&p, s->world, deadline + places_precedence(deadline, s->worker > 0));
    while ((rc = norm_exchange_look(h->norm, norm, e)) == 0) {
        if (patience_pause(&p))
            continue;
        norm_exchange_late(h->norm, h->late);
        places_text(&servers, world_places(s->world), h->late, world_size(s->world), 1);
        rc = patience_over(&p, e, "at step %" PRId64 " for %s, for the norm of its rows' gradients", s->global_step,
                           buffer_text(&servers));
        buffer_release(&servers);
        if (rc < 0)
            return rc;
    }
    return rc < 0 ? rc : OK;
}

/* Finds by what the update is clipped. */
static int clip(struct hybrid *h, struct error *e)
{
    struct strategy *s = &h->base;
    double norm;
    int rc;

    if (!h->norm)
        return OK;
    phase_clock_enter(s->options.clock, PHASE_REDUCING);
    add_dense_squares(h);
    if ((rc = norm_exchange_send(h->norm, s->global_step, e)) < 0 || (rc = wait_for_norm(h, &norm, e)) < 0)
        return rc;
    optimizer_clip(s->optimizer, s->global_step, norm);
    table_worker_clip(h->worker, norm);
    return OK;
}

static int hybrid_step_end(struct strategy *s, struct tally *tally, struct error *e)
{
    struct hybrid *h = hybrid_of(s);
    struct tally_part mine = strategy_part(s, tally);
    int rc = try_partitions(h, NULL, e); /* unless it has fetched rows */

    if (rc < 0)
        return rc;
    mine.flags |= table_worker_flags(h->worker);
    rc = tally->flags & TALLY_LEFT ? table_worker_leave(h->worker, s->global_step, e)
                                   : table_worker_push(h->worker, s->global_step, s->shards, h->dense.vectors, e);
    if (rc == OK && h->next && !(tally->flags & TALLY_LEFT))
        rc = table_worker_foresee(h->worker, s->global_step + 1, h->next, e);
    h->next = NULL;
    if (rc < 0 || (rc = dense_exchange_complete(&h->dense, &mine, h->parts, e)) < 0)
        return rc;
    if (mine.hashed && (rc = strategy_compare_parts(s, h->parts, e)) < 0)
        return rc;
    *tally = tally_sum(h->parts, s->workers, s->global_step, s->options.max_steps);
    if (tally->flags & TALLY_LEFT) {
        table_worker_forget(h->worker, s->global_step);
        return OK;
    }
    if ((rc = clip(h, e)) < 0)
        return rc;
    phase_clock_enter(s->options.clock, PHASE_UPDATING);
    dense_exchange_update(&h->dense);
    s->global_step = tally->global_step;
    return OK;
}

static int hybrid_collect(struct strategy *s, int last, int64_t *step, struct error *e)
{
    (void)last;
    *step = s->global_step;
    return table_worker_collect(hybrid_of(s)->worker, s->global_step, 1, e);
}

static int hybrid_fetch_all(struct strategy *s, struct error *e)
{
    return table_worker_collect(hybrid_of(s)->worker, s->global_step, 0, e);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static int hybrid_finish(struct strategy *s, struct error *e)
{
    const enum phase before = phase_clock_enter(s->options.clock, PHASE_WAITING);
    struct hybrid *h = hybrid_of(s);
    int rc = table_worker_finish(h->worker, e);

    if (rc == OK && h->norm)
        rc = norm_exchange_end(h->norm, e);
    if (rc == OK)
        rc = strategy_compare_replicas(s, 1, e);
    phase_clock_enter(s->options.clock, before);
    return rc;
}

static int hybrid_late(struct hybrid *h, const struct patience *p, int server, struct error *e)
{
    struct buffer workers = BUFFER_EMPTY;
    const int64_t step = table_server_waits_for(h->server, h->late);
    char names[200];
    int rc;

    table_server_names(h->server, names, sizeof names);
    world_narrow(h->base.world, h->late, h->base.workers);
    places_text(&workers, world_places(h->base.world), h->late, h->base.workers, 1);
    rc = patience_over(p, e, "at step %" PRId64 ", as server %d, for %s, for rows of %s", step, server,
                       buffer_text(&workers), names);
    buffer_release(&workers);
    return rc;
}

/* 1: something has come, or is answered; 0: nothing. */
static int look_at_rows(struct hybrid *h, uint32_t flags, struct error *e)
{
    const int moved = table_server_look(h->server, flags, e);
    const int64_t step = table_server_step(h->server);
    int rc;

    if (moved < 0 || !h->norm || h->offered == step || !table_server_has_sums(h->server))
        return moved;
    table_server_squares(h->server, &h->held, norm_exchange_own(h->norm));
    h->offered = step;
    return (rc = norm_exchange_send(h->norm, step, e)) < 0 ? rc : 1;
}

/* Until all workers are done, with a trial or with the training. */
static int serve_rows(struct hybrid *h, const volatile int *signal, struct error *e)
{
    struct strategy *s = &h->base;
    const int server = world_rank(s->world) - s->workers;
    const double deadline = world_deadline(s->world);
    struct patience p;
    int rc = table_server_begin(h->server, e);

    /* Workers know more: they wait for each other, and name the one that is late. */
    patience_init(&p, s->world, deadline + places_precedence(deadline, 3 + (server > 0)));
    while (rc >= 0 && !table_server_ended(h->server)) {
        if ((rc = look_at_rows(h, tally_signal(*signal), e)) > 0)
            patience_calm(&p);
        else if (rc == 0 && !patience_pause(&p))
            rc = hybrid_late(h, &p, server, e);
    }
    return rc < 0 ? rc : table_server_end(h->server, e);
}

static int hybrid_serve(struct strategy *s, const volatile int *signal, struct error *e)
{
    struct hybrid *h = hybrid_of(s);
    int rc = OK;

    while (h->setup.trial)
        if ((rc = serve_rows(h, signal, e)) < 0 || (rc = cut_tables(h, e)) < 0)
            return rc;
    if ((rc = serve_rows(h, signal, e)) < 0 || (h->norm && (rc = norm_exchange_end(h->norm, e)) < 0))
        return rc;
    return strategy_compare_replicas(s, 0, e);
}

_Static_assert((int)PARTITION_SEARCH_POINTS <= (int)STRATEGY_RANGES, "what was tried has room");

static void report_parts(const struct hybrid *h, struct strategy_parts *parts)
{
    const struct partition_search *s = &h->search;

    parts->partitions = h->setup.partitions;
    parts->count = s->count;
    for (size_t i = 0; i < s->count; i++) {
        parts->tried[i].partitions = s->points[i].partitions;
        parts->tried[i].seconds = s->points[i].seconds;
    }
}

static void hybrid_report(const struct strategy *s, struct strategy_report *r)
{
    const struct hybrid *h = (const struct hybrid *)s;
    const struct world_sent *sent = world_sent(s->world);
    const int64_t steps = s->global_step - s->options.first_step;
    int64_t bytes = 0;

    *r = (struct strategy_report){ .transport = h->dense.transport ? h->dense.transport->operations->name : "messages",
                                   .gradient_norm = optimizer_gradient_norm(s->optimizer) };
    for (int w = 0; sent && w < world_size(s->world); w++)
        bytes += sent[w].steps + sent[w].memory;
    if (h->worker)
        report_parts(h, &r->parts);
    r->bytes_step = steps > 0 ? (double)bytes / (double)steps : 0;
}

static void hybrid_release(struct strategy *s)
{
    struct hybrid *h = hybrid_of(s);

    dense_exchange_release(&h->dense);
    close_tables(h);
    norm_exchange_free(h->norm);
    gradient_parts_release(&h->held);
    free(h->parts);
    free(h->late);
    table_groups_release(&h->groups);
    free(h);
}

static const struct strategy_operations operations = {
    .step_begin = hybrid_step_begin,
    .fetch = hybrid_fetch,
    .foresee = hybrid_foresee,
    .ready = hybrid_ready,
    .step_end = hybrid_step_end,
    .collect = hybrid_collect,
    .fetch_all = hybrid_fetch_all,
    .serve = hybrid_serve,
    .finish = hybrid_finish,
    .report = hybrid_report,
    .free = hybrid_release,
};

/* ---- the start --------------------------------------------------------------------------------------------------- */

static enum sparse_reduce rule_of(const char *name)
{
    return !strcmp(name, "sum") ? SPARSE_SUM : !strcmp(name, "mean-touching") ? SPARSE_MEAN_TOUCHING : SPARSE_MEAN;
}

/* Who exchanges rows together. */
static int find_groups(struct hybrid *h, struct error *e)
{
    const struct strategy *s = &h->base;
    const struct hybrid_options *o = options_of(&s->options);
    const struct process *places = world_places(s->world);
    int *host = calloc((size_t)s->workers, sizeof *host);
    const int hosts = host && places ? places_hosts(places, s->workers, host) : 1;
    int together = !strcmp(o->local_aggregation, "on"), rc;

    if (!strcmp(o->local_aggregation, "auto"))
        together = rule_of(o->reduce) != SPARSE_MEAN_TOUCHING && places && hosts < s->workers &&
                   !places_one_host(places, world_size(s->world));
    rc = host ? table_groups_init(&h->groups, &s->reduction, together ? host : NULL, e)
              : error_memory(e, NULL, "for the places of %d", s->workers);
    free(host);
    return rc;
}

enum { PARTITIONS_SEARCH, PARTITIONS_MOST = 100000, PARTITIONS_WRONG = -1 };

static int partitions_of(const struct hybrid_options *o)
{
    char *end;
    long number;

    if (!o->partitions || !strcmp(o->partitions, "search"))
        return PARTITIONS_SEARCH;
    number = strtol(o->partitions, &end, 10);
    return o->partitions[0] >= '0' && o->partitions[0] <= '9' && !*end && number >= 1 && number <= PARTITIONS_MOST
               ? (int)number
               : PARTITIONS_WRONG;
}

static int make_room(struct hybrid *h, struct error *e)
{
    const struct strategy *s = &h->base;
    const struct hybrid_options *o = options_of(&s->options);
    const int partitions = partitions_of(o);
    int rc;

    h->setup = (struct table_setup){
        .world = s->world,
        .optimizer = s->optimizer,
        .reduction = &s->reduction,
        .groups = &h->groups,
        .workers = s->workers,
        .servers = h->servers,
        .rule = rule_of(o->reduce),
        .partitions = partitions == PARTITIONS_SEARCH ? h->servers : partitions,
        .trial = partitions == PARTITIONS_SEARCH && h->servers > 1 && s->more,
        .samples = (size_t)s->options.batch_size,
        .first_step = s->options.first_step,
        .clock = s->options.clock,
    };
    h->parts = calloc((size_t)s->workers, sizeof *h->parts);
    h->late = calloc((size_t)world_size(s->world), 1);
    h->offered = -1;
    if ((rc = dense_exchange_init(&h->dense, s, e)) < 0 || (rc = find_groups(h, e)) < 0)
        return rc;
    if (!h->parts || !h->late)
        return error_memory(e, NULL, "to start");
    if ((rc = open_tables(h, e)) < 0)
        return rc;
    partition_search_init(&h->search, h->setup.partitions, table_parts_most(parts_of(h)));
    return OK;
}

static int hybrid_start(struct strategy **out, const struct strategy *common, struct error *e)
{
    struct hybrid *h = calloc(1, sizeof *h);
    int rc = h ? OK : error_memory(e, NULL, "to start");

    if (h) {
        h->base = *common;
        h->base.operations = &operations;
        h->servers = (int)options_of(&common->options)->servers.total;
        rc = make_room(h, e);
        if (rc == OK && common->workers > 1)
            rc = shared_rows_check_exchange(options_of(&common->options)->exchange, common, e);
    }
    if ((rc = world_agree(common->world, "place the tables", rc, e)) == OK)
        rc = dense_exchange_open(&h->dense, options_of(&common->options)->transport,
                                 shared_rows_rounded(options_of(&common->options)->exchange, common->network), e);
    if (rc < 0) {
        if (h)
            hybrid_release(&h->base);
        return rc;
    }
    h->base.vectors = h->dense.vectors;
    h->base.dense = &h->dense.part;
    *out = &h->base;
    return OK;
}

/* ---- the row of the table ---------------------------------------------------------------------------------------- */

static size_t hybrid_rows(struct option *rows, void *own)
{
    struct hybrid_options *o = own;
    const struct option table[] = {
        { OPTION_CHOICE, .name = "sparse-reduce", .value = &o->reduce, .argument = "RULE", .choices = SPARSE_REDUCES,
          .help = "Make of the workers' gradients of a row, with --run-option hybrid, their mean over all workers, as "
                  "of any other variable (mean, the default), their sum (sum), or their mean over the workers whose "
                  "batches use the row (mean-touching)." },
        { OPTION_TEXT, .name = "partitions", .value = &o->partitions, .argument = "P",
          .help = "Cut the rows of each table into P parts, 1 to 100000, and share these among the servers, with "
                  "--run-option hybrid; or search (default): try several numbers before the first step and "
                  "keep the fastest; needs at least two servers. The weights do not depend on it." },
    };

    size_t count;

    _Static_assert(sizeof table / sizeof *table + 5 <= STRATEGY_ROWS, "the rows have room");
    *o = (struct hybrid_options){ .reduce = "mean" };
    count = shared_rows_servers(rows, &o->servers);
    count += shared_rows_transport(rows + count, &o->transport);
    count += shared_rows_exchange(rows + count, &o->exchange);
    count += shared_rows_aggregation(rows + count, &o->local_aggregation);
    memcpy(rows + count, table, sizeof table);
    return count + sizeof table / sizeof *table;
}

static void hybrid_without_tables(struct strategy_options *o)
{
    const struct hybrid_options *was = options_of(o);
    struct strategy_own own;

    shared_rows_messages(&strategy_allreduce, &own, was->transport, was->exchange);
    o->instead = o->kind->name;
    o->kind = &strategy_allreduce;
    o->own = own;
    snprintf(o->label, sizeof o->label, "%s", o->kind->name);
}

static struct strategy_servers *hybrid_servers(struct strategy_options *options)
{
    return &((struct hybrid_options *)(void *)options->own.bytes)->servers;
}

static int hybrid_workers(const struct strategy_options *options, int ranks, struct error *e)
{
    const struct hybrid_options *o = options_of(options);

    if (partitions_of(o) == PARTITIONS_WRONG)
        return error_set(e, ERR_ARG, "--partitions %.40s: not a number from 1 to %d, or search", o->partitions,
                         PARTITIONS_MOST);
    if (!strcmp(o->local_aggregation, "on") && rule_of(o->reduce) == SPARSE_MEAN_TOUCHING)
        return error_set(e, ERR_ARG,
                         "--local-aggregation on: --sparse-reduce mean-touching needs to know which workers use a row, "
                         "which the sum of a host does not say; leave it out");
    return shared_rows_workers(&o->servers, ranks, e);
}

static void hybrid_describe(const struct strategy_options *options, int ranks, char *text, size_t size)
{
    shared_rows_describe(&options_of(options)->servers, ranks, text, size);
}

const struct strategy_kind strategy_hybrid = {
    .name = "hybrid",
    .help = "on workers that all-reduce gradients, except those of tables, which are on the last ranks as servers",
    .rows = 1,
    .options = hybrid_rows,
    .without_tables = hybrid_without_tables,
    .servers = hybrid_servers,
    .workers = hybrid_workers,
    .describe = hybrid_describe,
    .start = hybrid_start,
};
