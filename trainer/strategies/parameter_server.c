/*
 * parameter_server.c - servers hold and update the variables: starts both sides. A server runs in
 * trainer/server/server_loop.h, a worker's messages are in worker_side.h, the protocol in parameter_protocol.h.
 */
#include "trainer/strategies/strategy.h"

#include "base/file.h"
#include "trainer/collective/exchange.h"
#include "trainer/collective/lanes.h"
#include "trainer/collective/places.h"
#include "trainer/server/packed_state.h"
#include "trainer/server/parameter_protocol.h"
#include "trainer/server/placement.h"
#include "trainer/server/server_loop.h"
#include "trainer/server/shared_push.h"
#include "trainer/server/table_server.h"
#include "trainer/server/table_worker.h"
#include "trainer/server/worker_groups.h"
#include "trainer/server/worker_side.h"
#include "trainer/strategies/shared_rows.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parameter_server_options {
    struct strategy_servers servers;
    const char *local_aggregation; /* auto, on, off */
    int64_t staleness, aggregate;  /* aggregate 0: the number of workers */
    int sync, async;
    const char *exchange;        /* float32, bfloat16 */
    const char *record, *replay; /* files; NULL: none */
};

_Static_assert(sizeof(struct parameter_server_options) <= STRATEGY_OWN_SIZE, "they have room");

static const struct parameter_server_options *own_options(const struct strategy_options *o)
{
    return (const void *)o->own.bytes;
}

/* Server 0 decides which pushes make an update, as not all do, or not together. */
static int is_decided(const struct strategy_options *o)
{
    return !o->synchronous || o->chosen;
}

/* either side */
struct parameter_server {
    struct strategy base;
    int servers;
    struct placement placement;
    struct packing *packings; /* (servers) */
    struct worker_groups groups;
    struct shared_push *shared;  /* NULL: each worker pushes alone */
    struct worker_side *worker;  /* NULL on a server */
    struct server_loop *server;  /* NULL on a worker */
    struct recording *recording; /* server 0, with --record */
    struct arrivals replayed;    /* likewise, with --replay */
    /* The rows of tables travel alone: the part that is in packets; each rank's side of the rows, else NULL. */
    struct dense_part part;
    struct table_groups table_groups;
    struct table_server *table_server;
    struct table_worker *table_worker;
    struct gradient_parts parts; /* --clip-norm, synchronous: what each server holds */
    struct row_gradient *rows;   /* --clip-norm, asynchronous: (tables) of a step */
};

static int clips(const struct strategy *s)
{
    return optimizer_options_of(s->optimizer)->clip_norm > 0;
}

/* 1: the rows of tables travel alone. Where updates leave out pushes, or a worker's weights must be those of a certain
 * update, they are in packets. */
static int sends_rows(const struct strategy *s)
{
    const struct parameter_server_options *own = own_options(&s->options);

    return own->staleness == ARBITER_UNBOUNDED && !own->record && !own->replay && !s->options.chosen &&
           table_parts_tables(s->network) > 0;
}

static struct table_worker *table_worker_of(const struct strategy *s)
{
    return ((const struct parameter_server *)s)->table_worker;
}

static struct worker_side *worker_side_of(const struct strategy *s)
{
    return ((const struct parameter_server *)s)->worker;
}

static int parameter_server_step_begin(struct strategy *s, int64_t step, struct error *e)
{
    return worker_side_begin(worker_side_of(s), step, e);
}

static int parameter_server_fetch(struct strategy *s, const struct batch *batch, struct error *e)
{
    return table_worker_of(s) ? table_worker_fetch(table_worker_of(s), s->global_step, batch, e) : OK;
}

static void parameter_server_ready(struct strategy *s, size_t low)
{
    worker_side_ready(worker_side_of(s), low);
}

