/*
 * parameter_server.c - servers hold and update the variables: the worker's side, and the start of both. A server runs
 * in trainer/server/server_loop.h; the protocol is in parameter_protocol.h.
 */
#include "trainer/strategies/strategy.h"

#include "base/clock.h"
#include "trainer/collective/exchange.h"
#include "trainer/collective/places.h"
#include "trainer/server/packed_state.h"
#include "trainer/server/parameter_protocol.h"
#include "trainer/server/placement.h"
#include "trainer/server/server_loop.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parameter_server_options {
    struct strategy_servers servers;
    int sync, async;
};

_Static_assert(sizeof(struct parameter_server_options) <= STRATEGY_OWN_SIZE, "they have room");

static const struct parameter_server_options *own_options(const struct strategy_options *o)
{
    return (const void *)o->own.bytes;
}

/* either side */
struct parameter_server {
    struct strategy base;
    int servers;
    struct placement placement;
    struct packing *packings;   /* (servers) */
    struct worker_side *worker; /* NULL on a server */
    struct server_loop *server; /* NULL on a worker */
};

/* to one server */
struct connection {
    const struct packing *packing;
    struct packed_state layout;
    real *push, *pull;        /* packed; push: packet by packet, of one vector after the other; pull: one more, flags */
    struct message *out, *in; /* (packets) */
    size_t sent;              /* packets of this step */
    struct message control;
    int64_t *words; /* control: 1 + workers */
};

struct worker_side {
    struct connection *servers;
    real **vectors; /* (reduction_vectors) the last is the network's own */
    struct message tally_out, verdict_in;
    struct tally_part part;
    struct verdict verdict;
    struct error error; /* error of ready(), kept for step_end */
    int64_t step, steps, bytes;
    int done_said, left; /* left: the last step was abandoned */
    uint32_t flags;      /* of servers' signals, sent to server 0 with the next tally; at the end, our own */
    double waited;
};

static int parameter_server_rank_of(const struct parameter_server *ps, int server)
{
    return ps->base.workers + server;
}

static size_t packet_bytes(const struct packing *p, size_t k, int reply)
{
    return (p->packets[k].length + (reply && k + 1 == p->packet_count)) * sizeof(real);
}

static int parameter_server_step_begin(struct strategy *s, int64_t step, struct error *e)
{
    struct parameter_server *ps = (struct parameter_server *)s;
    struct worker_side *w = ps->worker;
    int rc = OK;

    w->step = step;
    memset(&w->error, 0, sizeof w->error);
    for (int j = 0; j < ps->servers && rc == OK; j++) {
        struct connection *c = &w->servers[j];

        c->sent = 0;
        for (size_t k = 0; k < c->packing->packet_count && rc == OK; k++)
            rc = world_receive(s->world, parameter_server_rank_of(ps, j), TAG_REPLY + (int)k,
                               c->pull + c->packing->packets[k].at, packet_bytes(c->packing, k, 1), &c->in[k], e);
    }
    if (rc == OK)
        rc = world_receive(s->world, parameter_server_rank_of(ps, 0), TAG_VERDICT, &w->verdict, sizeof w->verdict,
                           &w->verdict_in, e);
    return rc;
}

