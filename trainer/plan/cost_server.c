/*
 * Parameter servers as trainer/server/ runs them: workers send their gradients in packets, each server adds and updates
 * a packet when all of its parts have come, and sends the values back. The packets are those of placement.h.
 *
 * The workers of a host push together, unless the plan is to be without that: their gradients are added there first.
 * Asynchronous workers, and by default those of a host that has the servers, too, push each for itself.
 *
 * Servers on hosts of their own have links of their own, and the order of messages is played (server_traffic.h). Where
 * each host of workers has a server, all hosts are alike: the traffic of one of them is laid out.
 *
 * Of tables only the rows in use travel (row_traffic.h), before and after all that.
 */
#include "trainer/plan/cost.h"

#include "trainer/plan/pipeline.h"
#include "trainer/plan/row_traffic.h"
#include "trainer/plan/server_traffic.h"
#include "trainer/server/placement.h"

#include <stdlib.h>
#include <string.h>

enum { PROCESSOR, UP, DOWN, OF_WORKER, SERVER_DOWN = 0, SERVER_UP, SERVER_PROCESSOR, OF_SERVER };

struct server_case {
    const struct plan_work *work;
    const struct plan_machine *machine;
    int workers, hosts, group, servers;
    int senders; /* that push each for itself: workers, or with the sum of its workers a host */
    enum { APART, COLOCATED, ONE_HOST } where;
    double crowding;
    struct placement placement;
    struct packing *packings; /* (servers) */
    struct pipeline *pipeline;
    struct row_traffic rows;
};

/* pushed: of gradients, which may travel as bfloat16; the new values, which come back, do not. */
struct sent_packet {
    int server;
    double bytes, pushed;
    size_t low;
};

static int by_low(const void *a, const void *b)
{
    const struct sent_packet *x = a, *y = b;

    if (x->low != y->low)
        return x->low < y->low ? 1 : -1;
    return x->server - y->server;
}

static void release(struct server_case *c)
{
    for (int j = 0; c->packings && j < c->servers; j++)
        packing_release(&c->packings[j]);
    free(c->packings);
    placement_release(&c->placement);
    pipeline_free(c->pipeline);
}

static int prepare(struct server_case *c, const struct plan_work *w, const struct plan_machine *m,
                   const struct plan_shape *s, int synchronous, struct error *e)
{
    const struct extent whole = { 0, w->elements - 1 };
    int rc;

    *c = (struct server_case){ .work = w,
                               .machine = m,
                               .workers = s->workers,
                               .hosts = plan_hosts(s),
                               .group = s->workers < s->per_host ? s->workers : s->per_host,
                               .servers = s->servers ? s->servers : plan_hosts(s) };
    c->where = s->workers + c->servers <= s->per_host || (!s->servers && c->hosts == 1) ? ONE_HOST
               : s->servers                                                             ? APART
                                                                                        : COLOCATED;
    c->senders = synchronous && !w->apart && c->where != ONE_HOST ? c->hosts : s->workers;
    c->crowding = plan_crowding(m, c->group);
    c->rows = row_traffic_of(w, m, s, c->senders < s->workers);
    rc = placement_make(&c->placement, w->variables ? w->variables : &whole, w->variables ? w->variable_count : 1,
                        c->servers, e);
    c->placement.shared = (struct extent){ w->elements - 1, w->elements };
    if (rc == OK && !(c->packings = calloc((size_t)c->servers, sizeof *c->packings)))
        rc = error_memory(e, NULL, "for %d servers", c->servers);
    for (int j = 0; j < c->servers && rc == OK; j++)
        rc = packing_make(&c->packings[j], &c->placement, j,
                          exchange_packet(c->placement.held[j] + 1, w->bucket_bytes, c->where == COLOCATED), e);
    if (rc == OK)
        rc = pipeline_new(&c->pipeline, OF_WORKER + OF_SERVER * c->servers, e);
    return rc;
}

static struct sent_packet sent_packet(const struct server_case *c, int server, size_t k)
{
    const struct packing *p = &c->packings[server];

    return (struct sent_packet){ .server = server,
                                 .bytes = (double)p->packets[k].length * sizeof(float),
                                 .pushed = (double)packing_bytes(p, k, c->work->rounded),
                                 .low = p->packets[k].low };
}

/* The server with most to do. */
static int busiest(const struct server_case *c)
{
    int most = 0;

    for (int j = 1; j < c->servers; j++)
        if (c->packings[j].length > c->packings[most].length)
            most = j;
    return most;
}

/* How many senders a host has. */
static int senders_of_host(const struct server_case *c)
{
    return c->senders < c->workers ? 1 : c->group;
}

/* How often a packet leaves a host that has a server, too: from its senders to a server of each other host, and as the
 * server's answer to all other senders. */
static double leaving(const struct server_case *c, int reply)
{
    const int own = senders_of_host(c);

    return reply ? c->senders - own : own * (c->hosts - 1);
}