/* Asynchronous: this gradient is an update alone, and is clipped by its own norm. */
static void clip_push(struct strategy *s)
{
    struct parameter_server *ps = (struct parameter_server *)s;
    size_t count, tables = 0;
    const struct variable *v = network_variables(s->network, &count);

    for (size_t i = 0; i < count && ps->table_worker; i++)
        if (v[i].row_width)
            ps->rows[tables++] = *micro_shards_rows(s->shards, 0, i);
    optimizer_measure_rows(s->optimizer, s->global_step, s->vectors[0], ps->rows, tables);
    worker_side_clip(ps->worker, optimizer_clip_factor(s->optimizer));
}

static int parameter_server_step_end(struct strategy *s, struct tally *tally, struct error *e)
{
    const struct tally_part part = strategy_part(s, tally);
    int rc = OK;

    if (table_worker_of(s))
        rc = tally->flags & TALLY_LEFT
                 ? table_worker_leave(table_worker_of(s), s->global_step, e)
                 : table_worker_push(table_worker_of(s), s->global_step, s->shards, s->vectors, e);
    if (clips(s) && !s->options.synchronous && !(tally->flags & TALLY_LEFT))
        clip_push(s);
    if (rc == OK)
        rc = worker_side_end(worker_side_of(s), &part, tally, e);
    if (rc == OK)
        s->global_step = tally->global_step;
    return rc;
}

static int parameter_server_collect(struct strategy *s, int last, int64_t *step, struct error *e)
{
    const int rc = worker_side_collect(worker_side_of(s), last, step, e);

    return rc == OK && table_worker_of(s) ? table_worker_collect(table_worker_of(s), *step, 1, e) : rc;
}

static int parameter_server_fetch_all(struct strategy *s, struct error *e)
{
    return table_worker_of(s) ? table_worker_collect(table_worker_of(s), s->global_step, 0, e) : OK;
}

static int parameter_server_finish(struct strategy *s, struct error *e)
{
    int rc = table_worker_of(s) ? table_worker_finish(table_worker_of(s), e) : OK;

    if (rc == OK)
        rc = worker_side_finish(worker_side_of(s), e);
    if (rc < 0 || !s->options.synchronous)
        return rc;
    return strategy_compare_replicas(s, worker_side_report(worker_side_of(s)).current, e);
}

_Static_assert((int)STALENESS_RANGES <= (int)STRATEGY_RANGES, "the histogram has room");

/* Copies the histogram, and the mean and maximum of all pushes. */
static void report_staleness(const struct staleness *s, struct strategy_report *r)
{
    for (size_t i = 0; i < STALENESS_RANGES; i++) {
        struct strategy_range *range = &r->staleness[i];

        staleness_range(i, &range->from, &range->to);
        range->pushes = s->counts[i];
        if (range->pushes)
            r->staleness_ranges = i + 1;
    }
    r->staleness_mean = staleness_mean(s);
    r->staleness_max = s->max;
}

static void parameter_server_report(const struct strategy *s, struct strategy_report *r)
{
    struct worker_report w;

    *r = (struct strategy_report){
        .transport = ((const struct parameter_server *)s)->groups.together ? "two levels" : "messages",
    };
    if (!worker_side_of(s))
        return;
    w = worker_side_report(worker_side_of(s));
    r->bytes_step = w.bytes_step;
    r->gradient_norm = s->options.synchronous ? w.gradient_norm : optimizer_gradient_norm(s->optimizer);
    if (table_worker_of(s) && w.pushes)
        r->bytes_step += (double)table_worker_bytes(table_worker_of(s)) / (double)w.pushes;
    r->staleness_mean = w.staleness_mean;
    r->staleness_max = w.staleness_max;
    if (w.statistics.staleness.pushes)
        report_staleness(&w.statistics.staleness, r);
    if (s->options.chosen)
        r->gradients = (struct strategy_gradients){
            .used = w.statistics.used,
            .dropped = w.statistics.used ? w.statistics.dropped : w.dropped,
            .absent = w.statistics.absent,
            .samples_used = w.statistics.samples,
            .samples_dropped = w.statistics.samples_dropped,
            .own = w.pushes,
            .own_dropped = w.unused,
        };
}

