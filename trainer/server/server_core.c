#include "trainer/server/server_core.h"

#include <stdlib.h>
#include <string.h>

enum freeze { FREEZE_NONE, FREEZE_NOW, FREEZE_WHEN_DONE /* all workers are */ };

struct worker_state {
    int done;        /* its last message: no more pushes will come */
    int tally_here;  /* arrived, not used yet */
    int64_t tallies; /* used */
    int64_t pulled;  /* the global step of its last verdict */
    int64_t limit;   /* use only this many pushes; INT64_MAX: not frozen */
    double heard;    /* when its last message came, except while frozen */
};

struct server_core {
    struct server_plan plan;
    struct worker_state *workers;
    struct follower *follower; /* decided */
    struct arbiter *arbiter;   /* decided, on server 0 */
    struct tally_part *parts;  /* (workers) */
    char *here;                /* (workers, packets) arrived, not used yet; synchronous */
    int64_t *used;             /* (workers, packets) pushes */
    int64_t *version;          /* (packets) updates */
    int64_t *counts;           /* (workers + 1) as sent */
    enum freeze freeze;
    int cut, back;   /* cut: the limits are a cut's; back: before the last push */
    int leave, done; /* done: workers */
    double frozen_at;
    int64_t step; /* updates of the run, according to the tallies */
    int64_t granted;
    struct server_statistics statistics;
    uint32_t sticky; /* flags for everybody, and for worker 0 (TALLY_SAVE) */
};

static size_t cell(const struct server_core *c, int worker, size_t packet)
{
    return (size_t)worker * c->plan.packets + packet;
}

int server_core_new(struct server_core **out, const struct server_plan *plan, struct error *e)
{
    const size_t workers = (size_t)plan->workers, cells = workers * plan->packets + 1;
    struct server_core *c = calloc(1, sizeof *c);
    int rc;

    if (c) {
        c->plan = *plan;
        c->workers = calloc(workers, sizeof *c->workers);
        c->parts = calloc(workers, sizeof *c->parts);
        c->here = calloc(cells, 1);
        c->used = calloc(cells, sizeof *c->used);
        c->version = calloc(plan->packets + 1, sizeof *c->version);
        c->counts = calloc(workers + 1, sizeof *c->counts);
    }
    if (!c || !c->workers || !c->parts || !c->here || !c->used || !c->version || !c->counts) {
        server_core_free(c);
        return error_memory(e, NULL, "for a server of %zu workers and %zu packets", workers, plan->packets);
    }
    for (size_t w = 0; w < workers; w++) {
        c->workers[w].limit = INT64_MAX;
        c->workers[w].pulled = plan->first_step;
    }
    for (size_t k = 0; k < plan->packets; k++)
        c->version[k] = plan->first_step;
    c->step = plan->first_step;
    /* Asynchronous workers draw tickets for pushes; the first ones are handed out by number. */
    c->granted = plan->max_steps - plan->first_step;
    if (c->granted > plan->workers)
        c->granted = plan->workers;
    if ((plan->decided && (rc = follower_new(&c->follower, plan->workers, plan->packets, e)) < 0) ||
        (plan->decided && plan->tallies && (rc = arbiter_new(&c->arbiter, &plan->arbiter, e)) < 0)) {
        server_core_free(c);
        return rc;
    }
    if (plan->decided && plan->whole)
        follower_wait_for_release(c->follower);
    *out = c;
    return OK;
}

void server_core_free(struct server_core *c)
{
    if (!c)
        return;
    follower_free(c->follower);
    arbiter_free(c->arbiter);
    free(c->workers);
    free(c->parts);
    free(c->here);
    free(c->used);
    free(c->version);
    free(c->counts);
    free(c);
}

void server_core_begin(struct server_core *c, double now)
{
    for (int w = 0; w < c->plan.workers; w++)
        c->workers[w].heard = now;
}

/* ---- pushes and tallies ------------------------------------------------------------------------------------------ */

/* Decided: 1: nothing is to be decided beyond the cut. */
static int is_frozen(const struct server_core *c)
{
    return c->workers[0].limit != INT64_MAX;
}

int server_core_takes_push(const struct server_core *c, int worker, size_t packet)
{
    const int64_t used = c->used[cell(c, worker, packet)];

    if (c->follower)
        return follower_takes(c->follower, worker, packet);
    return used < c->workers[worker].limit && (packet == 0 || used < c->used[cell(c, worker, 0)]);
}

