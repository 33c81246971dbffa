/*
 * parameter_service.c - a parameter server's life: take pushes, add, update, reply. One loop looks at everything that
 * may have come and sleeps when nothing has, so an idle server leaves its core to the workers. The protocol stands in
 * parameter_protocol.h.
 */
#include "trainer/server/parameter_protocol.h"

#include "trainer/collective/places.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tally_slot { /* one worker's tallies, on server 0 */
    struct message in, out;
    struct step_part part;
    struct verdict verdict;
    int here;
    int64_t count, pulled; /* tallies taken; the global step of its last verdict */
};

struct server_side {
    const struct packing *packing;
    int server;
    size_t packets, row;       /* row: elements of one worker's packed vector, plus one for flags */
    real *incoming, *outgoing; /* (workers, row) */
    real *added;               /* (row) packed sums */
    real *sum;                 /* the exchange vector, of which only what we hold is used */
    const real **rows;         /* (workers) into incoming */
    struct message *in, *out;  /* (workers, packets) */
    char *here;                /* (workers, packets): arrived, not used yet */
    int64_t *count;            /* (workers, packets): used */
    int64_t *version;          /* (packets): updates applied */
    int64_t *limit;            /* (workers): use no more pushes than this; INT64_MAX while not frozen */
    struct tally_slot *tallies;
    struct message control, counts_out, snapshot_out;
    int64_t *words, *counts;
    real *snapshot, *before;   /* the state as it is sent; each packet's state before its last update (synchronous) */
    size_t *before_at;         /* (packets) */
    int freeze, cut, back, leave, done; /* freeze: 1 asked, 2 asked for when all workers are done; back: without
                                the last push; done: workers */
    char *done_by, *late;      /* (workers) */
    double *heard, frozen_at;  /* (workers) world_ran() when something of it was taken last, but for frozen time */
    int64_t granted, pushes, staleness_max;
    double staleness_sum;
    uint32_t sticky;           /* flags to tell everybody, and worker 0 (SAVE) */
    const volatile int *signal;
};

static size_t at(const struct server_side *v, int worker, size_t packet)
{
    return (size_t)worker * v->packets + packet;
}

static int post_push(struct parameter_server *ps, int worker, size_t k, struct error *e)
{
    struct server_side *v = ps->server;

    return world_receive(ps->base.world, worker, TAG_PUSH + (int)k,
                         v->incoming + (size_t)worker * v->row + v->packing->packets[k].at,
                         v->packing->packets[k].length * sizeof(real), &v->in[at(v, worker, k)], e);
}

static int post_tally(struct parameter_server *ps, int worker, struct error *e)
{
    struct tally_slot *t = &ps->server->tallies[worker];

    return world_receive(ps->base.world, worker, TAG_TALLY, &t->part, sizeof t->part, &t->in, e);
}

static int post_control(struct parameter_server *ps, struct error *e)
{
    struct server_side *v = ps->server;

    return world_receive(ps->base.world, WORLD_ANY_RANK, TAG_CONTROL, v->words,
                         (1 + (size_t)ps->base.workers) * sizeof *v->words, &v->control, e);
}

/* A send of ours that the other side has already received ends as soon as MPI looks at it. */
static int settle(struct parameter_server *ps, struct message *m, int worker, const char *what, struct error *e)
{
    char name[WORLD_NAME_MAX];
    struct patience p;
    int rc;

    patience_init(&p, ps->base.world, world_deadline(ps->base.world));
    while ((rc = message_done(ps->base.world, m, e)) == 0)
        if (!patience_pause(&p)) {
            world_name(ps->base.world, worker, name, sizeof name);
            return patience_over(&p, e, "at step %lld, as server %d, for %s to take %s",
                                 (long long)ps->base.global_step, ps->server->server, name, what);
        }
    return rc < 0 ? rc : OK;
}