static void parameter_server_ready(struct strategy *s, size_t low)
{
    struct parameter_server *ps = (struct parameter_server *)s;
    struct worker_side *w = ps->worker;
    const int vectors = reduction_vectors(&s->reduction, s->worker);
    const int begins = s->options.synchronous || low == 0; /* an asynchronous push cannot be taken back */
    const enum phase before = phase_clock_enter(s->options.clock, PHASE_REDUCING);

    for (int j = 0; j < ps->servers && begins; j++) {
        struct connection *c = &w->servers[j];
        const struct packing *p = c->packing;

        for (; c->sent < p->packet_count && p->packets[c->sent].low >= low && w->error.code == OK; c->sent++) {
            const struct packet *packet = &p->packets[c->sent];
            const size_t n = packet_bytes(p, c->sent, 0) * (size_t)vectors;
            real *at = c->push + packet->at * (size_t)vectors;
            const real *packed = at;

            if (packet->pieces == 1 && vectors == 1) /* sent from its place, and final until then */
                packed = w->vectors[0] + packet->low;
            for (int v = 0; v < vectors && packed == at; v++)
                packing_gather(p, c->sent, w->vectors[v], at + (size_t)v * packet->length);
            world_send(s->world, parameter_server_rank_of(ps, j), TAG_PUSH + (int)c->sent, packed, n, &c->out[c->sent],
                       &w->error);
            w->bytes += (int64_t)n;
        }
    }
    message_done(s->world, &w->verdict_in, &w->error); /* lets MPI advance its messages */
    phase_clock_enter(s->options.clock, before);
}

/* 1: all messages of the step are done. *late: a server that has not answered, *packet: which one. */
static int step_done(struct parameter_server *ps, int *late, size_t *packet, struct error *e)
{
    struct worker_side *w = ps->worker;
    struct world *world = ps->base.world;
    int rc;

    for (int j = 0; j < ps->servers; j++) {
        struct connection *c = &w->servers[j];

        *late = j;
        for (*packet = 0; *packet < c->packing->packet_count; ++*packet)
            if ((rc = message_done(world, &c->out[*packet], e)) != 1 ||
                (rc = message_done(world, &c->in[*packet], e)) != 1)
                return rc;
    }
    *late = 0;
    *packet = 0;
    if ((rc = message_done(world, &w->tally_out, e)) != 1)
        return rc;
    return message_done(world, &w->verdict_in, e);
}

static int parameter_server_late_sentence(const struct parameter_server *ps, const struct patience *patience, int late,
                                          size_t packet, struct error *e)
{
    const struct strategy *s = &ps->base;
    const struct packing *p = &ps->packings[late];
    struct extent x = { 0, 1 };
    char names[200], server[WORLD_NAME_MAX];

    if (p->packet_count > 0) {
        x.from = p->packets[packet].low;
        x.to = p->pieces[p->packets[packet].first_piece].to;
    }
    extent_names(s->network, x, names, sizeof names);
    world_name(s->world, parameter_server_rank_of(ps, late), server, sizeof server);
    return patience_over(patience, e, "at step %lld for %s (server %d), for tensors %s", (long long)ps->worker->step,
                         server, late, names);
}

/* Longer than the servers wait: a server can name the missing worker, we only the server. Of the workers the first
 * reports. */
static double patience_of(const struct parameter_server *ps)
{
    const double deadline = world_deadline(ps->base.world);

    return deadline + places_precedence(deadline, 1 + (ps->base.worker > 0));
}

/* Waits for one message to or from server j; m NULL: for all of the step. */
static int wait_for_message(struct parameter_server *ps, struct message *m, int j, struct error *e)
{
    const enum phase before = phase_clock_enter(ps->base.options.clock, PHASE_WAITING);
    struct patience p;
    size_t packet = 0;
    int rc;

    patience_init(&p, ps->base.world, patience_of(ps));
    while ((rc = m ? message_done(ps->base.world, m, e) : step_done(ps, &j, &packet, e)) == 0)
        if (!patience_pause(&p) && (rc = parameter_server_late_sentence(ps, &p, j, packet, e)) < 0)
            return rc;
    phase_clock_enter(ps->base.options.clock, before);
    return rc < 0 ? rc : OK;
}

static void take_replies(struct parameter_server *ps)
{
    struct worker_side *w = ps->worker;

    w->flags = 0;
    for (int j = 0; j < ps->servers; j++) {
        struct connection *c = &w->servers[j];

        for (size_t k = 0; k < c->packing->packet_count; k++)
            packed_state_give_values(&c->layout, ps->base.optimizer, k, c->pull + c->packing->packets[k].at);
        if (c->packing->packet_count > 0)
            w->flags |= (uint32_t)c->pull[c->packing->length];
    }
}

