#include "trainer/server/server_core.h"

#include <stdlib.h>
#include <string.h>

enum freeze { FREEZE_NONE, FREEZE_NOW, FREEZE_WHEN_DONE /* all workers are */ };

struct worker_state {
    int done;       /* its last message: no more pushes will come */
    int tally_here; /* arrived, not used yet; nothing is decided */
    double heard;   /* when its last message came, except while frozen */
};

struct server_core {
    struct server_plan plan;
    struct worker_state *workers;
    struct follower *follower;
    struct arbiter *arbiter;   /* decided, on server 0 */
    struct tally_part *parts;  /* (workers) nothing is decided */
    int64_t counts[CUT_WORDS]; /* as sent */
    enum freeze freeze;
    int64_t limit;   /* carry out only this many decisions; INT64_MAX: not frozen */
    int cut, back;   /* cut: the limit is a cut's; back: before the last update */
    int leave, done; /* done: workers */
    double frozen_at;
    /* Nothing is decided: all tallies make one verdict. */
    int64_t tallied; /* verdicts */
    int64_t step;
    uint32_t flags; /* of this server's signal */
    struct verdict verdict;
    struct server_statistics statistics;
};

int server_core_new(struct server_core **out, const struct server_plan *plan, struct error *e)
{
    const size_t workers = (size_t)plan->workers;
    struct server_core *c = calloc(1, sizeof *c);
    int rc;

    if (c) {
        c->plan = *plan;
        c->workers = calloc(workers, sizeof *c->workers);
        c->parts = calloc(workers, sizeof *c->parts);
    }
    if (!c || !c->workers || !c->parts) {
        server_core_free(c);
        return error_memory(e, NULL, "for a server of %zu workers", workers);
    }
    c->limit = INT64_MAX;
    c->step = plan->first_step;
    if ((rc = follower_new(&c->follower, plan->workers, plan->packets, e)) < 0 ||
        (plan->decided && plan->tallies && (rc = arbiter_new(&c->arbiter, &plan->arbiter, e)) < 0)) {
        server_core_free(c);
        return rc;
    }
    if (!plan->decided)
        follower_use_all(c->follower, plan->first_step);
    if (plan->whole)
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
    free(c);
}

void server_core_begin(struct server_core *c, double now)
{
    for (int w = 0; w < c->plan.workers; w++)
        c->workers[w].heard = now;
}

/* ---- pushes and tallies ------------------------------------------------------------------------------------------ */

/* 1: nothing is to be decided beyond the cut. */
static int is_frozen(const struct server_core *c)
{
    return c->limit != INT64_MAX;
}

int server_core_takes_push(const struct server_core *c, int worker, size_t packet)
{
    return follower_takes(c->follower, worker, packet);
}

int server_core_takes_tally(const struct server_core *c)
{
    return c->plan.tallies && (c->plan.decided ? !is_frozen(c) : c->tallied < c->limit);
}

void server_core_push(struct server_core *c, int worker, size_t packet, double now)
{
    c->workers[worker].heard = now;
    follower_push(c->follower, worker, packet);
}

void server_core_tally(struct server_core *c, int worker, const struct tally_part *part, uint32_t flags, double now)
{
    c->workers[worker].heard = now;
    if (c->arbiter) {
        arbiter_flags(c->arbiter, flags);
        arbiter_push(c->arbiter, worker, part);
        return;
    }
    c->workers[worker].tally_here = 1;
    c->parts[worker] = *part;
    c->flags |= flags;
}

/* Nothing is decided: 1: the tallies of all workers are here, and c->verdict is what they say. */
static int judge(struct server_core *c)
{
    struct tally all;

    for (int w = 0; w < c->plan.workers; w++)
        if (!c->workers[w].tally_here)
            return 0;
    c->parts[0].flags |= c->flags; /* a server's signal counts as a worker's */
    all = tally_sum(c->parts, c->plan.workers, c->step, c->plan.max_steps);
    if (all.global_step > c->step) { /* else a worker left it */
        c->statistics.used += c->plan.workers;
        c->statistics.samples += all.score.weight;
    }
    c->step = all.global_step;
    c->verdict = (struct verdict){ .score = all.score,
                                   .global_step = all.global_step,
                                   .flags = all.flags,
                                   .more = all.more,
                                   .values = 1,
                                   .other = tally_differs(c->parts, c->plan.workers, 1) };
    for (int w = 0; w < c->plan.workers; w++)
        c->workers[w].tally_here = 0;
    c->tallied++;
    return 1;
}

/* ---- what is due ------------------------------------------------------------------------------------------------- */

void server_core_decision(struct server_core *c, const struct decision *d)
{
    follower_decision(c->follower, d);
}

int server_core_room(const struct server_core *c)
{
    return follower_room(c->follower);
}

void server_core_release(struct server_core *c)
{
    follower_release(c->follower);
}

const struct verdict *server_core_verdict(const struct server_core *c, int worker)
{
    return c->arbiter ? arbiter_verdict(c->arbiter, worker) : &c->verdict;
}