static int parameter_server_serve(struct strategy *s, const volatile int *signal, struct error *e)
{
    struct parameter_server *ps = (struct parameter_server *)s;
    int rc = server_loop_run(ps->server, signal, e);

    if (rc == OK && s->options.synchronous)
        rc = strategy_compare_replicas(s, 0, e);
    if (rc == OK && ps->recording && recording_close(ps->recording, e) < 0)
        rc = 1;
    return rc;
}

static void parameter_server_release(struct strategy *s)
{
    struct parameter_server *ps = (struct parameter_server *)s;

    worker_side_free(ps->worker);
    server_loop_free(ps->server);
    table_worker_free(ps->table_worker);
    table_server_free(ps->table_server);
    table_groups_release(&ps->table_groups);
    dense_part_release(&ps->part);
    gradient_parts_release(&ps->parts);
    free(ps->rows);
    shared_push_free(ps->shared);
    worker_groups_release(&ps->groups);
    recording_free(ps->recording);
    arrivals_release(&ps->replayed);
    for (int j = 0; ps->packings && j < ps->servers; j++)
        packing_release(&ps->packings[j]);
    free(ps->packings);
    placement_release(&ps->placement);
    free(ps);
}

static const struct strategy_operations operations = {
    .step_begin = parameter_server_step_begin,
    .fetch = parameter_server_fetch,
    .ready = parameter_server_ready,
    .step_end = parameter_server_step_end,
    .collect = parameter_server_collect,
    .fetch_all = parameter_server_fetch_all,
    .serve = parameter_server_serve,
    .finish = parameter_server_finish,
    .report = parameter_server_report,
    .free = parameter_server_release,
};

/* 1: there are several hosts, and servers only beside workers. */
static int servers_beside_workers(const struct strategy *s, struct error *e)
{
    const struct process *places = world_places(s->world);
    const int ranks = world_size(s->world);
    int *host = calloc((size_t)ranks, sizeof *host);
    int hosts;

    if (!host)
        return error_memory(e, NULL, "for the places of %d", ranks);
    hosts = places ? places_hosts(places, s->workers, host) : 1;
    hosts = hosts > 1 && places_hosts(places, ranks, host) == hosts;
    free(host);
    return hosts;
}

static int place(struct parameter_server *ps, struct error *e)
{
    const struct strategy *s = &ps->base;
    const size_t vectors = (size_t)reduction_most_vectors(&s->reduction);
    const int beside = servers_beside_workers(s, e);
    int rc;

    if (beside < 0)
        return beside;
    if (!(ps->packings = calloc((size_t)ps->servers, sizeof *ps->packings)))
        return error_memory(e, NULL, "for %d servers", ps->servers);
    rc = placement_of(&ps->placement, s->network, ps->servers, sends_rows(s), e);
    for (int j = 0; j < ps->servers && rc == OK; j++) {
        const size_t held = ps->placement.held[j] + ps->placement.shared.to - ps->placement.shared.from;
        const size_t limit = exchange_packet(held, s->options.bucket_bytes, beside);

        rc = packing_make(&ps->packings[j], &ps->placement, j, limit, e);
        if (rc == OK && (ps->packings[j].packet_count > PACKETS_MAX || limit > INT_MAX / sizeof(real) / 2 / vectors ||
                         packed_state_of(s->optimizer, &ps->packings[j]).length > INT_MAX / sizeof(real)))
            rc = error_set(e, ERR_ARG,
                           "--bucket-bytes %zu: a server would send %zu packets; use 1 to %d of at most 1 GiB",
                           s->options.bucket_bytes, ps->packings[j].packet_count, PACKETS_MAX);
    }
    return rc;
}

static int read_replayed(struct parameter_server *ps, const struct arrivals_header *now, struct error *e)
{
    const char *path = own_options(&ps->base.options)->replay;
    struct buffer bytes = BUFFER_EMPTY;
    char name[200];
    int rc = file_read(path, SIZE_MAX / 2, &bytes, e);

    snprintf(name, sizeof name, "--replay %.160s", path);
    if (rc < 0)
        error_prefix(e, "--replay");
    if (rc == OK)
        rc = arrivals_parse(&ps->replayed, name, (const uint8_t *)bytes.data, bytes.length, e);
    buffer_release(&bytes);
    return rc < 0 ? rc : arrivals_fit(&ps->replayed, name, now, ps->base.options.max_steps, e);
}