/* Asynchronous: nothing of the step was pushed, so nothing will be answered. */
static void take_back(struct parameter_server *ps, struct tally *tally)
{
    struct worker_side *w = ps->worker;

    for (int j = 0; j < ps->servers; j++)
        for (size_t k = 0; k < w->servers[j].packing->packet_count; k++)
            message_cancel(ps->base.world, &w->servers[j].in[k]);
    message_cancel(ps->base.world, &w->verdict_in);
    w->flags = tally->flags & ~(uint32_t)TALLY_LEFT;
    tally->global_step = ps->base.global_step;
    tally->more = 0;
}

static int parameter_server_step_end(struct strategy *s, struct tally *tally, struct error *e)
{
    struct parameter_server *ps = (struct parameter_server *)s;
    struct worker_side *w = ps->worker;
    const struct verdict *v = &w->verdict;
    double begun;
    int rc;

    if (!s->options.synchronous && (tally->flags & TALLY_LEFT)) {
        take_back(ps, tally);
        return OK;
    }
    w->part = strategy_part(s, tally);
    w->part.flags |= w->flags;
    parameter_server_ready(s, 0);
    if (w->error.code < 0)
        return error_copy(e, &w->error);
    rc = world_send(s->world, parameter_server_rank_of(ps, 0), TAG_TALLY, &w->part, sizeof w->part, &w->tally_out, e);
    begun = clock_monotonic();
    if (rc < 0 || (rc = wait_for_message(ps, NULL, 0, e)) < 0)
        return rc;
    w->waited += clock_monotonic() - begun;
    w->bytes += (int64_t)sizeof w->part;
    w->steps++;
    if (v->other >= 0)
        return error_set(e, ERR_CORRUPT,
                         "replicas differ before step %lld: the weights of worker %lld are not those of worker 0",
                         (long long)s->global_step, (long long)v->other);
    w->left = (v->flags & TALLY_LEFT) != 0;
    phase_clock_enter(s->options.clock, PHASE_UPDATING);
    if (!w->left)
        take_replies(ps);
    *tally = (struct tally){ v->score, v->flags, v->global_step, v->more };
    s->global_step = v->global_step;
    return OK;
}

/* Sends kind and its `count` arguments. */
static int control(struct parameter_server *ps, enum control kind, const int64_t *words, size_t count, struct error *e)
{
    int rc;

    for (int j = 0; j < ps->servers; j++) {
        struct connection *c = &ps->worker->servers[j];

        if ((rc = wait_for_message(ps, &c->control, j, e)) < 0)
            return rc;
        c->words[0] = kind;
        if (count)
            memcpy(c->words + 1, words, count * sizeof *words);
        if ((rc = world_send(ps->base.world, parameter_server_rank_of(ps, j), TAG_CONTROL, c->words,
                             (1 + count) * sizeof *c->words, &c->control, e)) < 0)
            return rc;
    }
    return OK;
}

/* Receives n bytes from server j, waiting. */
static int receive_now(struct parameter_server *ps, int j, int tag, void *bytes, size_t n, struct error *e)
{
    struct message m = { 0, 0, 0 };
    int rc = world_receive(ps->base.world, parameter_server_rank_of(ps, j), tag, bytes, n, &m, e);

    return rc < 0 ? rc : wait_for_message(ps, &m, j, e);
}

static int say_done(struct parameter_server *ps, struct error *e)
{
    if (ps->worker->done_said)
        return OK;
    ps->worker->done_said = 1;
    return control(ps, CONTROL_DONE, &(int64_t){ ps->worker->flags }, 1, e);
}