static int reply(struct parameter_server *ps, int worker, int row, size_t k, struct error *e)
{
    struct server_side *v = ps->server;
    size_t n = v->packing->packets[k].length + (k + 1 == v->packets);

    return world_send(ps->base.world, worker, TAG_REPLY + (int)k,
                      v->outgoing + (size_t)row * v->row + v->packing->packets[k].at, n * sizeof(real),
                      &v->out[at(v, worker, k)], e);
}

/* Updates packet k with the sums in `packed` and packs the new values into row `row` of outgoing. */
static void update(struct parameter_server *ps, size_t k, const real *packed, int64_t samples, int row)
{
    struct server_side *v = ps->server;
    const struct packing *p = v->packing;
    const struct packet *packet = &p->packets[k];
    real *out = v->outgoing + (size_t)row * v->row;

    if (v->before)
        state_gather(ps->base.optimizer, p, k, ARRAY_WEIGHTS, ARRAY_BIASED, v->before + v->before_at[k]);
    packing_scatter(p, k, packed + packet->at, v->sum);
    for (size_t i = 0; i < packet->pieces; i++) {
        struct extent x = p->pieces[packet->first_piece + i];

        optimizer_apply(ps->base.optimizer, v->version[k], v->sum, samples, x.from, x.to);
    }
    v->version[k]++;
    state_gather(ps->base.optimizer, p, k, ARRAY_WEIGHTS, ARRAY_STATISTICS, out + packet->at);
    if (k + 1 == v->packets)
        out[p->length] = (real)tally_signal(*v->signal);
}

static int use_push(struct parameter_server *ps, int worker, size_t k, struct error *e)
{
    struct server_side *v = ps->server;
    int64_t batch = ps->base.options.batch_size;
    const struct packet *packet = &v->packing->packets[k];
    int rc = OK;

    v->heard[worker] = world_ran(ps->base.world);
    if (!ps->base.options.synchronous) {
        if ((rc = settle(ps, &v->out[at(v, worker, k)], worker, "weights", e)) < 0)
            return rc;
        update(ps, k, v->rows[worker], batch, worker);
        v->count[at(v, worker, k)]++;
        if ((rc = post_push(ps, worker, k, e)) == OK)
            rc = reply(ps, worker, worker, k, e);
        return rc;
    }
    v->here[at(v, worker, k)] = 1;
    for (int w = 0; w < ps->base.workers; w++)
        if (!v->here[at(v, w, k)])
            return OK;
    for (int w = 0; w < ps->base.workers && rc == OK; w++)
        rc = settle(ps, &v->out[at(v, w, k)], w, "weights", e);
    exchange_sum(v->added, v->rows, ps->base.workers, packet->at, packet->at + packet->length);
    update(ps, k, v->added, batch * ps->base.workers, 0);
    for (int w = 0; w < ps->base.workers && rc == OK; w++) {
        v->here[at(v, w, k)] = 0;
        v->count[at(v, w, k)]++;
        if ((rc = post_push(ps, w, k, e)) == OK)
            rc = reply(ps, w, 0, k, e);
    }
    return rc;
}

static int send_verdict(struct parameter_server *ps, int worker, const struct verdict *verdict, struct error *e)
{
    struct tally_slot *t = &ps->server->tallies[worker];
    int rc = settle(ps, &t->out, worker, "a verdict", e);

    t->verdict = *verdict;
    t->count++;
    t->here = 0;
    t->pulled = verdict->global_step;
    if (rc == OK && (rc = post_tally(ps, worker, e)) == OK)
        rc = world_send(ps->base.world, worker, TAG_VERDICT, &t->verdict, sizeof t->verdict, &t->out, e);
    return rc;
}