/* On server 0: reads the record that is followed, then begins the one that is written. */
static int open_records(struct parameter_server *ps, struct error *e)
{
    const struct strategy_options *o = &ps->base.options;
    const struct parameter_server_options *own = own_options(o);
    struct arrivals_header h = {
        .workers = ps->base.workers,
        .aggregate = !o->synchronous ? 0
                     : o->aggregate  ? o->aggregate
                                     : ps->base.workers,
        .staleness = own->staleness,
        .first_step = o->first_step,
        .batch = o->batch_size,
        .seed = o->seed,
        .training = o->training,
    };
    int rc;

    snprintf(h.model, sizeof h.model, "%s", network_model(ps->base.network)->name);
    snprintf(h.data, sizeof h.data, "%s", o->data ? o->data : "");
    rc = own->replay ? read_replayed(ps, &h, e) : OK;

    if (rc == OK && own->record)
        rc = recording_open(&ps->recording, NULL, own->record, &h, e);
    return rc;
}

static int start_server(struct parameter_server *ps, struct error *e)
{
    const struct strategy *s = &ps->base;
    const int server = world_rank(s->world) - s->workers;
    const int rc = server == 0 ? open_records(ps, e) : OK;
    const struct server_setup setup = {
        .world = s->world,
        .optimizer = s->optimizer,
        .network = s->network,
        .packing = &ps->packings[server],
        .workers = s->workers,
        .servers = ps->servers,
        .server = server,
        .synchronous = s->options.synchronous,
        .groups = &ps->groups,
        .first_step = s->options.first_step,
        .max_steps = s->options.max_steps,
        .decided = is_decided(&s->options),
        .arbiter = { .staleness = own_options(&s->options)->staleness,
                     .aggregate = s->options.aggregate ? s->options.aggregate : s->workers,
                     .replay = own_options(&s->options)->replay ? &ps->replayed : NULL },
        .recording = ps->recording,
        .parts = ps->parts.parts ? &ps->parts : NULL,
        .rounded = shared_rows_rounded(own_options(&s->options)->exchange, s->network),
        .tables = ps->table_server,
        .clock = s->options.clock,
    };

    return rc < 0 ? rc : server_loop_new(&ps->server, &setup, e);
}

static int start_worker(struct parameter_server *ps, struct error *e)
{
    const struct strategy *s = &ps->base;
    const struct worker_setup setup = {
        .world = s->world,
        .optimizer = s->optimizer,
        .network = s->network,
        .packings = ps->packings,
        .workers = s->workers,
        .worker = s->worker,
        .servers = ps->servers,
        .synchronous = s->options.synchronous,
        .reduction = &s->reduction,
        .shared = ps->shared,
        .decided = is_decided(&s->options),
        .rounded = shared_rows_rounded(own_options(&s->options)->exchange, s->network),
        .clips = clips(s),
        .first_step = s->options.first_step,
        .clock = s->options.clock,
    };
    const int rc = worker_side_new(&ps->worker, &setup, e);

    if (rc < 0)
        return rc;
    ps->base.vectors = worker_side_vectors(ps->worker);
    if (ps->shared)
        network_set_exchange(s->network, ps->base.vectors[reduction_vectors(&s->reduction, s->worker) - 1]);
    return OK;
}

/* 1: the workers of each host push together; ERR_ARG: they should, but cannot. host: (workers) their hosts' numbers. */
static int aggregates_locally(const struct strategy *s, int *host, struct error *e)
{
    const struct process *places = world_places(s->world);
    const char *how = own_options(&s->options)->local_aggregation;
    const int hosts = places ? places_hosts(places, s->workers, host) : 1;
    const int keeps = lanes_keep_order(host, &s->reduction);

    if (!strcmp(how, "on") && !keeps)
        return error_set(e, ERR_ARG,
                         "--local-aggregation on: with --micro-shards the workers of each host must be a whole part of "
                         "the tree, such as 2 or 4 with neighbouring numbers (mpirun --map-by slot); use "
                         "--local-aggregation off");
    if (!strcmp(how, "on"))
        return 1;
    return !strcmp(how, "auto") && !is_decided(&s->options) && keeps && places && hosts < s->workers &&
           !places_one_host(places, world_size(s->world));
}