/* The largest counts over all servers: the point at which all of them can stop. */
static int agree_on_cut(struct parameter_server *ps, int64_t *counts, int64_t *cut, struct error *e)
{
    const size_t workers = (size_t)ps->base.workers;
    int rc = OK;

    for (int j = 0; j < ps->servers && rc == OK; j++) {
        rc = receive_now(ps, j, TAG_COUNTS, counts, workers * sizeof *counts, e);
        for (size_t r = 0; r < workers; r++)
            cut[r] = counts[r] > cut[r] ? counts[r] : cut[r];
    }
    return rc < 0 ? rc : control(ps, ps->worker->left ? CONTROL_CUT_BACK : CONTROL_CUT, cut, workers, e);
}

static int take_snapshots(struct parameter_server *ps, real *packed, struct error *e)
{
    int rc = OK;

    for (int j = 0; j < ps->servers && rc == OK; j++) {
        const struct packed_state *layout = &ps->worker->servers[j].layout;

        if ((rc = receive_now(ps, j, TAG_SNAPSHOT, packed, layout->length * sizeof *packed, e)) == OK)
            packed_state_give(layout, ps->base.optimizer, packed);
    }
    return rc;
}

static int parameter_server_collect(struct strategy *s, int last, int64_t *step, struct error *e)
{
    struct parameter_server *ps = (struct parameter_server *)s;
    const size_t workers = (size_t)s->workers;
    int64_t *counts = calloc(2 * workers, sizeof *counts), *cut = counts ? counts + workers : NULL;
    size_t largest = 0;
    real *packed;
    int rc = OK;

    for (int j = 0; j < ps->servers; j++)
        if (ps->worker->servers[j].layout.length > largest)
            largest = ps->worker->servers[j].layout.length;
    packed = malloc((largest + 1) * sizeof *packed);
    if (!counts || !packed)
        rc = error_memory(e, NULL, "for the servers' state of %zu values", largest);
    if (rc == OK && last)
        rc = say_done(ps, e);
    if (rc == OK)
        rc = control(ps, last ? CONTROL_FREEZE_LAST : CONTROL_FREEZE, NULL, 0, e);
    if (rc == OK && (rc = agree_on_cut(ps, counts, cut, e)) == OK)
        rc = take_snapshots(ps, packed, e);
    if (rc == OK) {
        *step = s->options.first_step + cut[0] - ps->worker->left;
        for (size_t r = 1; r < workers && !s->options.synchronous; r++)
            *step += cut[r];
    }
    free(counts);
    free(packed);
    return rc;
}

static int parameter_server_serve(struct strategy *s, const volatile int *signal, struct error *e)
{
    return server_loop_run(((struct parameter_server *)s)->server, signal, e);
}

static int parameter_server_finish(struct strategy *s, struct error *e)
{
    struct parameter_server *ps = (struct parameter_server *)s;
    int rc = say_done(ps, e);

    if (rc == OK && s->worker == 0)
        rc = control(ps, CONTROL_EXIT, NULL, 0, e);
    for (int j = 0; j < ps->servers && rc == OK; j++)
        rc = wait_for_message(ps, &ps->worker->servers[j].control, j, e);
    return rc;
}

static void parameter_server_report(const struct strategy *s, struct strategy_report *r)
{
    const struct worker_side *w = ((const struct parameter_server *)s)->worker;

    *r = (struct strategy_report){ .transport = "messages" };
    if (!w)
        return;
    r->bytes_step = w->steps ? (double)w->bytes / (double)w->steps : 0;
    r->waited = w->waited;
    r->staleness_mean = w->verdict.staleness_mean;
    r->staleness_max = w->verdict.staleness_max;
}

static void worker_side_free(struct parameter_server *ps)
{
    struct worker_side *w = ps->worker;

    if (!w)
        return;
    for (int j = 0; w->servers && j < ps->servers; j++) {
        free(w->servers[j].push);
        free(w->servers[j].pull);
        free(w->servers[j].out);
        free(w->servers[j].in);
        free(w->servers[j].words);
    }
    for (int k = 0; w->vectors && k < reduction_vectors(&ps->base.reduction, ps->base.worker) - 1; k++)
        free(w->vectors[k]);
    free(w->vectors);
    free(w->servers);
    free(w);
    ps->worker = NULL;
}