int server_core_takes_tally(const struct server_core *c, int worker)
{
    if (c->follower)
        return c->arbiter && !is_frozen(c);
    return c->plan.tallies && c->workers[worker].tallies < c->workers[worker].limit;
}

static void action_of(struct server_action *out, enum server_action_kind kind, int worker)
{
    *out = (struct server_action){ .kind = kind, .worker = worker };
}

void server_core_push(struct server_core *c, int worker, size_t packet, double now, struct server_action *out)
{
    action_of(out, SERVER_NOTHING, worker);
    c->workers[worker].heard = now;
    if (c->follower) {
        follower_push(c->follower, worker, packet);
        return;
    }
    if (c->plan.synchronous) {
        c->here[cell(c, worker, packet)] = 1;
        for (int w = 0; w < c->plan.workers; w++)
            if (!c->here[cell(c, w, packet)])
                return;
    }
    action_of(out, SERVER_UPDATE, c->plan.synchronous ? SERVER_EVERYBODY : worker);
    out->packet = packet;
    out->step = c->version[packet]++;
    for (int w = 0; w < c->plan.workers; w++)
        if (c->plan.synchronous || w == worker) {
            c->here[cell(c, w, packet)] = 0;
            c->used[cell(c, w, packet)]++;
        }
}

/* Sends the verdict to this worker: its tally is used. */
static void count_tally(struct worker_state *w, int64_t global_step)
{
    w->tallies++;
    w->tally_here = 0;
    w->pulled = global_step;
}

/* Asynchronous: the push is a separate update, and its worker continues while tickets are left. */
static struct verdict verdict_alone(struct server_core *c, int worker, uint32_t flags)
{
    const struct tally_part *p = &c->parts[worker];
    const int64_t stale = c->step - c->workers[worker].pulled;
    struct verdict v = { .score = p->score, .other = -1 };

    staleness_add(&c->statistics.staleness, stale);
    c->statistics.used++;
    c->statistics.samples += p->score.weight;
    c->sticky |= p->flags | flags;
    v.global_step = ++c->step;
    v.staleness_mean = staleness_mean(&c->statistics.staleness);
    v.staleness_max = c->statistics.staleness.max;
    v.values = 1;
    v.flags = c->sticky;
    if (worker == 0)
        c->sticky &= ~(uint32_t)TALLY_SAVE;
    if (!(v.flags & TALLY_ENDS) && c->plan.first_step + c->granted < c->plan.max_steps) {
        c->granted++;
        v.more = 1;
    }
    return v;
}

static struct verdict verdict_together(struct server_core *c, uint32_t flags)
{
    struct tally all;

    c->parts[0].flags |= flags; /* a server's signal counts as a worker's */
    all = tally_sum(c->parts, c->plan.workers, c->step, c->plan.max_steps);
    if (all.global_step > c->step) { /* else a worker left it */
        c->statistics.used += c->plan.workers;
        c->statistics.samples += all.score.weight;
    }
    c->step = all.global_step;
    return (struct verdict){ .score = all.score,
                             .global_step = all.global_step,
                             .flags = all.flags,
                             .more = all.more,
                             .values = 1,
                             .other = tally_differs(c->parts, c->plan.workers, 1) };
}

void server_core_tally(struct server_core *c, int worker, const struct tally_part *part, uint32_t flags, double now,
                       struct server_action *out)
{
    action_of(out, SERVER_NOTHING, worker);
    c->workers[worker].heard = now;
    if (c->arbiter) {
        arbiter_flags(c->arbiter, flags);
        arbiter_push(c->arbiter, worker, part);
        return;
    }
    c->workers[worker].tally_here = 1;
    c->parts[worker] = *part;
    if (!c->plan.synchronous) {
        action_of(out, SERVER_VERDICT, worker);
        out->verdict = verdict_alone(c, worker, flags);
        count_tally(&c->workers[worker], c->step);
        return;
    }
    for (int w = 0; w < c->plan.workers; w++)
        if (!c->workers[w].tally_here)
            return;
    action_of(out, SERVER_VERDICT, SERVER_EVERYBODY);
    out->verdict = verdict_together(c, flags);
    for (int w = 0; w < c->plan.workers; w++)
        count_tally(&c->workers[w], c->step);
}

