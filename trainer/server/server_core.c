#include "trainer/server/server_core.h"

#include <stdlib.h>
#include <string.h>

/* ---- follower ---------------------------------------------------------------------------------------------------- */

struct follower {
    int workers, room;
    size_t packets;
    struct decision *queue; /* (room) decision number n is item n % room */
    uint8_t *fates;         /* (room, workers) */
    int64_t known, limit;   /* decisions: taken, to be applied */
    int64_t released;       /* decisions that are done with; INT64_MAX: each is when it is applied */
    int64_t *applied;       /* (packets) decisions */
    int64_t *come, *over;   /* (workers, packets) pushes */
    int *rows;              /* (2, workers): used, freed */
    int all;                /* 1: nobody decides */
    int64_t first_step;     /* then: of decision 0 */
};

int follower_new(struct follower **out, int workers, size_t packets, struct error *e)
{
    const size_t n = (size_t)workers, cells = n * packets + 1;
    struct follower *f = calloc(1, sizeof *f);

    if (f) {
        f->workers = workers;
        f->packets = packets;
        f->limit = f->released = INT64_MAX;
        /* Each unfinished decision has used, dropped or answered a worker's push, which then has no other. */
        f->room = 2 * workers + 1;
        f->queue = calloc((size_t)f->room, sizeof *f->queue);
        f->fates = calloc((size_t)f->room * n, 1);
        f->applied = calloc(packets + 1, sizeof *f->applied);
        f->come = calloc(cells, sizeof *f->come);
        f->over = calloc(cells, sizeof *f->over);
        f->rows = calloc(2 * n, sizeof *f->rows);
    }
    if (!f || !f->queue || !f->fates || !f->applied || !f->come || !f->over || !f->rows) {
        follower_free(f);
        return error_memory(e, NULL, "to follow the decisions about %d workers and %zu packets", workers, packets);
    }
    *out = f;
    return OK;
}

void follower_free(struct follower *f)
{
    if (!f)
        return;
    free(f->queue);
    free(f->fates);
    free(f->applied);
    free(f->come);
    free(f->over);
    free(f->rows);
    free(f);
}

static size_t follower_cell(const struct follower *f, int worker, size_t packet)
{
    return (size_t)worker * f->packets + packet;
}

/* Call at the start: nobody decides: every decision is an update, of the pushes of all workers, who are all answered.
 * The first is number first_step. */
static void follower_use_all(struct follower *f, int64_t first_step)
{
    f->all = 1;
    f->first_step = first_step;
    memset(f->fates, DECISION_USED | DECISION_ANSWERED, (size_t)f->workers);
}

void follower_decision(struct follower *f, const struct decision *d)
{
    const size_t at = (size_t)(f->known % f->room), n = (size_t)f->workers;

    f->queue[at] = *d;
    f->queue[at].fates = memcpy(f->fates + at * n, d->fates, n);
    f->known++;
}

int follower_room(const struct follower *f)
{
    return f->room;
}

/* 1: a push of this worker's packet has come that no decision has applied yet. */
static int is_here(const struct follower *f, int worker, size_t packet)
{
    return f->come[follower_cell(f, worker, packet)] > f->over[follower_cell(f, worker, packet)];
}

int follower_takes(const struct follower *f, int worker, size_t packet)
{
    return !is_here(f, worker, packet);
}

void follower_push(struct follower *f, int worker, size_t packet)
{
    f->come[follower_cell(f, worker, packet)]++;
}

static int is_decided(const struct decision *d, int worker)
{
    return (d->fates[worker] & (DECISION_USED | DECISION_DROPPED)) != 0;
}

/* 1: *d is the decision that this packet applies next; 0: none is known, it is held, or packet 0 has not applied it. */
static int next_of(const struct follower *f, size_t packet, struct decision *d)
{
    const int64_t number = f->applied[packet];

    if ((!f->all && number == f->known) || number == f->limit || number > f->released ||
        (packet > 0 && number == f->applied[0]))
        return 0;
    *d = f->all ? (struct decision){ number, f->first_step + number, 1, f->fates } : f->queue[number % f->room];
    return 1;
}

static int has_come(const struct follower *f, const struct decision *d, int worker, size_t packet)
{
    return !is_decided(d, worker) || is_here(f, worker, packet);
}

static int all_have_come(const struct follower *f, const struct decision *d, size_t packet)
{
    for (int w = 0; w < f->workers; w++)
        if (!has_come(f, d, w, packet))
            return 0;
    return 1;
}

static void apply(struct follower *f, const struct decision *d, size_t packet, struct application *out)
{
    int *used = f->rows, *freed = f->rows + f->workers;

    *out = (struct application){ .packet = packet, .step = d->step, .used = used, .freed = freed, .fates = d->fates };
    for (int w = 0; w < f->workers; w++) {
        if (!is_decided(d, w))
            continue;
        if (d->fates[w] & DECISION_USED)
            used[out->used_count++] = w;
        freed[out->freed_count++] = w;
        f->over[follower_cell(f, w, packet)]++;
    }
    f->applied[packet]++;
}

int follower_next(struct follower *f, struct application *out)
{
    for (size_t k = 0; k < f->packets; k++) {
        struct decision d;

        if (next_of(f, k, &d) && all_have_come(f, &d, k)) {
            apply(f, &d, k, out);
            return 1;
        }
    }
    return 0;
}

/* Applies only this many decisions until it is called again; INT64_MAX: all. For a cut. */
static void follower_hold(struct follower *f, int64_t decisions)
{
    f->limit = decisions;
}

void follower_wait_for_release(struct follower *f)
{
    f->released = 0;
}

void follower_release(struct follower *f)
{
    f->released++;
}

int64_t follower_known(const struct follower *f)
{
    return f->all ? f->applied[0] : f->known;
}

int follower_is_at(const struct follower *f, int64_t decisions)
{
    for (size_t k = 0; k < f->packets; k++)
        if (f->applied[k] != decisions)
            return 0;
    return (f->all || f->known >= decisions) && f->released >= decisions;
}

static int some_have_come(const struct follower *f, const struct decision *d, size_t packet)
{
    for (int w = 0; w < f->workers; w++)
        if (is_decided(d, w) && is_here(f, w, packet))
            return 1;
    return 0;
}

/* The first packet with a decision, *d, for which some pushes have come and others have not; else the first with one;
 * the number of packets: none. */
static size_t stuck_at(const struct follower *f, struct decision *d)
{
    size_t first = f->packets;

    for (size_t k = 0; k < f->packets; k++) {
        if (!next_of(f, k, d))
            continue;
        if (some_have_come(f, d, k) && !all_have_come(f, d, k))
            return k;
        first = first < k ? first : k;
    }
    if (first < f->packets)
        next_of(f, first, d);
    return first;
}

int follower_expects(const struct follower *f, int worker)
{
    struct decision d;
    const size_t k = stuck_at(f, &d);

    if (k < f->packets)
        return !has_come(f, &d, worker, k);
    for (size_t i = 0; i < f->packets; i++)
        if (is_here(f, worker, i))
            return 0;
    return 1;
}

size_t follower_waits_for(const struct follower *f, int64_t *step)
{
    struct decision d;
    const size_t k = stuck_at(f, &d);

    *step = k < f->packets ? d.step : -1;
    return k < f->packets ? k : 0;
}

/* ---- server core ------------------------------------------------------------------------------------------------- */

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