static void parameter_server_release(struct strategy *s)
{
    struct parameter_server *ps = (struct parameter_server *)s;

    worker_side_free(ps);
    server_loop_free(ps->server);
    for (int j = 0; ps->packings && j < ps->servers; j++)
        packing_release(&ps->packings[j]);
    free(ps->packings);
    placement_release(&ps->placement);
    free(ps);
}

static const struct strategy_operations operations = {
    .step_begin = parameter_server_step_begin,
    .ready = parameter_server_ready,
    .step_end = parameter_server_step_end,
    .collect = parameter_server_collect,
    .serve = parameter_server_serve,
    .finish = parameter_server_finish,
    .report = parameter_server_report,
    .free = parameter_server_release,
};

static int worker_vectors_new(struct parameter_server *ps)
{
    const int count = reduction_vectors(&ps->base.reduction, ps->base.worker);
    real **v = ps->worker->vectors = calloc((size_t)count, sizeof *v);

    for (int k = 0; v && k < count; k++)
        if (!(v[k] = k < count - 1 ? reals_new(network_exchange_count(ps->base.network))
                                   : network_exchange(ps->base.network)))
            return 0;
    ps->base.vectors = v;
    return v != NULL;
}

static int worker_side_new(struct parameter_server *ps, struct error *e)
{
    struct worker_side *w = ps->worker = calloc(1, sizeof *w);
    const int servers = ps->servers;
    int bad;

    if (w)
        w->servers = calloc((size_t)servers, sizeof *w->servers);
    bad = !w || !w->servers || !worker_vectors_new(ps);
    for (int j = 0; j < servers && !bad; j++) {
        struct connection *c = &w->servers[j];

        c->packing = &ps->packings[j];
        c->layout = packed_state_of(ps->base.optimizer, c->packing);
        c->push = calloc(c->packing->length * (size_t)reduction_vectors(&ps->base.reduction, ps->base.worker) + 1,
                         sizeof *c->push);
        c->pull = calloc(c->packing->length + 1, sizeof *c->pull);
        c->out = calloc(c->packing->packet_count + 1, sizeof *c->out);
        c->in = calloc(c->packing->packet_count + 1, sizeof *c->in);
        c->words = calloc(1 + (size_t)ps->base.workers, sizeof *c->words);
        bad = !c->push || !c->pull || !c->out || !c->in || !c->words;
    }
    return bad ? error_memory(e, NULL, "for a worker's messages") : OK;
}

static int place(struct parameter_server *ps, struct error *e)
{
    const struct strategy *s = &ps->base;
    const size_t vectors = (size_t)reduction_most_vectors(&s->reduction);
    size_t limit;
    int rc;

    if (!(ps->packings = calloc((size_t)ps->servers, sizeof *ps->packings)))
        return error_memory(e, NULL, "for %d servers", ps->servers);
    rc = placement_of(&ps->placement, s->network, ps->servers, e);
    limit = s->options.bucket_bytes / sizeof(real);
    for (int j = 0; j < ps->servers && rc == OK; j++) {
        rc = packing_make(&ps->packings[j], &ps->placement, j, limit ? limit : 1, e);
        if (rc == OK && (ps->packings[j].packet_count > PACKETS_MAX || limit > INT_MAX / sizeof(real) / 2 / vectors ||
                         packed_state_of(s->optimizer, &ps->packings[j]).length > INT_MAX / sizeof(real)))
            rc = error_set(e, ERR_ARG,
                           "--bucket-bytes %zu: a server would send %zu packets; use 1 to %d of at most 1 GiB",
                           s->options.bucket_bytes, ps->packings[j].packet_count, PACKETS_MAX);
    }
    return rc;
}

