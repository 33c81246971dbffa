#include "trainer/server/server_loop.h"

#include "trainer/collective/places.h"
#include "trainer/server/aggregation.h"
#include "trainer/server/norm_exchange.h"
#include "trainer/server/server_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* one group's, on server 0 */
struct tally_slot {
    struct message in, out;
    struct tally_part *parts; /* (workers of the group) */
    struct verdict verdict;
};

/* one decision on its way to the other servers, on server 0 */
struct ruling_slot {
    struct message *out; /* (servers - 1) */
    char *bytes;
};

/* A decision as it is sent; the fates of all workers follow. */
struct decision_head {
    int64_t number, step, updates;
};

/* An update whose packets wait for the norm of the gradient (--clip-norm). */
struct held_update {
    size_t added, over; /* packets: added; done with this decision */
    int64_t step;
    int sent;       /* its squares, to other servers */
    uint8_t *fates; /* (workers) whom to answer */
};

struct server_loop {
    struct server_setup setup;
    struct server_core *core;
    struct aggregation *aggregation;
    struct norm_exchange *norm; /* NULL: no update is held */
    struct held_update held;
    size_t packets;
    struct message *in, *out;    /* (groups, packets) */
    struct tally_slot *tallies;  /* (groups) */
    struct ruling_slot *rulings; /* (room) decided: decision number n is in n % room */
    char *decision;              /* of server 0, as it came */
    struct message decision_in;
    struct message control, counts_out, snapshot_out, statistics_out;
    struct server_statistics statistics;
    int64_t words[CONTROL_WORDS], counts[CUT_WORDS];
    char *late; /* (ranks) */
    const volatile int *signal;
};

/* The message of a group. */
static size_t message_at(const struct server_loop *l, int group, size_t packet)
{
    return (size_t)group * l->packets + packet;
}

static int loop_groups(const struct server_loop *l)
{
    return l->setup.groups->count;
}

/* The rank to which a group's messages go: its first worker. */
static int speaker_of(const struct server_loop *l, int group)
{
    return l->setup.groups->first[group];
}

static size_t decision_bytes(const struct server_loop *l)
{
    return sizeof(struct decision_head) + (size_t)l->setup.workers;
}

/* 1: pushes have rows, too, which are no packets to be added: for the core a packet after the others. */
static int rows_alone(const struct server_loop *l)
{
    return l->setup.tables && !l->setup.synchronous;
}

static int clips(const struct server_loop *l)
{
    return optimizer_options_of(l->setup.optimizer)->clip_norm > 0;
}