/* Bytes of a step, one way, of a server's host and of a worker's. */
static double server_bytes(const struct server_case *c)
{
    const int most = busiest(c);
    const double bytes = (double)c->packings[most].length * sizeof(float);
    double pushed = 0;

    for (size_t k = 0; k < c->packings[most].packet_count; k++)
        pushed += sent_packet(c, most, k).pushed;
    return c->where == COLOCATED ? leaving(c, 0) * pushed + leaving(c, 1) * bytes : c->senders * bytes;
}

static double worker_bytes(const struct server_case *c)
{
    const double all = (double)(row_traffic_dense(c->work) - 1 + (size_t)c->servers) * sizeof(float);

    return c->where == COLOCATED ? 0 : all * (c->where == ONE_HOST ? 1 : senders_of_host(c));
}

/* What a packet takes of the links, each way: of its server's, or of the worker's if that carries more; in memory, of
 * the processors. All workers send to all servers side by side, so the other link is never what they wait for. */
static struct pipeline_task message(const struct server_case *c, const struct sent_packet *p, int reply)
{
    const struct plan_machine *m = c->machine;
    const int server = OF_WORKER + OF_SERVER * (c->where == APART ? p->server : 0);
    const double n = c->senders, bandwidth = m->network.bandwidth, bytes = reply ? p->bytes : p->pushed;
    struct pipeline_task t = { .resource = { reply ? DOWN : UP, -1 },
                               .delay = m->network.latency,
                               .after = { PIPELINE_NOTHING, PIPELINE_NOTHING } };

    if (c->where == ONE_HOST) {
        t.resource[0] = PROCESSOR;
        t.resource[1] = OF_WORKER + OF_SERVER * p->server + SERVER_PROCESSOR;
        t.duration[0] = bytes / m->memory.bandwidth + m->message;
        t.duration[1] = n * (bytes / m->memory.bandwidth + m->message);
        t.delay = m->memory.latency;
    } else if (c->where == COLOCATED) { /* what all ranks of a host send; as much comes to it */
        t.resource[0] = UP;
        t.duration[0] = plan_wire_bytes(leaving(c, reply), bytes) / bandwidth;
    } else if (server_bytes(c) >= worker_bytes(c)) {
        t.resource[0] = server + (reply ? SERVER_UP : SERVER_DOWN);
        t.duration[0] = plan_wire_bytes(n, bytes) / bandwidth;
    } else {
        t.duration[0] = plan_wire_bytes(senders_of_host(c), bytes) / bandwidth;
    }
    return t;
}

static double server_work(const struct server_case *c, double bytes)
{
    const struct plan_machine *m = c->machine;

    return c->senders * (bytes * m->add + (c->where == ONE_HOST ? 0 : 2 * m->message)) +
           c->work->update * bytes / sizeof(float) / (double)c->work->elements;
}

/* Seconds in which a host's workers' packets are added before they are sent as one. */
static double adding_first(const struct server_case *c, double bytes)
{
    return c->senders < c->workers ? plan_adding(c->machine, bytes * c->group, 1) : 0;
}

static void lay_out_packet(struct server_case *c, const struct sent_packet *p, struct computing *computing)
{
    const int server = OF_WORKER + OF_SERVER * (c->where == COLOCATED ? 0 : p->server);
    struct pipeline_task push = message(c, p, 0), reply = message(c, p, 1);
    size_t last;

    computing_until(computing, plan_final_at(c->work, p->low));
    push.after[0] = c->senders < c->workers
                        ? pipeline_then(c->pipeline, PROCESSOR, adding_first(c, p->bytes), 0, computing->last)
                        : computing->last;
    last = pipeline_add(c->pipeline, &push);
    last = pipeline_then(c->pipeline, server + SERVER_PROCESSOR, server_work(c, p->bytes), 0, last);
    reply.after[0] = last;
    last = pipeline_add(c->pipeline, &reply);
    pipeline_then(c->pipeline, PROCESSOR, p->bytes * c->machine->add, 0, last);
}

/* All packets of a worker, or where hosts are alike those of the busiest server, in the order in which they leave. */
static int list_packets(const struct server_case *c, struct sent_packet **out, size_t *count, struct error *e)
{
    const int only = c->where == COLOCATED ? busiest(c) : -1;
    size_t all = 0;

    for (int j = 0; j < c->servers; j++)
        all += c->packings[j].packet_count;
    *count = 0;
    if (!(*out = calloc(all + 1, sizeof **out)))
        return error_memory(e, NULL, "for %zu packets", all);
    for (int j = 0; j < c->servers; j++)
        for (size_t k = 0; k < c->packings[j].packet_count && (only < 0 || only == j); k++)
            (*out)[(*count)++] = sent_packet(c, j, k);
    qsort(*out, *count, sizeof **out, by_low);
    return OK;
}

/* 1: each message is laid out, since their order matters: several senders share the link of a server. */
static int is_played(const struct server_case *c, size_t packets)
{
    return c->where == APART && c->senders > 1 && (size_t)c->senders * packets <= TRAFFIC_MESSAGES_MOST;
}