static int server_side_new(struct parameter_server *ps, struct error *e)
{
    const struct strategy *s = &ps->base;
    const int server = world_rank(s->world) - s->workers;
    const struct server_setup setup = {
        .world = s->world,
        .optimizer = s->optimizer,
        .network = s->network,
        .packing = &ps->packings[server],
        .workers = s->workers,
        .servers = ps->servers,
        .server = server,
        .synchronous = s->options.synchronous,
        .reduction = &s->reduction,
        .first_step = s->options.first_step,
        .max_steps = s->options.max_steps,
        .clock = s->options.clock,
    };

    return server_loop_new(&ps->server, &setup, e);
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
        rc = place(ps, e);
        if (rc == OK)
            rc = common->worker < 0 ? server_side_new(ps, e) : worker_side_new(ps, e);
        /* Asynchronous workers draw tickets for pushes, so the run ends at max_steps exactly; the first ones are
         * handed out by number. */
        if (!common->options.synchronous && common->worker >= 0)
            ps->base.more = common->options.first_step + common->worker < common->options.max_steps;
    }
    rc = world_agree(common->world, "place the variables", rc, e);
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
        { OPTION_INT, .name = "servers", .value = &o->servers.total, .argument = "K", .minimum = 1, .maximum = 1000,
          .help = "Use the last K ranks as parameter servers, with --run-option ps. Default: 1." },
        { OPTION_INT, .name = "servers-per-host", .value = &o->servers.per_host, .argument = "N", .minimum = 1,
          .maximum = 1000,
          .help = "Use the last N ranks on each host as parameter servers instead, with --run-option ps, however the "
                  "launcher places the ranks." },
        { OPTION_FLAG, .name = "sync", .value = &o->sync,
          .help = "Make one update per step from the gradients of all workers, with --run-option ps (default)." },
        { OPTION_FLAG, .name = "async", .value = &o->async,
          .help = "Make an update from the gradients of each worker as they arrive, with --run-option ps, and report "
                  "the staleness." },
    };

    _Static_assert(sizeof table / sizeof *table <= STRATEGY_ROWS, "the rows have room");
    *o = (struct parameter_server_options){ .servers = { .total = 1 }, .sync = 1 };
    memcpy(rows, table, sizeof table);
    return sizeof table / sizeof *table;
}

static void parameter_server_resolve(struct strategy_options *options)
{
    const struct parameter_server_options *o = own_options(options);

    options->synchronous = o->sync && !o->async;
    if (!options->synchronous)
        snprintf(options->label, sizeof options->label, "ps --async");
}

static struct strategy_servers *parameter_server_servers(struct strategy_options *options)
{
    return &((struct parameter_server_options *)(void *)options->own.bytes)->servers;
}

static int parameter_server_workers(const struct strategy_options *options, int ranks, struct error *e)
{
    const int servers = (int)own_options(options)->servers.total;

    if (ranks <= servers)
        return error_set(
            e, ERR_ARG,
            "%d rank%s with --servers %d leaves zero ranks as workers; start at least %d ranks (mpirun -n %d)", ranks,
            ranks == 1 ? "" : "s", servers, servers + 1, servers + 1);
    return ranks - servers;
}

static void parameter_server_describe(const struct strategy_options *options, int ranks, char *text, size_t size)
{
    const int servers = (int)own_options(options)->servers.total;
    const int workers = ranks - servers;

    snprintf(text, size, "%d worker%s and %d server%s", workers, workers == 1 ? "" : "s", servers,
             servers == 1 ? "" : "s");
}

const struct strategy_kind strategy_parameter_server = {
    .name = "ps",
    .help = "on workers, with the last ranks as parameter servers",
    .exclusive = "async",
    .options = parameter_server_rows,
    .resolve = parameter_server_resolve,
    .servers = parameter_server_servers,
    .workers = parameter_server_workers,
    .describe = parameter_server_describe,
    .start = parameter_server_start,
};