static int tallies_here(const struct server_loop *l)
{
    return l->setup.server == 0;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* Elements of a push before packet k: the factor. */
static size_t push_lead_of(const struct server_loop *l, size_t k)
{
    return k == 0 && clips(l) && !l->setup.synchronous;
}

static int post_push(struct server_loop *l, int row, size_t k, struct error *e)
{
    const int group = row % loop_groups(l);

    return world_receive(
        l->setup.world, speaker_of(l, group), TAG_PUSH + (int)k, aggregation_incoming(l->aggregation, row, k),
        push_lead_of(l, k) * sizeof(real) + packing_bytes(l->setup.packing, k, l->setup.rounded) *
                                                (size_t)reduction_vectors(&l->setup.groups->reduction, group),
        &l->in[message_at(l, row, k)], e);
}

static int post_decision(struct server_loop *l, struct error *e)
{
    return world_receive(l->setup.world, l->setup.workers, TAG_DECISION, l->decision, decision_bytes(l),
                         &l->decision_in, e);
}

static int post_tally(struct server_loop *l, int group, struct error *e)
{
    struct tally_slot *t = &l->tallies[group];

    return world_receive(l->setup.world, speaker_of(l, group), TAG_TALLY, t->parts,
                         (size_t)l->setup.groups->size[group] * sizeof *t->parts, &t->in, e);
}

static int post_control(struct server_loop *l, struct error *e)
{
    return world_receive(l->setup.world, WORLD_ANY_RANK, TAG_CONTROL, l->words, sizeof l->words, &l->control, e);
}

/* A send that the receiver has already received is done as soon as MPI is called. */
static int settle(struct server_loop *l, struct message *m, int rank, const char *what, struct error *e)
{
    char name[WORLD_NAME_MAX];
    struct patience p;
    int rc;

    patience_init(&p, l->setup.world, world_deadline(l->setup.world));
    while ((rc = message_done(l->setup.world, m, e)) == 0)
        if (!patience_pause(&p)) {
            world_name(l->setup.world, rank, name, sizeof name);
            return patience_over(&p, e, "at step %lld, as server %d, for %s to take %s",
                                 (long long)server_core_step(l->core), l->setup.server, name, what);
        }
    return rc < 0 ? rc : OK;
}

/* ---- actions ----------------------------------------------------------------------------------------------------- */

static int send_values(struct server_loop *l, int group, size_t k, struct error *e)
{
    size_t count;
    const real *values = aggregation_values(l->aggregation, group, k, &count);

    return world_send(l->setup.world, speaker_of(l, group), TAG_REPLY + (int)k, values, count * sizeof *values,
                      &l->out[message_at(l, group, k)], e);
}

static int answer_tally(struct server_loop *l, int group, const struct verdict *verdict, struct error *e)
{
    struct tally_slot *t = &l->tallies[group];
    int rc = settle(l, &t->out, speaker_of(l, group), "a verdict", e);

    t->verdict = *verdict;
    if (rc == OK && (rc = post_tally(l, group, e)) == OK)
        rc = world_send(l->setup.world, speaker_of(l, group), TAG_VERDICT, &t->verdict, sizeof t->verdict, &t->out, e);
    return rc;
}

static int act_counts(struct server_loop *l, const struct server_action *a, struct error *e)
{
    int rc = settle(l, &l->counts_out, 0, "counts", e);

    if (rc < 0)
        return rc;
    memcpy(l->counts, a->counts, sizeof l->counts);
    return world_send(l->setup.world, 0, TAG_COUNTS, l->counts, sizeof l->counts, &l->counts_out, e);
}

static int act_snapshot(struct server_loop *l, const struct server_action *a, struct error *e)
{
    const real *state;
    size_t count;
    int rc = settle(l, &l->snapshot_out, 0, "a snapshot", e);

    if (rc < 0)
        return rc;
    state = aggregation_snapshot(l->aggregation, a->back, &count);
    rc = world_send(l->setup.world, 0, TAG_SNAPSHOT, state, count * sizeof *state, &l->snapshot_out, e);
    return rc == OK && rows_alone(l) ? table_server_state(l->setup.tables, e) : rc;
}

static int send_decision(struct server_loop *l, const struct decision *d, struct error *e)
{
    struct ruling_slot *slot = &l->rulings[d->number % server_core_room(l->core)];
    const struct decision_head head = { d->number, d->step, d->updates };
    const int first = l->setup.workers + 1;
    int rc = OK;

    for (int j = 0; j < l->setup.servers - 1 && rc == OK; j++)
        rc = settle(l, &slot->out[j], first + j, "a decision", e);
    memcpy(slot->bytes, &head, sizeof head);
    memcpy(slot->bytes + sizeof head, d->fates, (size_t)l->setup.workers);
    for (int j = 0; j < l->setup.servers - 1 && rc == OK; j++)
        rc = world_send(l->setup.world, first + j, TAG_DECISION, slot->bytes, decision_bytes(l), &slot->out[j], e);
    return rc;
}

static int act_ruling(struct server_loop *l, const struct ruling *r, struct error *e)
{
    int rc = r->decides ? send_decision(l, &r->decision, e) : OK;

    if (l->setup.recording)
        recording_add(l->setup.recording, r->pushes, r->push_count);
    for (int g = 0; g < loop_groups(l) && rc == OK; g++) {
        const struct verdict *v = server_core_verdict(l->core, speaker_of(l, g));

        if (v)
            rc = answer_tally(l, g, v, e);
    }
    return rc;
}

static int settle_values(struct server_loop *l, size_t packet, struct error *e)
{
    int rc = OK;

    for (int g = 0; g < loop_groups(l) && rc == OK; g++)
        rc = settle(l, &l->out[message_at(l, g, packet)], speaker_of(l, g), "weights", e);
    return rc;
}

/* Sends the workers that have this fate the values of a packet. */
static int answer_fates(struct server_loop *l, size_t packet, const uint8_t *fates, struct error *e)
{
    int rc = OK;

    for (int g = 0; g < loop_groups(l) && rc == OK; g++) {
        if (!(fates[speaker_of(l, g)] & DECISION_ANSWERED))
            continue;
        if ((rc = settle(l, &l->out[message_at(l, g, packet)], speaker_of(l, g), "weights", e)) == OK) {
            aggregation_answer(l->aggregation, g, packet, tally_signal(*l->signal));
            rc = send_values(l, g, packet, e);
        }
    }
    return rc;
}

/* Held: 1: the decision was only about pushes that are dropped, and all packets have carried it out. */
static int is_over(struct server_loop *l, const struct application *a)
{
    l->held.over++;
    if (l->held.over < l->packets || a->used_count)
        return 0;
    l->held.over = 0;
    return 1;
}

/* The rows of a push are an update alone. */
static int apply_rows(struct server_loop *l, const struct application *a, struct error *e)
{
    int rc = OK;

    for (int i = 0; i < a->used_count && rc == OK; i++) {
        if (clips(l))
            optimizer_clip_by(l->setup.optimizer, a->step, aggregation_factor(l->aggregation, a->used[i]));
        rc = table_server_apply(l->setup.tables, a->used[i], a->step, e);
    }
    return rc;
}

static int act_apply(struct server_loop *l, const struct application *a, struct error *e)
{
    int rc = OK;

    if (a->packet == l->packets)
        return apply_rows(l, a, e);
    if (a->used_count && l->norm) {
        aggregation_add(l->aggregation, a->used, a->used_count, a->packet);
        memcpy(l->held.fates, a->fates, (size_t)l->setup.workers);
        l->held.step = a->step;
        l->held.added++;
    } else if (a->used_count && (l->setup.decided || (rc = settle_values(l, a->packet, e)) == OK)) {
        aggregation_update(l->aggregation, a->used, a->used_count, a->packet, a->step, tally_signal(*l->signal));
    }
    for (int i = 0; i < a->freed_count && rc == OK; i++) {
        const int group = l->setup.groups->of[a->freed[i]];

        if (speaker_of(l, group) == a->freed[i])
            rc = post_push(l, group, a->packet, e);
    }
    if (rc == OK && !(a->used_count && l->norm))
        rc = answer_fates(l, a->packet, a->fates, e);
    if (l->norm && is_over(l, a))
        server_core_release(l->core);
    return rc;
}

/* The norm is known: updates packet after packet, and answers. */
static int release_held(struct server_loop *l, struct error *e)
{
    int rc = OK;

    for (size_t k = 0; k < l->packets && rc == OK; k++) {
        if ((rc = settle_values(l, k, e)) < 0)
            return rc;
        aggregation_apply(l->aggregation, k, l->held.step, tally_signal(*l->signal));
        rc = answer_fates(l, k, l->held.fates, e);
    }
    l->held.added = l->held.over = 0;
    l->held.sent = 0;
    server_core_release(l->core);
    return rc;
}

static int act(struct server_loop *l, const struct server_action *a, struct error *e)
{
    int rc = OK;

    if (a->kind == SERVER_APPLY && a->application.packet == 0 && a->application.used_count)
        phase_clock_step(l->setup.clock, a->application.step, PHASE_OTHER);
    else if (a->kind != SERVER_NOTHING)
        phase_clock_enter(l->setup.clock, PHASE_OTHER);
    switch (a->kind) {
    case SERVER_NOTHING: break;
    case SERVER_COUNTS: rc = act_counts(l, a, e); break;
    case SERVER_SNAPSHOT: rc = act_snapshot(l, a, e); break;
    case SERVER_RULING: rc = act_ruling(l, &a->ruling, e); break;
    case SERVER_APPLY: rc = act_apply(l, &a->application, e); break;
    }
    phase_clock_enter(l->setup.clock, PHASE_WAITING);
    return rc;
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

/* Each of these returns 1: a message came and was taken, 0: nothing. */

static int look_for_push(struct server_loop *l, int group, size_t k, struct error *e)
{
    const int speaker = speaker_of(l, group);
    struct message *m = &l->in[message_at(l, group, k)];
    int rc;

    if (!m->active || !server_core_takes_push(l->core, speaker, k) || (rc = message_done(l->setup.world, m, e)) == 0)
        return 0;
    if (rc < 0)
        return rc;
    packing_widen(l->setup.packing, k, l->setup.rounded,
                  aggregation_incoming(l->aggregation, group, k) + push_lead_of(l, k));
    for (int w = speaker; w >= 0; w = worker_groups_next(l->setup.groups, w)) /* it is a push of all of them */
        server_core_push(l->core, w, k, world_ran(l->setup.world));
    return 1;
}

static int look_for_rows(struct server_loop *l, int worker, struct error *e)
{
    int rc;

    if (!rows_alone(l) || !server_core_takes_push(l->core, worker, l->packets) ||
        (rc = table_server_take(l->setup.tables, worker, e)) == 0)
        return 0;
    if (rc < 0)
        return rc;
    server_core_push(l->core, worker, l->packets, world_ran(l->setup.world));
    return 1;
}

static int look_for_tally(struct server_loop *l, int group, struct error *e)
{
    const struct tally_part *part = l->tallies[group].parts;
    struct tally_slot *t = &l->tallies[group];
    int rc;

    if (!t->in.active || !server_core_takes_tally(l->core) || (rc = message_done(l->setup.world, &t->in, e)) == 0)
        return 0;
    if (rc < 0)
        return rc;
    for (int w = speaker_of(l, group); w >= 0; w = worker_groups_next(l->setup.groups, w))
        server_core_tally(l->core, w, part++, tally_signal(*l->signal), world_ran(l->setup.world));
    return 1;
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

static int look_for_decision(struct server_loop *l, struct error *e)
{
    struct decision_head head;
    int rc;

    if (!l->decision_in.active || (rc = message_done(l->setup.world, &l->decision_in, e)) == 0)
        return 0;
    if (rc < 0)
        return rc;
    memcpy(&head, l->decision, sizeof head);
    server_core_decision(l->core, &(struct decision){ .number = head.number,
                                                      .step = head.step,
                                                      .updates = (int)head.updates,
                                                      .fates = (const uint8_t *)l->decision + sizeof head });
    return (rc = post_decision(l, e)) < 0 ? rc : 1;
}

/* Sends the squares of this server's part once all of it is added. 1: they are sent. */
static int send_squares(struct server_loop *l, struct error *e)
{
    double *own = norm_exchange_own(l->norm);
    int rc;

    if (l->held.sent)
        return 1;
    if (l->held.added < l->packets || (l->setup.tables && !table_server_has_sums(l->setup.tables)))
        return 0;
    if (l->setup.tables)
        table_server_squares(l->setup.tables, l->setup.parts, own);
    aggregation_squares(l->aggregation, l->held.step, l->setup.parts, l->setup.server, l->setup.tables != NULL, own);
    if ((rc = norm_exchange_send(l->norm, l->held.step, e)) < 0)
        return rc;
    l->held.sent = 1;
    return 1;
}

static int look_for_norm(struct server_loop *l, struct error *e)
{
    double norm;
    int rc;

    if (!l->norm || !l->held.added || (rc = send_squares(l, e)) == 0)
        return 0;
    if (rc < 0 || (rc = norm_exchange_look(l->norm, &norm, e)) <= 0)
        return rc;
    optimizer_clip(l->setup.optimizer, l->held.step, norm);
    if (l->setup.tables)
        table_server_clip(l->setup.tables);
    return (rc = release_held(l, e)) < 0 ? rc : 1;
}

/* Does what is due. */
static int decide_and_apply(struct server_loop *l, struct error *e)
{
    struct server_action action;
    int moved = 0, rc;

    for (;;) {
        if ((rc = server_core_due(l->core, world_ran(l->setup.world), &action, e)) < 0)
            return rc;
        if (action.kind == SERVER_NOTHING)
            return moved;
        moved = 1;
        if ((rc = act(l, &action, e)) < 0)
            return rc;
    }
}

/* Checks everything once. */
static int look(struct server_loop *l, struct error *e)
{
    struct server_action action;
    int moved = look_for_control(l, e), rc = moved;

    if (rc >= 0)
        moved |= (rc = look_for_decision(l, e)) > 0;
    for (int g = 0; g < loop_groups(l) && rc >= 0; g++) {
        for (size_t k = 0; k < l->packets && rc >= 0; k++)
            moved |= (rc = look_for_push(l, g, k, e)) > 0;
        if (rc >= 0)
            moved |= (rc = look_for_rows(l, g, e)) > 0;
        if (rc >= 0)
            moved |= (rc = look_for_tally(l, g, e)) > 0;
    }
    if (rc >= 0 && l->setup.tables)
        moved |= (rc = table_server_look(l->setup.tables, tally_signal(*l->signal), e)) > 0;
    if (rc >= 0)
        moved |= (rc = decide_and_apply(l, e)) > 0;
    if (rc >= 0)
        moved |= (rc = look_for_norm(l, e)) > 0;
    if (rc < 0)
        return rc;
    server_core_cut(l->core, world_ran(l->setup.world), &action);
    if ((rc = act(l, &action, e)) < 0)
        return rc;
    return moved > 0 || action.kind != SERVER_NOTHING;
}

/* The rank of another server of this host that is certainly the cause, as it stands; 0: none. */
static int standing_server(const struct server_loop *l)
{
    for (int other = l->setup.workers; other < world_size(l->setup.world); other++)
        if (world_stands(l->setup.world, other))
            return other;
    return 0;
}

static int late_sentence(struct server_loop *l, const struct patience *patience, struct error *e)
{
    struct buffer workers = BUFFER_EMPTY;
    char names[200] = "none";
    int64_t step;
    const size_t packet = server_core_waits_for(l->core, &step);
    const int other = standing_server(l);
    int rc;

    l->late[other] |= other > 0; /* for which a worker that does not push may wait */
    world_narrow(l->setup.world, l->late, world_size(l->setup.world));
    places_text(&workers, world_places(l->setup.world), l->late, world_size(l->setup.world), 1);
    if (packet < l->packets) {
        const struct packet *p = &l->setup.packing->packets[packet];
        const struct extent x = { p->low, l->setup.packing->pieces[p->first_piece].to };

        extent_names(l->setup.network, x, names, sizeof names);
    }
    rc = patience_over(patience, e, "at step %lld, as server %d, for %s, for tensors %s", (long long)step,
                       l->setup.server, buffer_text(&workers), names);
    buffer_release(&workers);
    return rc;
}

/* An update is held: 1: the ranks in `late` have not sent what its norm needs. Servers may themselves wait for workers,
 * and know better for which: they are given time to say so. */
static int held_late(struct server_loop *l, const struct patience *p)
{
    const double deadline = world_deadline(l->setup.world), silence = world_ran(l->setup.world) - p->begun;
    const int others = l->held.sent ? 2 + l->setup.groups->together + (l->setup.server > 0) : 0;

    if (l->held.sent)
        return norm_exchange_late(l->norm, l->late) && silence > deadline + places_precedence(deadline, others);
    memset(l->late, 0, (size_t)world_size(l->setup.world));
    table_server_waits_for(l->setup.tables, l->late);
    return silence > p->limit;
}

static int held_late_sentence(struct server_loop *l, const struct patience *p, struct error *e)
{
    struct buffer ranks = BUFFER_EMPTY;
    char names[160];
    int rc;

    snprintf(names, sizeof names, "the norm of the gradient");
    if (!l->held.sent) {
        memcpy(names, "rows of ", 9);
        table_server_names(l->setup.tables, names + 8, sizeof names - 8);
    }
    places_text(&ranks, world_places(l->setup.world), l->late, world_size(l->setup.world), 1);
    rc = patience_over(p, e, "at step %lld, as server %d, for %s, for %s", (long long)l->held.step, l->setup.server,
                       buffer_text(&ranks), names);
    buffer_release(&ranks);
    return rc;
}

/* The server waits for what only others can send. */
static int is_late(struct server_loop *l, const struct patience *p, double precedence, struct error *e)
{
    if (l->held.added && l->held.added == l->packets)
        return held_late(l, p) ? held_late_sentence(l, p, e) : OK;
    memset(l->late, 0, (size_t)world_size(l->setup.world));
    if (world_ran(l->setup.world) - p->begun > world_deadline(l->setup.world) && standing_server(l))
        return late_sentence(l, p, e);
    if (server_core_late(l->core, world_ran(l->setup.world), p->begun, p->limit, precedence, l->late))
        return late_sentence(l, p, e);
    return OK;
}

static int post_all(struct server_loop *l, struct error *e)
{
    int rc = post_control(l, e);

    if (rc == OK && l->norm)
        rc = norm_exchange_begin(l->norm, e);

    if (rc == OK && l->setup.decided && !tallies_here(l))
        rc = post_decision(l, e);
    for (int g = 0; g < loop_groups(l) && rc == OK; g++)
        for (size_t k = 0; k < l->packets && rc == OK; k++)
            rc = post_push(l, g, k, e);
    for (int g = 0; g < loop_groups(l) && rc == OK && tallies_here(l); g++)
        rc = post_tally(l, g, e);
    return rc == OK && l->setup.tables ? table_server_begin(l->setup.tables, e) : rc;
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

    for (int row = 0; row < loop_groups(l); row++)
        for (size_t k = 0; k < l->packets; k++)
            message_cancel(l->setup.world, &l->in[message_at(l, row, k)]);
    message_cancel(l->setup.world, &l->decision_in);
    for (int i = 0; l->rulings && i < server_core_room(l->core) && rc == OK; i++)
        for (int j = 0; j < l->setup.servers - 1 && rc == OK; j++)
            rc = settle(l, &l->rulings[i].out[j], l->setup.workers + 1 + j, "a decision", e);
    for (int g = 0; g < loop_groups(l) && rc == OK; g++) {
        for (size_t k = 0; k < l->packets && rc == OK; k++)
            rc = settle(l, &l->out[message_at(l, g, k)], speaker_of(l, g), "weights", e);
        if (rc == OK && tallies_here(l)) {
            message_cancel(l->setup.world, &l->tallies[g].in);
            rc = settle(l, &l->tallies[g].out, speaker_of(l, g), "a verdict", e);
        }
    }
    if (rc == OK && l->norm)
        rc = norm_exchange_end(l->norm, e);
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
    /* Of several servers the first reports: the others wait a little longer. And all leave it to the workers of a host
     * that push together, which know whom of them they miss. */
    patience_init(&p, l->setup.world,
                  deadline + places_precedence(deadline, (l->setup.server > 0) + l->setup.groups->together));
    server_core_begin(l->core, p.begun);
    while (rc >= 0 && !(server_core_ended(l->core) && (!l->setup.tables || table_server_ended(l->setup.tables)))) {
        if ((rc = look(l, e)) > 0)
            patience_calm(&p);
        else if (rc == 0)
            patience_pause(&p);
        if (rc >= 0)
            rc = is_late(l, &p, precedence, e);
    }
    if (rc >= 0)
        rc = send_statistics(l, e);
    if (rc < 0 || (rc = settle_all(l, e)) < 0)
        return rc;
    return l->setup.tables ? table_server_end(l->setup.tables, e) : OK;
}

static int rulings_new(struct server_loop *l, struct error *e)
{
    const int room = server_core_room(l->core);
    int bad = !(l->rulings = calloc((size_t)room, sizeof *l->rulings));

    for (int i = 0; i < room && !bad; i++) {
        l->rulings[i].out = calloc((size_t)l->setup.servers, sizeof *l->rulings[i].out);
        l->rulings[i].bytes = calloc(decision_bytes(l), 1);
        bad = !l->rulings[i].out || !l->rulings[i].bytes;
    }
    return bad ? error_memory(e, NULL, "for a server's decisions") : OK;
}

static int tallies_new(struct server_loop *l, struct error *e)
{
    for (int g = 0; g < loop_groups(l); g++)
        if (!(l->tallies[g].parts = calloc((size_t)l->setup.groups->size[g], sizeof *l->tallies[g].parts)))
            return error_memory(e, NULL, "for workers' tallies");
    return OK;
}

static int clipping_new(struct server_loop *l, struct error *e)
{
    const struct server_setup *s = &l->setup;
    int rc = aggregation_clip(l->aggregation, s->synchronous ? AGGREGATION_CLIPS_SUMS : AGGREGATION_CLIPS_PUSHES, e);

    if (rc < 0 || !s->synchronous)
        return rc;
    if (!(l->held.fates = calloc((size_t)s->workers, 1)))
        return error_memory(e, NULL, "for the fates of %d pushes", s->workers);
    return norm_exchange_new(&l->norm,
                             &(struct norm_exchange_setup){ .world = s->world,
                                                            .parts = s->parts,
                                                            .workers = s->workers,
                                                            .servers = s->servers,
                                                            .own = s->server,
                                                            .listens = 1,
                                                            .receiver = s->workers,
                                                            .receivers = s->servers },
                             e);
}

int server_loop_new(struct server_loop **out, const struct server_setup *setup, struct error *e)
{
    struct server_plan plan = { .workers = setup->workers,
                                .synchronous = setup->synchronous,
                                .tallies = setup->server == 0,
                                .servers = setup->servers,
                                .packets = setup->packing->packet_count + (setup->tables && !setup->synchronous),
                                .first_step = setup->first_step,
                                .max_steps = setup->max_steps,
                                .decided = setup->decided,
                                .whole = setup->parts != NULL,
                                .arbiter = setup->arbiter };
    struct server_loop *l = calloc(1, sizeof *l);
    int rc = ERR_NOMEM;

    plan.arbiter.workers = setup->workers;
    plan.arbiter.synchronous = setup->synchronous;
    plan.arbiter.first_step = setup->first_step;
    plan.arbiter.max_steps = setup->max_steps;
    if (l) {
        l->setup = *setup;
        l->packets = setup->packing->packet_count;
        l->in = calloc((size_t)loop_groups(l) * l->packets + 1, sizeof *l->in);
        l->out = calloc((size_t)loop_groups(l) * l->packets + 1, sizeof *l->out);
        l->tallies = calloc((size_t)loop_groups(l), sizeof *l->tallies);
        l->late = calloc((size_t)world_size(setup->world), 1);
        l->decision = calloc(decision_bytes(l), 1);
    }
    if (!l || !l->in || !l->out || !l->tallies || !l->late || !l->decision)
        error_memory(e, NULL, "for a server's messages");
    else if ((rc = tallies_new(l, e)) == OK && (rc = server_core_new(&l->core, &plan, e)) == OK)
        rc = aggregation_new(&l->aggregation, setup->optimizer, setup->packing, &setup->groups->reduction,
                             setup->decided ? AGGREGATION_CHOSEN : AGGREGATION_TOGETHER, e);
    if (rc == OK)
        aggregation_set_clock(l->aggregation, setup->clock);
    if (rc == OK && clips(l))
        rc = clipping_new(l, e);
    if (rc == OK && setup->decided && tallies_here(l))
        rc = rulings_new(l, e);
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
    for (int i = 0; l->rulings && i < server_core_room(l->core); i++) {
        free(l->rulings[i].out);
        free(l->rulings[i].bytes);
    }
    free(l->rulings);
    free(l->decision);
    free(l->held.fates);
    norm_exchange_free(l->norm);
    server_core_free(l->core);
    aggregation_free(l->aggregation);
    free(l->in);
    free(l->out);
    for (int g = 0; l->tallies && g < loop_groups(l); g++)
        free(l->tallies[g].parts);
    free(l->tallies);
    free(l->late);
    free(l);
}