/* Collective. Finds out which workers push together, and makes the memory in which they do. */
static int group(struct parameter_server *ps, struct error *e)
{
    const struct strategy *s = &ps->base;
    const int forced = !strcmp(own_options(&s->options)->local_aggregation, "on");
    int *host = calloc((size_t)s->workers, sizeof *host);
    int together = host ? aggregates_locally(s, host, e) : error_memory(e, NULL, "for the places of %d", s->workers);
    int rc = together < 0 ? together : worker_groups_init(&ps->groups, &s->reduction, together ? host : NULL, e);
    struct shared_push_plan plan = { .world = s->world,
                                     .groups = &ps->groups,
                                     .reduction = &s->reduction,
                                     .total = network_exchange_count(s->network),
                                     .worker = s->worker };

    free(host);
    for (int j = 0; j < ps->servers; j++) {
        plan.pushed += ps->packings[j].length;
        plan.values += ps->packings[j].length + 1 + (size_t)clips(s);
    }
    rc = world_agree(s->world, "find its host's workers", rc, e);
    if (rc < 0 || !together)
        return rc;
    rc = shared_push_new(&ps->shared, &plan, e);
    if (rc == OK || forced)
        return rc;
    /* A host may have no shared memory (a container's /dev/shm): all ranks agreed on that, so all continue. */
    worker_groups_release(&ps->groups);
    return worker_groups_init(&ps->groups, &s->reduction, NULL, e);
}

/* Packets cut the rows of tables. */
static int check_rows(const struct strategy *s, struct error *e)
{
    if (sends_rows(s) || optimizer_cuts_rows(s->optimizer))
        return OK;
    return error_set(
        e, ERR_ARG,
        "--optimizer %s needs whole rows of the model's embedding, which --run-option ps does not have with "
        "--staleness, --replicas-to-aggregate, --record and --replay; leave these "
        "out, or use --optimizer sgd, adagrad or adam",
        optimizer_kind_names[optimizer_options_of(s->optimizer)->kind]);
}

/* What each server holds of the gradient whose norm limits updates; asynchronous: room for a push's rows. */
static int find_parts(struct parameter_server *ps, struct error *e)
{
    const struct strategy *s = &ps->base;
    struct table_parts tables = { 0 };
    struct gradient_part *held;
    int rc = sends_rows(s) ? table_parts_make(&tables, s->network, ps->servers, ps->servers, e) : OK;

    if (rc < 0)
        return rc;
    held = calloc(ps->placement.count + tables.count + 1, sizeof *held);
    ps->rows = calloc(table_parts_tables(s->network) + 1, sizeof *ps->rows);
    for (size_t i = 0; held && i < ps->placement.count; i++)
        held[i] = (struct gradient_part){ .from = ps->placement.items[i].extent.from,
                                          .to = ps->placement.items[i].extent.to,
                                          .holder = ps->placement.items[i].server };
    if (held)
        table_parts_held(&tables, held + ps->placement.count);
    if (!held || !ps->rows)
        rc = error_memory(e, NULL, "for the parts of %d servers", ps->servers);
    else if (s->options.synchronous)
        rc = gradient_parts_init(&ps->parts, s->network, held, ps->placement.count + tables.count, ps->servers, e);
    free(held);
    table_parts_release(&tables);
    return rc;
}