/* ---- decided ----------------------------------------------------------------------------------------------------- */

void server_core_decision(struct server_core *c, const struct decision *d)
{
    follower_decision(c->follower, d);
}

int server_core_room(const struct server_core *c)
{
    return c->follower ? follower_room(c->follower) : 0;
}

void server_core_release(struct server_core *c)
{
    follower_release(c->follower);
}

const struct verdict *server_core_verdict(const struct server_core *c, int worker)
{
    return arbiter_verdict(c->arbiter, worker);
}

int server_core_due(struct server_core *c, double now, struct server_action *out, struct error *e)
{
    int rc = 0;

    action_of(out, SERVER_NOTHING, 0);
    if (!c->follower)
        return OK;
    if (c->arbiter && !is_frozen(c) && (rc = arbiter_next(c->arbiter, &out->ruling, e)) < 0)
        return rc;
    if (rc > 0) {
        out->kind = SERVER_RULING;
        if (out->ruling.decides)
            follower_decision(c->follower, &out->ruling.decision);
    } else if (follower_next(c->follower, &out->application)) {
        out->kind = SERVER_APPLY;
    }
    /* Who has waited for others is heard from anew. */
    for (int w = 0; w < c->plan.workers && out->kind != SERVER_NOTHING; w++)
        if (out->kind == SERVER_RULING ? arbiter_verdict(c->arbiter, w) != NULL
                                       : out->application.fates[w] & DECISION_ANSWERED)
            c->workers[w].heard = now;
    return OK;
}

/* ---- control ----------------------------------------------------------------------------------------------------- */

void server_core_control(struct server_core *c, int worker, const int64_t *words, double now)
{
    c->workers[worker].heard = now;
    switch (words[0]) {
    case CONTROL_FREEZE: c->freeze = FREEZE_NOW; break;
    case CONTROL_FREEZE_LAST: c->freeze = FREEZE_WHEN_DONE; break;
    case CONTROL_CUT:
    case CONTROL_CUT_BACK:
        for (int w = 0; w < c->plan.workers; w++)
            c->workers[w].limit = words[1 + w];
        if (c->follower)
            follower_hold(c->follower, words[1]);
        c->cut = 1;
        c->back = words[0] == CONTROL_CUT_BACK;
        break;
    case CONTROL_DONE:
        c->workers[worker].done = 1;
        c->sticky |= (uint32_t)words[1];
        c->done++;
        if (c->arbiter)
            arbiter_done(c->arbiter, worker, (uint32_t)words[1]);
        break;
    default: c->leave = 1; break;
    }
}

/* Pushes of this worker that have begun: the number of its most used packet. */
static int64_t pushes_begun(const struct server_core *c, int worker)
{
    int64_t most = c->plan.tallies ? c->workers[worker].tallies : 0;

    if (c->follower)
        return follower_known(c->follower);
    for (size_t k = 0; k < c->plan.packets; k++)
        if (c->used[cell(c, worker, k)] > most)
            most = c->used[cell(c, worker, k)];
    return most;
}

static int worker_at_cut(const struct server_core *c, int worker)
{
    const int64_t limit = c->workers[worker].limit;

    if (c->follower)
        return follower_is_at(c->follower, limit);
    if (c->plan.tallies && c->workers[worker].tallies != limit)
        return 0;
    for (size_t k = 0; k < c->plan.packets; k++)
        if (c->used[cell(c, worker, k)] != limit)
            return 0;
    return 1;
}

static int all_at_cut(const struct server_core *c)
{
    for (int w = 0; w < c->plan.workers; w++)
        if (!worker_at_cut(c, w))
            return 0;
    return 1;
}