int server_core_due(struct server_core *c, double now, struct server_action *out, struct error *e)
{
    int rc = 0;

    *out = (struct server_action){ .kind = SERVER_NOTHING };
    if (c->arbiter ? !is_frozen(c) && (rc = arbiter_next(c->arbiter, &out->ruling, e)) != 0
                   : !c->plan.decided && (rc = judge(c)) != 0) {
        if (rc < 0)
            return rc;
        out->kind = SERVER_RULING;
        if (out->ruling.decides)
            follower_decision(c->follower, &out->ruling.decision);
    } else if (follower_next(c->follower, &out->application)) {
        out->kind = SERVER_APPLY;
    }
    /* Who has waited for others is heard from anew. */
    for (int w = 0; w < c->plan.workers && out->kind != SERVER_NOTHING; w++)
        if (out->kind == SERVER_RULING ? server_core_verdict(c, w) != NULL
                                       : out->application.fates[w] & DECISION_ANSWERED)
            c->workers[w].heard = now;
    return OK;
}

/* ---- control ----------------------------------------------------------------------------------------------------- */

static void limit(struct server_core *c, int64_t decisions)
{
    c->limit = decisions;
    follower_hold(c->follower, decisions);
}

void server_core_control(struct server_core *c, int worker, const int64_t *words, double now)
{
    c->workers[worker].heard = now;
    switch (words[0]) {
    case CONTROL_FREEZE: c->freeze = FREEZE_NOW; break;
    case CONTROL_FREEZE_LAST: c->freeze = FREEZE_WHEN_DONE; break;
    case CONTROL_CUT:
    case CONTROL_CUT_BACK:
        limit(c, words[1]);
        c->cut = 1;
        c->back = words[0] == CONTROL_CUT_BACK;
        break;
    case CONTROL_DONE:
        c->workers[worker].done = 1;
        c->done++;
        if (c->arbiter)
            arbiter_done(c->arbiter, worker, (uint32_t)words[1]);
        break;
    default: c->leave = 1; break;
    }
}

static int is_at_cut(const struct server_core *c)
{
    return follower_is_at(c->follower, c->limit) && (!c->plan.tallies || c->plan.decided || c->tallied == c->limit);
}

void server_core_cut(struct server_core *c, double now, struct server_action *out)
{
    *out = (struct server_action){ .kind = SERVER_NOTHING };
    if (c->freeze == FREEZE_NOW || (c->freeze == FREEZE_WHEN_DONE && c->done == c->plan.workers)) {
        const int64_t known = follower_known(c->follower);

        c->freeze = FREEZE_NONE;
        c->frozen_at = now;
        /* Server 0 may be released first, and send decisions beyond the cut before that comes. */
        limit(c, known > c->tallied ? known : c->tallied);
        c->counts[0] = c->limit;
        c->counts[1] = c->arbiter ? arbiter_step(c->arbiter) : c->plan.decided ? 0 : c->plan.first_step + c->limit;
        out->kind = SERVER_COUNTS;
        out->counts = c->counts;
    } else if (c->cut && is_at_cut(c)) {
        c->cut = 0;
        limit(c, INT64_MAX);
        for (int w = 0; w < c->plan.workers; w++)
            c->workers[w].heard += now - c->frozen_at; /* the worker may have waited for this server meanwhile */
        out->kind = SERVER_SNAPSHOT;
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

/* 1: this worker has not sent what the server needs next. As long as nothing is known to be missing, the arbiter knows
 * best who should push. */
static int is_missing(const struct server_core *c, int worker)
{
    int64_t step;

    if (is_frozen(c) && !c->cut)
        return worker == 0;
    follower_waits_for(c->follower, &step);
    if (step < 0 && c->arbiter)
        return arbiter_expects(c->arbiter, worker);
    return follower_expects(c->follower, worker) && !c->workers[worker].tally_here;
}

/* 1: the server waits for this worker next. */
static int is_expected(const struct server_core *c, int worker)
{
    if (c->done == c->plan.workers)
        return worker == 0; /* which releases the servers */
    if (c->workers[worker].done)
        return 0;
    if (!is_frozen(c))
        return 1;
    return c->cut ? !is_at_cut(c) && is_missing(c, worker) : worker == 0;
}

size_t server_core_waits_for(const struct server_core *c, int64_t *step)
{
    const size_t packet = follower_waits_for(c->follower, step);

    if (*step < 0)
        *step = c->arbiter ? arbiter_step(c->arbiter) : c->plan.first_step + follower_known(c->follower);
    return packet;
}

int server_core_late(const struct server_core *c, double now, double calm, double limit, double precedence, char *late)
{
    double longest = 0;
    int answering = c->plan.servers == 1;

    for (int w = 0; w < c->plan.workers; w++) {
        const double since = c->plan.synchronous ? calm : c->workers[w].heard;
        const double silence = is_missing(c, w) ? now - since : 0;

        late[w] = is_expected(c, w) && silence > limit;
        if (!is_expected(c, w))
            continue;
        longest = silence > longest ? silence : longest;
        answering |= silence <= limit / 2;
    }
    return longest > limit + (answering ? 0 : precedence);
}