static int play_steps(const struct server_case *c, const struct sent_packet *packets, size_t count, double *seconds,
                      struct error *e)
{
    struct server_traffic traffic = { .workers = c->senders,
                                      .per_host = senders_of_host(c),
                                      .servers = c->servers,
                                      .count = count,
                                      .computing = c->crowding * (c->work->forward + c->work->backward),
                                      .bandwidth = c->machine->network.bandwidth,
                                      .latency = c->machine->network.latency };
    struct traffic_packet *all = calloc(count + 1, sizeof *all);
    int rc;

    if (!all)
        return error_memory(e, NULL, "for %zu packets", count);
    for (size_t i = 0; i < count; i++)
        all[i] = (struct traffic_packet){ .server = packets[i].server,
                                          .bytes = packets[i].bytes,
                                          .pushed = packets[i].pushed,
                                          .final = c->crowding * plan_final_at(c->work, packets[i].low),
                                          .prepare = adding_first(c, packets[i].bytes),
                                          .answer = server_work(c, packets[i].bytes),
                                          .take = packets[i].bytes * c->machine->add };
    traffic.packets = all;
    rc = server_traffic_seconds(&traffic, seconds, e);
    free(all);
    return rc;
}

static int step_seconds(struct server_case *c, double *seconds, struct error *e)
{
    struct sent_packet *packets;
    struct computing computing = { c->work, c->pipeline, PROCESSOR, c->crowding, 0, PIPELINE_NOTHING };
    size_t count;
    int rc = list_packets(c, &packets, &count, e);

    if (rc == OK && is_played(c, count)) {
        rc = play_steps(c, packets, count, seconds, e);
        free(packets);
        return rc;
    }
    for (size_t i = 0; i < count && rc == OK; i++)
        lay_out_packet(c, &packets[i], &computing);
    if (rc == OK) { /* what is computed after the last packet of the busiest server is final */
        computing_until(&computing, c->work->forward + c->work->backward);
        rc = pipeline_run(c->pipeline, seconds, e);
    }
    free(packets);
    return rc;
}

static void count_bytes(const struct server_case *c, struct plan_cost *out)
{
    const double server = server_bytes(c) + (c->where == COLOCATED ? c->rows.worker : c->rows.server);
    const double worker = worker_bytes(c) + (c->where == COLOCATED ? 0 : c->rows.worker);

    out->on_server = c->where != COLOCATED && server > worker;
    out->bytes = server > worker ? server : worker;
}

static int sync_cost(const struct plan_work *w, const struct plan_machine *m, const struct plan_shape *s,
                     struct plan_cost *out, struct error *e)
{
    struct server_case c;
    int rc = prepare(&c, w, m, s, 1, e);

    if (rc == OK && (rc = step_seconds(&c, &out->seconds, e)) == OK) {
        out->seconds += c.rows.seconds;
        out->steps = 1 / out->seconds;
        count_bytes(&c, out);
    }
    release(&c);
    return rc;
}

/* Seconds for which a push and its answer keep the busiest resource of a server. */
static double server_seconds(const struct server_case *c)
{
    const int most = busiest(c);
    struct server_case one = *c;
    double link = 0, processor = 0;

    one.workers = one.senders = 1;
    for (size_t k = 0; k < c->packings[most].packet_count; k++) {
        struct sent_packet sent = sent_packet(c, most, k);

        sent.server = 0;
        processor += server_work(&one, sent.bytes);
        if (c->where == ONE_HOST)
            processor += (sent.pushed + sent.bytes) / c->machine->memory.bandwidth + 2 * c->machine->message;
        else if (c->where ==
                 COLOCATED) /* of n pushes all but this host's come over the link, and leave it as answers */
            link += (message(c, &sent, 0).duration[0] + message(c, &sent, 1).duration[0]) / c->senders;
        else
            link += plan_wire_bytes(1, sent.bytes) / c->machine->network.bandwidth;
    }
    return link > processor ? link : processor;
}

/* Each worker goes at its own pace until a server's link or processor is busy all the time. */
static int async_cost(const struct plan_work *w, const struct plan_machine *m, const struct plan_shape *s,
                      struct plan_cost *out, struct error *e)
{
    const struct plan_shape lone = { .workers = 1, .per_host = s->per_host, .servers = s->servers };
    struct server_case c, one;
    double alone = 0, together;
    int rc = prepare(&c, w, m, s, 0, e), first = prepare(&one, w, m, &lone, 0, rc < 0 ? NULL : e);

    if (rc == OK && (rc = first) == OK && (rc = step_seconds(&one, &alone, e)) == OK) {
        together = server_seconds(&c) + c.rows.busy;
        alone = c.crowding * (alone + one.rows.seconds);
        out->steps = s->workers / alone < 1 / together ? s->workers / alone : 1 / together;
        out->seconds = s->workers / out->steps;
        count_bytes(&c, out);
        out->bytes /= s->workers; /* a global step is one worker's */
    }
    release(&one);
    release(&c);
    return rc;
}

const struct plan_strategy plan_server = {
    .name = "ps",
    .help = "parameter servers, one update from all workers' gradients",
    .servers = 1,
    .cost = sync_cost,
};

const struct plan_strategy plan_server_async = {
    .name = "ps:async",
    .help = "parameter servers, an update from each gradient",
    .servers = 1,
    .asynchronous = 1,
    .cost = async_cost,
};