static int use_tally_alone(struct parameter_server *ps, int worker, struct error *e)
{
    struct server_side *v = ps->server;
    struct strategy *s = &ps->base;
    struct tally_slot *t = &v->tallies[worker];
    int64_t stale = s->global_step - t->pulled;
    struct verdict out = { t->part.cross_entropy, t->part.correct, t->part.samples, 0, 0, 0, 0, 0, -1 };

    v->pushes++;
    v->staleness_sum += (double)stale;
    v->staleness_max = stale > v->staleness_max ? stale : v->staleness_max;
    v->sticky |= t->part.flags | tally_signal(*v->signal);
    out.global_step = ++s->global_step;
    out.staleness_mean = v->staleness_sum / (double)v->pushes;
    out.staleness_max = v->staleness_max;
    out.flags = v->sticky;
    if (worker == 0)
        v->sticky &= ~(uint32_t)TALLY_SAVE;
    if (!(out.flags & TALLY_ENDS) && s->options.first_step + v->granted < s->options.max_steps) {
        v->granted++;
        out.more = 1;
    }
    return send_verdict(ps, worker, &out, e);
}

static int use_tally(struct parameter_server *ps, int worker, struct error *e)
{
    struct server_side *v = ps->server;
    struct strategy *s = &ps->base;
    struct verdict out = { 0, 0, 0, 0, 0, 0, 0, 0, -1 };
    int rc = OK;

    v->heard[worker] = world_ran(s->world);
    if (!s->options.synchronous)
        return use_tally_alone(ps, worker, e);
    v->tallies[worker].here = 1;
    for (int w = 0; w < s->workers; w++)
        if (!v->tallies[w].here)
            return OK;
    for (int w = 0; w < s->workers; w++) {
        const struct step_part *p = &v->tallies[w].part;

        out.cross_entropy += p->cross_entropy;
        out.correct += p->correct;
        out.samples += p->samples;
        out.flags |= p->flags;
        if (p->hashed && p->hash != v->tallies[0].part.hash && out.other < 0)
            out.other = w;
    }
    out.flags |= tally_signal(*v->signal);
    if (!(out.flags & TALLY_LEFT))
        s->global_step++;
    out.global_step = s->global_step;
    out.more = s->global_step < s->options.max_steps && !(out.flags & TALLY_ENDS);
    for (int w = 0; w < s->workers && rc == OK; w++)
        rc = send_verdict(ps, w, &out, e);
    return rc;
}

static int take_control(struct parameter_server *ps, struct error *e)
{
    struct server_side *v = ps->server;
    size_t workers = (size_t)ps->base.workers;
    const int source = v->control.source;

    if (source >= 0 && source < ps->base.workers)
        v->heard[source] = world_ran(ps->base.world);
    switch (v->words[0]) {
    case CONTROL_FREEZE:
        v->freeze = 1;
        break;
    case CONTROL_FREEZE_LAST:
        v->freeze = 2;
        break;
    case CONTROL_CUT:
    case CONTROL_CUT_BACK:
        memcpy(v->limit, v->words + 1, workers * sizeof *v->limit);
        v->cut = 1;
        v->back = v->words[0] == CONTROL_CUT_BACK;
        break;
    case CONTROL_DONE:
        if (source >= 0 && source < ps->base.workers)
            v->done_by[source] = 1;
        v->sticky |= (uint32_t)v->words[1];
        v->done++;
        break;
    default:
        v->leave = 1;
        break;
    }
    return post_control(ps, e);
}

/* Pushes of this worker that have been begun: the most packets of one number used. */
static int64_t begun(const struct server_side *v, int worker)
{
    int64_t most = v->server == 0 ? v->tallies[worker].count : 0;

    for (size_t k = 0; k < v->packets; k++)
        if (v->count[at(v, worker, k)] > most)
            most = v->count[at(v, worker, k)];
    return most;
}

static int worker_at_cut(const struct server_side *v, int worker)
{
    if (v->server == 0 && v->tallies[worker].count != v->limit[worker])
        return 0;
    for (size_t k = 0; k < v->packets; k++)
        if (v->count[at(v, worker, k)] != v->limit[worker])
            return 0;
    return 1;
}

static int at_cut(const struct parameter_server *ps)
{
    for (int w = 0; w < ps->base.workers; w++)
        if (!worker_at_cut(ps->server, w))
            return 0;
    return 1;
}