/* The side of the rows of tables. */
static int start_tables(struct parameter_server *ps, struct error *e)
{
    const struct strategy *s = &ps->base;
    const struct table_setup setup = {
        .world = s->world,
        .optimizer = s->optimizer,
        .reduction = &s->reduction,
        .groups = &ps->table_groups,
        .workers = s->workers,
        .servers = ps->servers,
        .rule = SPARSE_MEAN,
        .partitions = ps->servers,
        .samples = (size_t)s->options.batch_size,
        .first_step = s->options.first_step,
        .alone = !s->options.synchronous,
        .clipping = clips(s) && s->options.synchronous ? TABLE_CLIPS_BY_CALLER : TABLE_CLIPS_NOTHING,
        .clock = s->options.clock,
    };
    int rc = dense_part_init(&ps->part, s->network, e);

    if (rc < 0 || (rc = table_groups_init(&ps->table_groups, &s->reduction, NULL, e)) < 0)
        return rc;
    ps->base.dense = &ps->part;
    if (s->worker < 0)
        return table_server_new(&ps->table_server, &setup, world_rank(s->world) - s->workers, e);
    return table_worker_new(&ps->table_worker, &setup, s->worker, e);
}

/* The gradients of some workers are added as they are, one vector of each. */
static int check_parts(const struct strategy *s, struct error *e)
{
    if (!is_decided(&s->options) || reduction_most_vectors(&s->reduction) == 1)
        return OK;
    return error_set(e, ERR_ARG,
                     "--micro-shards %d: a worker's part of them is not one node of their tree, which it must be where "
                     "updates leave out gradients; use as many as the %d workers, or a number of workers and of "
                     "micro-shards that are powers of two",
                     s->options.micro_shards, s->workers);
}

static int replays(const struct strategy *s)
{
    return own_options(&s->options)->replay != NULL;
}

static int parameter_server_start(struct strategy **out, const struct strategy *common, struct error *e)
{
    struct parameter_server *ps = calloc(1, sizeof *ps);
    int rc;

    if (!ps) {
        rc = error_memory(e, NULL, "to start");
    } else {
        ps->base = *common;
        ps->base.operations = &operations;
        ps->servers = (int)own_options(&common->options)->servers.total;
        if ((rc = check_rows(common, e)) == OK && (rc = check_parts(&ps->base, e)) == OK &&
            (rc = shared_rows_check_exchange(own_options(&common->options)->exchange, common, e)) == OK)
            rc = place(ps, e);
        if (rc == OK && sends_rows(common))
            rc = start_tables(ps, e);
        if (rc == OK && clips(common))
            rc = find_parts(ps, e);
        /* Asynchronous workers draw tickets for pushes, so the run ends at max_steps exactly; the first ones are
         * handed out by number; with a record, by that. */
        if (!common->options.synchronous && common->worker >= 0)
            ps->base.more = common->options.first_step + (replays(common) ? 0 : common->worker) <
                            common->options.max_steps;
    }
    if ((rc = world_agree(common->world, "place the variables", rc, e)) == OK) {
        if ((rc = group(ps, e)) == OK)
            rc = common->worker < 0 ? start_server(ps, e) : start_worker(ps, e);
        rc = world_agree(common->world, "start its part of the exchange", rc, e);
    }
    if (rc < 0) {
        if (ps)
            parameter_server_release(&ps->base);
        return rc;
    }
    *out = &ps->base;
    return OK;
}

/* ---- the row of the table ---------------------------------------------------------------------------------------- */

