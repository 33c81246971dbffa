#include "trainer/server/server_loop.h"

#include "trainer/collective/places.h"
#include "trainer/server/aggregation.h"
#include "trainer/server/server_core.h"

#include <stdlib.h>
#include <string.h>

/* one worker's, on server 0 */
struct tally_slot {
    struct message in, out;
    struct tally_part part;
    struct verdict verdict;
};

struct server_loop {
    struct server_setup setup;
    struct server_core *core;
    struct aggregation *aggregation;
    size_t packets;
    struct message *in, *out;   /* (workers, packets) */
    struct tally_slot *tallies; /* (workers) */
    struct message control, counts_out, snapshot_out, statistics_out;
    struct server_statistics statistics;
    int64_t *words, *counts; /* (1 + workers), (workers) */
    char *late;              /* (workers) */
    const volatile int *signal;
};

static size_t message_at(const struct server_loop *l, int worker, size_t packet)
{
    return (size_t)worker * l->packets + packet;
}

static int tallies_here(const struct server_loop *l)
{
    return l->setup.server == 0;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static int post_push(struct server_loop *l, int worker, size_t k, struct error *e)
{
    return world_receive(l->setup.world, worker, TAG_PUSH + (int)k, aggregation_incoming(l->aggregation, worker, k),
                         l->setup.packing->packets[k].length * sizeof(real) *
                             (size_t)reduction_vectors(l->setup.reduction, worker),
                         &l->in[message_at(l, worker, k)], e);
}

static int post_tally(struct server_loop *l, int worker, struct error *e)
{
    struct tally_slot *t = &l->tallies[worker];

    return world_receive(l->setup.world, worker, TAG_TALLY, &t->part, sizeof t->part, &t->in, e);
}

static int post_control(struct server_loop *l, struct error *e)
{
    return world_receive(l->setup.world, WORLD_ANY_RANK, TAG_CONTROL, l->words,
                         (1 + (size_t)l->setup.workers) * sizeof *l->words, &l->control, e);
}

/* A send that the receiver has already received is done as soon as MPI is called. */
static int settle(struct server_loop *l, struct message *m, int worker, const char *what, struct error *e)
{
    char name[WORLD_NAME_MAX];
    struct patience p;
    int rc;

    patience_init(&p, l->setup.world, world_deadline(l->setup.world));
    while ((rc = message_done(l->setup.world, m, e)) == 0)
        if (!patience_pause(&p)) {
            world_name(l->setup.world, worker, name, sizeof name);
            return patience_over(&p, e, "at step %lld, as server %d, for %s to take %s",
                                 (long long)server_core_step(l->core), l->setup.server, name, what);
        }
    return rc < 0 ? rc : OK;
}

/* ---- actions ----------------------------------------------------------------------------------------------------- */

static int answer_push(struct server_loop *l, int worker, size_t k, struct error *e)
{
    size_t count;
    const real *values = aggregation_values(l->aggregation, worker, k, &count);
    int rc = post_push(l, worker, k, e);

    if (rc == OK)
        rc = world_send(l->setup.world, worker, TAG_REPLY + (int)k, values, count * sizeof *values,
                        &l->out[message_at(l, worker, k)], e);
    return rc;
}

static int answer_tally(struct server_loop *l, int worker, const struct verdict *verdict, struct error *e)
{
    struct tally_slot *t = &l->tallies[worker];
    int rc = settle(l, &t->out, worker, "a verdict", e);

    t->verdict = *verdict;
    if (rc == OK && (rc = post_tally(l, worker, e)) == OK)
        rc = world_send(l->setup.world, worker, TAG_VERDICT, &t->verdict, sizeof t->verdict, &t->out, e);
    return rc;
}

static int act_update(struct server_loop *l, const struct server_action *a, int first, int last, struct error *e)
{
    int rc = OK;

    for (int w = first; w < last && rc == OK; w++)
        rc = settle(l, &l->out[message_at(l, w, a->packet)], w, "weights", e);
    if (rc == OK)
        aggregation_update(l->aggregation, a->worker, a->packet, a->step, tally_signal(*l->signal));
    for (int w = first; w < last && rc == OK; w++)
        rc = answer_push(l, w, a->packet, e);
    return rc;
}

static int act_counts(struct server_loop *l, const struct server_action *a, struct error *e)
{
    const size_t bytes = (size_t)l->setup.workers * sizeof *l->counts;
    int rc = settle(l, &l->counts_out, 0, "counts", e);

    if (rc < 0)
        return rc;
    memcpy(l->counts, a->counts, bytes);
    return world_send(l->setup.world, 0, TAG_COUNTS, l->counts, bytes, &l->counts_out, e);
}

static int act_snapshot(struct server_loop *l, const struct server_action *a, struct error *e)
{
    const real *state;
    size_t count;
    int rc = settle(l, &l->snapshot_out, 0, "a snapshot", e);

    if (rc < 0)
        return rc;
    state = aggregation_snapshot(l->aggregation, a->back, &count);
    return world_send(l->setup.world, 0, TAG_SNAPSHOT, state, count * sizeof *state, &l->snapshot_out, e);
}

static int act(struct server_loop *l, const struct server_action *a, struct error *e)
{
    const int everybody = a->worker == SERVER_EVERYBODY;
    const int first = everybody ? 0 : a->worker, last = everybody ? l->setup.workers : a->worker + 1;
    int rc = OK;

    if (a->kind == SERVER_UPDATE && a->packet == 0)
        phase_clock_step(l->setup.clock, a->step, PHASE_OTHER);
    else if (a->kind != SERVER_NOTHING)
        phase_clock_enter(l->setup.clock, PHASE_OTHER);
    switch (a->kind) {
    case SERVER_NOTHING: break;
    case SERVER_UPDATE: rc = act_update(l, a, first, last, e); break;
    case SERVER_VERDICT:
        for (int w = first; w < last && rc == OK; w++)
            rc = answer_tally(l, w, &a->verdict, e);
        break;
    case SERVER_COUNTS: rc = act_counts(l, a, e); break;
    case SERVER_SNAPSHOT: rc = act_snapshot(l, a, e); break;
    }
    phase_clock_enter(l->setup.clock, PHASE_WAITING);
    return rc;
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

/* Each of these returns 1: a message came and was taken, 0: nothing. */

static int look_for_push(struct server_loop *l, int worker, size_t k, struct error *e)
{
    struct message *m = &l->in[message_at(l, worker, k)];
    struct server_action action;
    int rc;

    if (!m->active || !server_core_takes_push(l->core, worker, k) || (rc = message_done(l->setup.world, m, e)) == 0)
        return 0;
    if (rc < 0)
        return rc;
    server_core_push(l->core, worker, k, world_ran(l->setup.world), &action);
    return (rc = act(l, &action, e)) < 0 ? rc : 1;
}

static int look_for_tally(struct server_loop *l, int worker, struct error *e)
{
    struct tally_slot *t = &l->tallies[worker];
    struct server_action action;
    int rc;

    if (!t->in.active || !server_core_takes_tally(l->core, worker) ||
        (rc = message_done(l->setup.world, &t->in, e)) == 0)
        return 0;
    if (rc < 0)
        return rc;
    server_core_tally(l->core, worker, &t->part, tally_signal(*l->signal), world_ran(l->setup.world), &action);
    return (rc = act(l, &action, e)) < 0 ? rc : 1;
}

static int look_for_control(struct server_loop *l, struct error *e)
{
    int rc = message_done(l->setup.world, &l->control, e);

    if (rc <= 0)
        return rc;
    if (l->control.source >= 0 && l->control.source < l->setup.workers)
        server_core_control(l->core, l->control.source, l->words, world_ran(l->setup.world));
    return (rc = post_control(l, e)) < 0 ? rc : 1;
}

/* Checks everything once. */
static int look(struct server_loop *l, struct error *e)
{
    struct server_action action;
    int moved = look_for_control(l, e), rc = moved;

    for (int w = 0; w < l->setup.workers && rc >= 0; w++) {
        for (size_t k = 0; k < l->packets && rc >= 0; k++)
            moved |= (rc = look_for_push(l, w, k, e)) > 0;
        if (rc >= 0)
            moved |= (rc = look_for_tally(l, w, e)) > 0;
    }
    if (rc < 0)
        return rc;
    server_core_cut(l->core, world_ran(l->setup.world), &action);
    if ((rc = act(l, &action, e)) < 0)
        return rc;
    return moved > 0 || action.kind != SERVER_NOTHING;
}

static int server_late_sentence(struct server_loop *l, const struct patience *patience, struct error *e)
{
    struct buffer workers = BUFFER_EMPTY;
    char names[200] = "none";
    int64_t step;
    const size_t packet = server_core_waits_for(l->core, &step);
    int rc;

    places_text(&workers, world_places(l->setup.world), l->late, l->setup.workers, 1);
    if (l->packets > 0) {
        const struct packet *p = &l->setup.packing->packets[packet];
        const struct extent x = { p->low, l->setup.packing->pieces[p->first_piece].to };

        extent_names(l->setup.network, x, names, sizeof names);
    }
    rc = patience_over(patience, e, "at step %lld, as server %d, for %s, for tensors %s", (long long)step,
                       l->setup.server, buffer_text(&workers), names);
    buffer_release(&workers);
    return rc;
}

static int post_all(struct server_loop *l, struct error *e)
{
    int rc = post_control(l, e);

    for (int w = 0; w < l->setup.workers && rc == OK; w++) {
        for (size_t k = 0; k < l->packets && rc == OK; k++)
            rc = post_push(l, w, k, e);
        if (rc == OK && tallies_here(l))
            rc = post_tally(l, w, e);
    }
    return rc;
}

/* After the last step: worker 0 waits for them. */
static int send_statistics(struct server_loop *l, struct error *e)
{
    if (!tallies_here(l))
        return OK;
    l->statistics = server_core_statistics(l->core);
    return world_send(l->setup.world, 0, TAG_STATISTICS, &l->statistics, sizeof l->statistics, &l->statistics_out, e);
}

/* After the last step: cancels pending receives, and waits for pending sends. */
static int settle_all(struct server_loop *l, struct error *e)
{
    int rc = OK;

    for (int w = 0; w < l->setup.workers && rc == OK; w++) {
        for (size_t k = 0; k < l->packets && rc == OK; k++) {
            message_cancel(l->setup.world, &l->in[message_at(l, w, k)]);
            rc = settle(l, &l->out[message_at(l, w, k)], w, "weights", e);
        }
        if (rc == OK && tallies_here(l)) {
            message_cancel(l->setup.world, &l->tallies[w].in);
            rc = settle(l, &l->tallies[w].out, w, "a verdict", e);
        }
    }
    if (rc == OK)
        message_cancel(l->setup.world, &l->control);
    if (rc == OK && (rc = settle(l, &l->counts_out, 0, "counts", e)) == OK)
        rc = settle(l, &l->snapshot_out, 0, "a snapshot", e);
    return rc < 0 ? rc : settle(l, &l->statistics_out, 0, "statistics", e);
}

int server_loop_run(struct server_loop *l, const volatile int *signal, struct error *e)
{
    const double deadline = world_deadline(l->setup.world), precedence = places_precedence(deadline, 3);
    struct patience p;
    int rc = post_all(l, e);

    l->signal = signal;
    /* Of several servers the first reports: the others wait a little longer. */
    patience_init(&p, l->setup.world, deadline + places_precedence(deadline, l->setup.server > 0));
    server_core_begin(l->core, p.begun);
    while (rc >= 0 && !server_core_ended(l->core)) {
        if ((rc = look(l, e)) > 0)
            patience_calm(&p);
        else if (rc == 0)
            patience_pause(&p);
        if (rc >= 0 && server_core_late(l->core, world_ran(l->setup.world), p.begun, p.limit, precedence, l->late))
            rc = server_late_sentence(l, &p, e);
    }
    if (rc >= 0)
        rc = send_statistics(l, e);
    return rc < 0 ? rc : settle_all(l, e);
}

int server_loop_new(struct server_loop **out, const struct server_setup *setup, struct error *e)
{
    const struct server_plan plan = { .workers = setup->workers,
                                      .synchronous = setup->synchronous,
                                      .tallies = setup->server == 0,
                                      .servers = setup->servers,
                                      .packets = setup->packing->packet_count,
                                      .first_step = setup->first_step,
                                      .max_steps = setup->max_steps };
    const size_t workers = (size_t)setup->workers, cells = workers * plan.packets + 1;
    struct server_loop *l = calloc(1, sizeof *l);
    int rc = ERR_NOMEM;

    if (l) {
        l->setup = *setup;
        l->packets = plan.packets;
        l->in = calloc(cells, sizeof *l->in);
        l->out = calloc(cells, sizeof *l->out);
        l->tallies = calloc(workers, sizeof *l->tallies);
        l->words = calloc(workers + 1, sizeof *l->words);
        l->counts = calloc(workers, sizeof *l->counts);
        l->late = calloc(workers, 1);
    }
    if (!l || !l->in || !l->out || !l->tallies || !l->words || !l->counts || !l->late)
        error_memory(e, NULL, "for a server's messages");
    else if ((rc = server_core_new(&l->core, &plan, e)) == OK)
        rc = aggregation_new(&l->aggregation, setup->optimizer, setup->packing, setup->reduction, setup->synchronous,
                             e);
    if (rc == OK)
        aggregation_set_clock(l->aggregation, setup->clock);
    if (rc < 0) {
        server_loop_free(l);
        return rc;
    }
    *out = l;
    return OK;
}

void server_loop_free(struct server_loop *l)
{
    if (!l)
        return;
    server_core_free(l->core);
    aggregation_free(l->aggregation);
    free(l->in);
    free(l->out);
    free(l->tallies);
    free(l->words);
    free(l->counts);
    free(l->late);
    free(l);
}