/* Does the next step towards a cut, if one is due. 1: something was done. */
static int cut_step(struct parameter_server *ps, struct error *e)
{
    struct server_side *v = ps->server;
    struct world *world = ps->base.world;
    size_t workers = (size_t)ps->base.workers, n;
    int rc;

    if (v->freeze == 1 || (v->freeze == 2 && v->done == ps->base.workers)) {
        v->freeze = 0;
        v->frozen_at = world_ran(world);
        if ((rc = settle(ps, &v->counts_out, 0, "counts", e)) < 0)
            return rc;
        for (size_t w = 0; w < workers; w++)
            v->counts[w] = v->limit[w] = begun(v, (int)w);
        rc = world_send(world, 0, TAG_COUNTS, v->counts, workers * sizeof *v->counts, &v->counts_out, e);
        return rc < 0 ? rc : 1;
    }
    if (v->cut && at_cut(ps)) {
        v->cut = 0;
        if ((rc = settle(ps, &v->snapshot_out, 0, "a snapshot", e)) < 0)
            return rc;
        n = snapshot_gather(ps->base.optimizer, v->packing, v->snapshot);
        rc = world_send(world, 0, TAG_SNAPSHOT, v->back ? v->before : v->snapshot, n * sizeof *v->snapshot,
                        &v->snapshot_out, e);
        for (size_t w = 0; w < workers; w++) {
            v->limit[w] = INT64_MAX;
            v->heard[w] += world_ran(world) - v->frozen_at; /* it may have waited for us meanwhile */
        }
        return rc < 0 ? rc : 1;
    }
    return 0;
}

/* Looks at everything once. 1: something had come, 0: nothing. */
static int look(struct parameter_server *ps, struct error *e)
{
    struct server_side *v = ps->server;
    struct world *world = ps->base.world;
    int moved = 0, rc;

    if ((rc = message_done(world, &v->control, e)) < 0 || (rc == 1 && (moved = 1, take_control(ps, e)) < 0))
        return ERR_PEER;
    for (int w = 0; w < ps->base.workers; w++) {
        for (size_t k = 0; k < v->packets; k++) {
            struct message *m = &v->in[at(v, w, k)];

            if (!m->active || v->count[at(v, w, k)] >= v->limit[w])
                continue;
            if ((rc = message_done(world, m, e)) < 0 || (rc == 1 && (moved = 1, use_push(ps, w, k, e)) < 0))
                return ERR_PEER;
        }
        if (v->server == 0 && v->tallies[w].in.active && v->tallies[w].count < v->limit[w])
            if ((rc = message_done(world, &v->tallies[w].in, e)) < 0 ||
                (rc == 1 && (moved = 1, use_tally(ps, w, e)) < 0))
                return ERR_PEER;
    }
    rc = cut_step(ps, e);
    return rc < 0 ? rc : moved | rc;
}

/* 1: the next thing that the server needs is this worker's. */
static int is_expected(const struct parameter_server *ps, int worker)
{
    const struct server_side *v = ps->server;

    if (v->done == ps->base.workers)
        return worker == 0; /* who lets the servers go */
    if (v->done_by[worker])
        return 0;
    if (v->limit[worker] == INT64_MAX) /* not frozen */
        return 1;
    return v->cut ? !worker_at_cut(v, worker) : worker == 0;
}

/* The first packet that some workers have pushed and others have not; their number: none. */
static size_t half_pushed(const struct parameter_server *ps)
{
    const struct server_side *v = ps->server;
    size_t k = 0;

    for (; k < v->packets; k++)
        for (int w = 0; w < ps->base.workers; w++)
            if (v->here[at(v, w, k)])
                return k;
    return k;
}