static size_t parameter_server_rows(struct option *rows, void *own)
{
    struct parameter_server_options *o = own;
    const struct option table[] = {
        { OPTION_FLAG, .name = "sync", .value = &o->sync,
          .help = "Make one update per step from the gradients of all workers, with --run-option ps (default)." },
        { OPTION_FLAG, .name = "async", .value = &o->async,
          .help = "Make an update from the gradients of each worker as they arrive, with --run-option ps, and report "
                  "the staleness." },
        { OPTION_INT, .name = "staleness", .value = &o->staleness, .argument = "T", .minimum = 0, .maximum = 1e9,
          .help = "Let no worker get more than T steps ahead of another, with --async: it begins its step c only when "
                  "every worker has finished step c - T - 1. 0 makes all wait for the slowest. Default: no bound." },
        { OPTION_INT, .name = "replicas-to-aggregate", .value = &o->aggregate, .argument = "A", .minimum = 1,
          .maximum = 1 << 20,
          .help = "Make an update as soon as A workers have pushed their gradients, with --run-option ps, and drop "
                  "those of the others (backup workers). With more than there are workers, each computes several "
                  "batches per update. Default: the number of workers." },
        { OPTION_TEXT, .name = "record", .value = &o->record, .argument = "FILE",
          .help =
              "Write the order in which gradients were used to FILE, on the host of server 0, with --run-option ps." },
        { OPTION_TEXT, .name = "replay", .value = &o->replay, .argument = "FILE",
          .help =
              "Use gradients in the order of FILE, which --record wrote in a run with the same options: the run ends "
              "with the same weights, bit for bit, with --async and backup workers, too." },
    };

    size_t count;

    _Static_assert(sizeof table / sizeof *table + 4 <= STRATEGY_ROWS, "the rows have room");
    *o = (struct parameter_server_options){ .sync = 1, .staleness = ARBITER_UNBOUNDED };
    count = shared_rows_servers(rows, &o->servers);
    count += shared_rows_aggregation(rows + count, &o->local_aggregation);
    count += shared_rows_exchange(rows + count, &o->exchange);
    memcpy(rows + count, table, sizeof table);
    return count + sizeof table / sizeof *table;
}

static void parameter_server_resolve(struct strategy_options *options)
{
    const struct parameter_server_options *o = own_options(options);

    options->synchronous = o->sync && !o->async;
    options->aggregate = (int)o->aggregate;
    options->chosen = options->synchronous && (o->record || o->replay);
    if (!options->synchronous)
        snprintf(options->label, sizeof options->label, "ps --async");
}

static struct strategy_servers *parameter_server_servers(struct strategy_options *options)
{
    return &((struct parameter_server_options *)(void *)options->own.bytes)->servers;
}

static int parameter_server_workers(const struct strategy_options *options, int ranks, struct error *e)
{
    const struct parameter_server_options *o = own_options(options);
    int workers;

    if (o->staleness != ARBITER_UNBOUNDED && options->synchronous)
        return error_set(e, ERR_ARG, "--staleness needs --async");
    if (!options->synchronous && o->aggregate)
        return error_set(e, ERR_ARG,
                         "--replicas-to-aggregate: with --async each gradient makes an update; train without --async");
    if (!strcmp(o->local_aggregation, "on") && is_decided(options))
        return error_set(e, ERR_ARG,
                         "--local-aggregation on: each worker's gradients are decided about with --async, "
                         "--replicas-to-aggregate, --record and --replay; leave it out");
    if ((workers = shared_rows_workers(&o->servers, ranks, e)) < 0)
        return workers;
    if (options->chosen && o->aggregate > workers)
        return error_set(e, ERR_ARG,
                         "--replicas-to-aggregate %d: %d worker%s make every update together, whoever is first; leave "
                         "out --%s",
                         (int)o->aggregate, workers, workers == 1 ? "" : "s", o->record ? "record" : "replay");
    return workers;
}

static void parameter_server_describe(const struct strategy_options *options, int ranks, char *text, size_t size)
{
    const int servers = (int)own_options(options)->servers.total;
    const int workers = ranks - servers, backup = options->aggregate ? workers - options->aggregate : 0;
    char spare[24] = "";

    if (backup > 0)
        snprintf(spare, sizeof spare, " (%d backup)", backup);
    snprintf(text, size, "%d worker%s%s and %d server%s", workers, workers == 1 ? "" : "s", spare, servers,
             servers == 1 ? "" : "s");
}

const struct strategy_kind strategy_parameter_server = {
    .name = "ps",
    .help = "on workers, with the last ranks as parameter servers",
    .options = parameter_server_rows,
    .resolve = parameter_server_resolve,
    .servers = parameter_server_servers,
    .workers = parameter_server_workers,
    .describe = parameter_server_describe,
    .start = parameter_server_start,
};