void server_core_cut(struct server_core *c, double now, struct server_action *out)
{
    action_of(out, SERVER_NOTHING, 0);
    if (c->freeze == FREEZE_NOW || (c->freeze == FREEZE_WHEN_DONE && c->done == c->plan.workers)) {
        c->freeze = FREEZE_NONE;
        c->frozen_at = now;
        for (int w = 0; w < c->plan.workers; w++)
            c->counts[w] = c->workers[w].limit = pushes_begun(c, w);
        if (c->follower) /* server 0 may be released first, and send decisions beyond the cut before that comes */
            follower_hold(c->follower, c->counts[0]);
        c->counts[c->plan.workers] = c->arbiter ? arbiter_step(c->arbiter) : 0;
        action_of(out, SERVER_COUNTS, 0);
        out->counts = c->counts;
    } else if (c->cut && all_at_cut(c)) {
        c->cut = 0;
        if (c->follower)
            follower_hold(c->follower, INT64_MAX);
        for (int w = 0; w < c->plan.workers; w++) {
            c->workers[w].limit = INT64_MAX;
            c->workers[w].heard += now - c->frozen_at; /* the worker may have waited for this server meanwhile */
        }
        action_of(out, SERVER_SNAPSHOT, 0);
        out->back = c->back;
    }
}

int server_core_ended(const struct server_core *c)
{
    return c->leave && c->done == c->plan.workers;
}

int64_t server_core_step(const struct server_core *c)
{
    return c->arbiter ? arbiter_step(c->arbiter) : c->step;
}

struct server_statistics server_core_statistics(const struct server_core *c)
{
    return c->arbiter ? *arbiter_statistics(c->arbiter) : c->statistics;
}

/* ---- who is late ------------------------------------------------------------------------------------------------- */

/* 1: the server waits for this worker next. */
static int is_expected(const struct server_core *c, int worker)
{
    if (c->done == c->plan.workers)
        return worker == 0; /* which releases the servers */
    if (c->workers[worker].done)
        return 0;
    if (c->workers[worker].limit == INT64_MAX) /* not frozen */
        return 1;
    if (c->follower && c->cut)
        return !worker_at_cut(c, worker) && follower_expects(c->follower, worker);
    return c->cut ? !worker_at_cut(c, worker) : worker == 0;
}

/* The first packet that some workers have pushed and others have not; the number of packets: none. */
static size_t half_pushed(const struct server_core *c)
{
    size_t k = 0;

    for (; k < c->plan.packets; k++)
        for (int w = 0; w < c->plan.workers; w++)
            if (c->here[cell(c, w, k)])
                return k;
    return k;
}

size_t server_core_waits_for(const struct server_core *c, int64_t *step)
{
    const size_t half = half_pushed(c), k = half < c->plan.packets ? half : 0;

    if (c->follower) {
        const size_t packet = follower_waits_for(c->follower, step);

        if (*step < 0)
            *step = c->arbiter ? arbiter_step(c->arbiter) : c->plan.first_step + follower_known(c->follower);
        return packet;
    }
    *step = c->plan.packets ? c->version[k] : c->step;
    return k;
}

/* Synchronous: 1: others have sent what this worker has not, or nobody has sent anything. */
static int is_behind(const struct server_core *c, int worker, size_t half)
{
    if (half < c->plan.packets)
        return !c->here[cell(c, worker, half)];
    for (int w = 0; w < c->plan.workers; w++)
        if (c->workers[w].tally_here)
            return !c->workers[worker].tally_here;
    return 1;
}

/* Decided: as long as nothing is known to be missing, the arbiter knows best who should push. */
static int is_missing(const struct server_core *c, int worker)
{
    int64_t step;

    if (is_frozen(c) && !c->cut)
        return worker == 0;
    follower_waits_for(c->follower, &step);
    return step < 0 && c->arbiter ? arbiter_expects(c->arbiter, worker) : follower_expects(c->follower, worker);
}

static double silence_of(const struct server_core *c, int worker, size_t half, double now, double calm)
{
    if (c->follower ? !is_missing(c, worker) : c->plan.synchronous && !is_behind(c, worker, half))
        return 0;
    return now - (c->plan.synchronous ? calm : c->workers[worker].heard);
}

int server_core_late(const struct server_core *c, double now, double calm, double limit, double precedence, char *late)
{
    const size_t half = half_pushed(c);
    double longest = 0;
    int answering = c->plan.servers == 1;

    for (int w = 0; w < c->plan.workers; w++) {
        const double silence = silence_of(c, w, half, now, calm);

        late[w] = is_expected(c, w) && silence > limit;
        if (!is_expected(c, w))
            continue;
        longest = silence > longest ? silence : longest;
        answering |= silence <= limit / 2;
    }
    return longest > limit + (answering ? 0 : precedence);
}