/* Synchronous: 1: others have sent what this worker has not, or nobody has sent anything. */
static int is_behind(const struct parameter_server *ps, int worker, size_t packet)
{
    const struct server_side *v = ps->server;

    if (packet < v->packets)
        return !v->here[at(v, worker, packet)];
    for (int w = 0; w < ps->base.workers && v->server == 0; w++)
        if (v->tallies[w].here)
            return !v->tallies[worker].here;
    return 1;
}

/*
 * Marks the workers that have not answered for longer than the limit; 1: there are, and the server is to say so. Where
 * all are silent and there are other servers, they may be waiting for one of these: they know which, so they get the
 * time to say it.
 */
static int find_late(struct parameter_server *ps, const struct patience *p)
{
    const struct strategy *s = &ps->base;
    struct server_side *v = ps->server;
    const double now = world_ran(s->world);
    const size_t packet = half_pushed(ps);
    double longest = 0;
    int answering = s->options.servers == 1;

    for (int w = 0; w < s->workers; w++) {
        const int sync = s->options.synchronous;
        const double silence = !sync ? now - v->heard[w] : is_behind(ps, w, packet) ? now - p->begun : 0;

        v->late[w] = is_expected(ps, w) && silence > p->limit;
        if (!is_expected(ps, w))
            continue;
        longest = silence > longest ? silence : longest;
        answering |= silence <= p->limit / 2;
    }
    return longest > p->limit + (answering ? 0 : world_precedence(world_deadline(s->world), 3));
}

static int parameter_service_late_sentence(struct parameter_server *ps, const struct patience *patience,
                                           struct error *e)
{
    const struct server_side *v = ps->server;
    const size_t half = half_pushed(ps), named = half < v->packets ? half : 0;
    struct buffer workers = BUFFER_EMPTY;
    char names[200] = "none";
    int rc;

    places_text(&workers, world_places(ps->base.world), v->late, ps->base.workers, 1);
    if (v->packets > 0) {
        const struct packet *p = &v->packing->packets[named];
        struct extent x = { p->low, v->packing->pieces[p->first_piece].to };

        extent_names(ps->base.network, x, names, sizeof names);
    }
    rc = patience_over(patience, e, "at step %lld, as server %d, for %s, for tensors %s",
                       (long long)(v->packets ? v->version[named] : ps->base.global_step), v->server,
                       buffer_text(&workers), names);
    buffer_release(&workers);
    return rc;
}

int server_side_serve(struct strategy *s, const volatile int *signal, struct error *e)
{
    struct parameter_server *ps = (struct parameter_server *)s;
    struct server_side *v = ps->server;
    const double deadline = world_deadline(s->world);
    struct patience p;
    int rc = post_control(ps, e);

    v->signal = signal;
    for (int w = 0; w < s->workers && rc == OK; w++) {
        for (size_t k = 0; k < v->packets && rc == OK; k++)
            rc = post_push(ps, w, k, e);
        if (rc == OK && v->server == 0)
            rc = post_tally(ps, w, e);
    }
    /* Of several servers the first speaks: the others wait a little longer. */
    patience_init(&p, ps->base.world, deadline + world_precedence(deadline, v->server > 0));
    for (int w = 0; w < s->workers; w++)
        v->heard[w] = p.begun;
    while (rc >= 0 && !(v->leave && v->done == s->workers)) {
        if ((rc = look(ps, e)) > 0)
            patience_calm(&p);
        else if (rc == 0)
            patience_pause(&p);
        if (rc >= 0 && find_late(ps, &p))
            rc = parameter_service_late_sentence(ps, &p, e);
    }
    for (int w = 0; w < s->workers && rc >= 0; w++) {
        for (size_t k = 0; k < v->packets && rc >= 0; k++) {
            message_cancel(s->world, &v->in[at(v, w, k)]);
            rc = settle(ps, &v->out[at(v, w, k)], w, "weights", e);
        }
        if (rc >= 0 && v->server == 0) {
            message_cancel(s->world, &v->tallies[w].in);
            rc = settle(ps, &v->tallies[w].out, w, "a verdict", e);
        }
    }
    if (rc >= 0)
        message_cancel(s->world, &v->control);
    if (rc >= 0 && (rc = settle(ps, &v->counts_out, 0, "counts", e)) == OK)
        rc = settle(ps, &v->snapshot_out, 0, "a snapshot", e);
    return rc < 0 ? rc : OK;
}

int server_side_new(struct parameter_server *ps, struct error *e)
{
    struct strategy *s = &ps->base;
    struct server_side *v = ps->server = calloc(1, sizeof *v);
    size_t workers = (size_t)s->workers, total, cells, state;

    if (!v)
        return error_set(e, ERR_NOMEM, "no memory for a server");
    v->server = world_rank(s->world) - s->workers;
    v->packing = &ps->packings[v->server];
    v->packets = v->packing->packet_count;
    v->row = v->packing->length + 1;
    total = network_parameter_count(s->network) + network_statistic_count(s->network);
    cells = workers * v->packets + 1;
    state = snapshot_gather(s->optimizer, v->packing, NULL);
    v->incoming = calloc(workers * v->row, sizeof(real));
    v->outgoing = calloc((s->options.synchronous ? 1 : workers) * v->row, sizeof(real));
    v->added = calloc(v->row, sizeof(real));
    v->sum = calloc(total + 1, sizeof(real));
    v->rows = calloc(workers, sizeof *v->rows);
    v->in = calloc(cells, sizeof *v->in);
    v->out = calloc(cells, sizeof *v->out);
    v->here = calloc(cells, 1);
    v->count = calloc(cells, sizeof *v->count);
    v->version = calloc(v->packets + 1, sizeof *v->version);
    v->limit = calloc(workers, sizeof *v->limit);
    v->tallies = calloc(workers, sizeof *v->tallies);
    v->words = calloc(workers + 1, sizeof *v->words);
    v->counts = calloc(workers, sizeof *v->counts);
    v->done_by = calloc(workers, 1);
    v->late = calloc(workers, 1);
    v->heard = calloc(workers, sizeof *v->heard);
    v->snapshot = calloc(state + 1, sizeof(real));
    v->before = s->options.synchronous ? calloc(state + 1, sizeof(real)) : NULL;
    v->before_at = calloc(v->packets + 1, sizeof *v->before_at);
    if (!v->incoming || !v->outgoing || !v->added || !v->sum || !v->rows || !v->in || !v->out || !v->here ||
        !v->count || !v->version || !v->limit || !v->tallies || !v->words || !v->counts || !v->done_by ||
        !v->late || !v->heard || !v->snapshot || (s->options.synchronous && !v->before) || !v->before_at)
        return error_set(e, ERR_NOMEM, "no memory for a server that holds %zu values", v->packing->length);
    for (size_t w = 0; w < workers; w++) {
        v->rows[w] = v->incoming + w * v->row;
        v->limit[w] = INT64_MAX;
        v->tallies[w].pulled = s->global_step;
    }
    for (size_t k = 0; k < v->packets; k++) {
        v->version[k] = s->global_step;
        v->before_at[k + 1] = v->before_at[k] +
                              state_gather(s->optimizer, v->packing, k, ARRAY_WEIGHTS, ARRAY_BIASED, NULL);
    }
    v->granted = s->options.max_steps - s->options.first_step;
    if (v->granted > s->workers)
        v->granted = s->workers;
    return OK;
}

void server_side_free(struct parameter_server *ps)
{
    struct server_side *v = ps->server;

    if (!v)
        return;
    free(v->incoming);
    free(v->outgoing);
    free(v->added);
    free(v->sum);
    free(v->rows);
    free(v->in);
    free(v->out);
    free(v->here);
    free(v->count);
    free(v->version);
    free(v->limit);
    free(v->tallies);
    free(v->words);
    free(v->counts);
    free(v->done_by);
    free(v->late);
    free(v->heard);
    free(v->snapshot);
    free(v->before);
    free(v->before_at);
    free(v);
    ps->server = NULL;
}
