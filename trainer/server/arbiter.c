#include "trainer/server/arbiter.h"

#include <stdlib.h>
#include <string.h>

/* a push that waits for its decision */
struct candidate {
    struct tally_part part;
    int64_t version, number; /* of its weights; in order of arrival */
};

struct contender {
    struct candidate push;
    int pushed;       /* 1: push waits for its decision */
    int chosen;       /* of the current decision: DECISION_USED, DECISION_DROPPED or 0 */
    int waits;        /* for a verdict */
    int over;         /* no more pushes will come */
    int64_t version;  /* of its weights */
    int64_t finished; /* pushes decided */
    int speaks;       /* verdict goes with the current ruling */
    struct verdict verdict;
};

struct arbiter {
    struct arbiter_plan plan;
    struct contender *workers;
    uint8_t *fates;           /* (workers) */
    struct tally_part *parts; /* (workers) of a synchronous update's members */
    int *owners;              /* likewise: their workers */
    struct arrival *pushes;   /* likewise: as they are recorded */
    size_t push_count;
    int64_t step, decisions, arrived, granted;
    size_t replayed;     /* pushes of the record */
    int ended;           /* synchronous: no more updates */
    uint32_t sticky;     /* flags for everybody; TALLY_SAVE until worker 0 knows */
    struct verdict last; /* synchronous */
    struct server_statistics statistics;
};

int arbiter_new(struct arbiter **out, const struct arbiter_plan *plan, struct error *e)
{
    const size_t workers = (size_t)plan->workers;
    struct arbiter *a = calloc(1, sizeof *a);

    if (a) {
        a->plan = *plan;
        a->workers = calloc(workers, sizeof *a->workers);
        a->fates = calloc(workers, sizeof *a->fates);
        a->parts = calloc(workers, sizeof *a->parts);
        a->owners = calloc(workers, sizeof *a->owners);
        a->pushes = calloc(workers, sizeof *a->pushes);
    }
    if (!a || !a->workers || !a->fates || !a->parts || !a->owners || !a->pushes) {
        arbiter_free(a);
        return error_memory(e, NULL, "to decide about the pushes of %zu workers", workers);
    }
    a->step = plan->first_step;
    a->ended = a->step >= plan->max_steps;
    a->last.other = -1;
    for (size_t w = 0; w < workers; w++)
        a->workers[w].version = a->step;
    /* Asynchronous workers draw tickets for pushes; the first ones are handed out by number. */
    a->granted = plan->max_steps - plan->first_step;
    if (a->granted > plan->workers)
        a->granted = plan->workers;
    *out = a;
    return OK;
}

void arbiter_free(struct arbiter *a)
{
    if (!a)
        return;
    free(a->workers);
    free(a->fates);
    free(a->parts);
    free(a->owners);
    free(a->pushes);
    free(a);
}

/* ---- what comes -------------------------------------------------------------------------------------------------- */

void arbiter_push(struct arbiter *a, int worker, const struct tally_part *part)
{
    struct contender *w = &a->workers[worker];

    w->push = (struct candidate){ *part, w->version, a->arrived++ };
    w->pushed = w->waits = 1;
    /* A loss that is not finite counts only if its gradients do. */
    a->sticky |= part->flags & ~(uint32_t)TALLY_BAD;
    if (a->plan.synchronous && (part->flags & TALLY_LEFT))
        a->ended = 1;
}

void arbiter_done(struct arbiter *a, int worker, uint32_t flags)
{
    a->workers[worker].over = 1;
    a->sticky |= flags;
}

void arbiter_flags(struct arbiter *a, uint32_t flags)
{
    a->sticky |= flags;
}

/* ---- verdicts ---------------------------------------------------------------------------------------------------- */

static void speak(struct arbiter *a, int worker, const struct verdict *v)
{
    struct contender *w = &a->workers[worker];

    w->verdict = *v;
    w->verdict.flags |= a->sticky;
    w->verdict.all_dropped = a->statistics.dropped;
    w->speaks = 1;
    w->waits = 0;
    w->over |= !v->more;
}

/* Counts a push that is not used: 1, or 0 if its worker abandoned it. */
static int drop(struct arbiter *a, const struct candidate *c)
{
    if (c->part.flags & TALLY_LEFT)
        return 0;
    a->statistics.dropped++;
    a->statistics.samples_dropped += c->part.score.weight;
    return 1;
}

/* Asynchronous, with a record: the next push that the worker made in this run; NULL: it made no more. */
static const struct arrival *next_recorded(const struct arbiter *a, int worker)
{
    const struct arrivals *r = a->plan.replay;

    for (size_t i = a->replayed; i < r->count && a->plan.first_step + r->items[i].step < a->plan.max_steps; i++)
        if (r->items[i].worker == (uint32_t)worker)
            return &r->items[i];
    return NULL;
}

/* Whoever comes after the last update; or, asynchronous, with a push that was not recorded, or while the run is ended
 * by force, when pushes recorded before it may never come. */
static int is_sent_home(const struct arbiter *a, int worker)
{
    if (a->plan.synchronous)
        return a->ended;
    return a->workers[worker].pushed && a->plan.replay && ((a->sticky & TALLY_ENDS) || !next_recorded(a, worker));
}

/* They hear of the end, and their gradients are not used. */
static int send_home(struct arbiter *a)
{
    int some = 0;

    for (int i = 0; i < a->plan.workers; i++) {
        struct contender *w = &a->workers[i];
        struct verdict v = a->last;

        if (!w->waits || !is_sent_home(a, i))
            continue;
        v.dropped += w->pushed && drop(a, &w->push);
        v.global_step = a->step;
        v.used = v.values = v.more = 0;
        v.other = -1;
        w->pushed = 0;
        speak(a, i, &v);
        some = 1;
    }
    return some;
}

/* ---- decisions --------------------------------------------------------------------------------------------------- */

static void note(struct arbiter *a, int worker)
{
    a->pushes[a->push_count++] = (struct arrival){ (uint32_t)(a->step - a->plan.first_step), (uint32_t)worker,
                                                   (uint32_t)(a->workers[worker].push.version - a->plan.first_step) };
}

/* The first push to have come of those that are not chosen yet: its worker, or -1. */
static int first_fresh(const struct arbiter *a)
{
    int found = -1;

    for (int i = 0; i < a->plan.workers; i++) {
        const struct contender *w = &a->workers[i];

        if (w->pushed && !w->chosen && (found < 0 || w->push.number < a->workers[found].push.number))
            found = i;
    }
    return found;
}

/* Marks what is to be used, in order of arrival, and dropped. 1: that makes an update. */
static int choose(struct arbiter *a)
{
    const int wanted = a->plan.synchronous ? a->plan.aggregate : 1;
    int w, taken = 0;

    for (int i = 0; i < a->plan.workers; i++) {
        struct contender *c = &a->workers[i];

        c->chosen = a->plan.synchronous && c->pushed && c->push.version < a->step ? DECISION_DROPPED : 0;
    }
    for (; taken < wanted && (w = first_fresh(a)) >= 0; taken++)
        a->workers[w].chosen = DECISION_USED;
    return taken == wanted;
}

static int is_other(const struct arbiter *a, const struct arrival *r, const struct candidate *c)
{
    return c->version - a->plan.first_step != r->version;
}

/* The same from the record. */
static int choose_recorded(struct arbiter *a, struct error *e)
{
    const struct arrivals *r = a->plan.replay;
    const uint32_t step = (uint32_t)(a->step - a->plan.first_step);
    size_t i = a->replayed;

    for (int w = 0; w < a->plan.workers; w++)
        a->workers[w].chosen = 0;
    for (; i < r->count && r->items[i].step == step; i++) {
        struct contender *w = &a->workers[r->items[i].worker];

        if (!w->pushed || w->chosen)
            return 0;
        if (is_other(a, &r->items[i], &w->push))
            return error_set(e, ERR_CORRUPT,
                             "at step %lld the weights of worker %u are those of step %lld, but the record of --replay "
                             "says %lld",
                             (long long)a->step, r->items[i].worker, (long long)w->push.version,
                             (long long)(a->plan.first_step + r->items[i].version));
        w->chosen = a->plan.synchronous && r->items[i].version < step ? DECISION_DROPPED : DECISION_USED;
    }
    a->replayed = i;
    return 1;
}

/* Synchronous: the verdict on the pushes that were chosen, worker by worker. */
static struct verdict judge_together(struct arbiter *a)
{
    int count = 0, other;
    struct tally all;

    for (int i = 0; i < a->plan.workers; i++)
        if (a->workers[i].chosen == DECISION_USED) {
            a->owners[count] = i;
            a->parts[count++] = a->workers[i].push.part;
        }
    all = tally_sum(a->parts, count, a->step, a->plan.max_steps);
    a->sticky |= all.flags & TALLY_BAD;
    other = tally_differs(a->parts, count, 1);
    a->statistics.samples += all.score.weight;
    a->ended = !all.more || (a->sticky & TALLY_ENDS);
    return (struct verdict){ .score = all.score,
                             .global_step = all.global_step,
                             .more = !a->ended,
                             .values = 1,
                             .first = a->owners[0],
                             .other = other < 0 ? -1 : a->owners[other] };
}

/* Notes the fate of all chosen pushes and takes them out: first those that are dropped, then those used. */
static void settle_fates(struct arbiter *a)
{
    struct server_statistics *s = &a->statistics;

    a->push_count = 0;
    for (int i = 0; i < a->plan.workers; i++)
        if (a->workers[i].chosen == DECISION_DROPPED) {
            note(a, i);
            drop(a, &a->workers[i].push);
        }
    for (int i = 0; i < a->plan.workers; i++) {
        struct contender *w = &a->workers[i];
        const int used = w->chosen == DECISION_USED;

        if (used)
            note(a, i);
        a->fates[i] = (uint8_t)w->chosen;
        s->used += used;
        s->absent += a->plan.synchronous && !used;
        w->finished += w->chosen != 0;
        w->pushed = w->pushed && !w->chosen;
    }
}

static void decide_together(struct arbiter *a)
{
    const struct verdict v = judge_together(a);

    settle_fates(a);
    a->last = v;
    a->step++;
    for (int i = 0; i < a->plan.workers; i++) {
        struct contender *w = &a->workers[i];
        struct verdict own = v;

        if (!w->chosen)
            continue;
        own.used = w->chosen == DECISION_USED;
        own.dropped = w->chosen == DECISION_DROPPED;
        a->fates[i] |= DECISION_ANSWERED;
        w->version = a->step;
        speak(a, i, &own);
    }
}

/* Asynchronous: 1: the worker has its values now. least: pushes of the slowest that continues. With a record it has
 * them of the step at which it had them then. */
static int may_go_on(const struct arbiter *a, int worker, int64_t least)
{
    const struct arrival *next = a->plan.replay ? next_recorded(a, worker) : NULL;

    if (a->plan.replay)
        return !next || (a->sticky & TALLY_ENDS) || a->step - a->plan.first_step >= next->version;
    return a->plan.staleness < 0 || a->workers[worker].finished - a->plan.staleness <= least;
}

/* Asynchronous: answers those that wait and may go on. */
static int release_some(struct arbiter *a)
{
    int64_t least = INT64_MAX;
    int some = 0;

    for (int i = 0; i < a->plan.workers; i++)
        if (!a->workers[i].over && a->workers[i].finished < least)
            least = a->workers[i].finished;
    for (int i = 0; i < a->plan.workers; i++) {
        struct contender *w = &a->workers[i];
        struct verdict v = w->verdict;

        if (!w->waits || w->pushed || !may_go_on(a, i, least))
            continue;
        v.more = !(a->sticky & TALLY_ENDS) &&
                 (a->plan.replay ? next_recorded(a, i) != NULL : a->plan.first_step + a->granted < a->plan.max_steps);
        a->granted += v.more;
        a->fates[i] |= DECISION_ANSWERED;
        w->version = a->step;
        some = 1;
        speak(a, i, &v);
    }
    return some;
}

static void decide_alone(struct arbiter *a)
{
    for (int i = 0; i < a->plan.workers; i++) {
        struct contender *w = &a->workers[i];

        if (!w->chosen)
            continue;
        staleness_add(&a->statistics.staleness, a->step - w->push.version);
        a->statistics.samples += w->push.part.score.weight;
        a->sticky |= w->push.part.flags & TALLY_BAD;
        w->verdict = (struct verdict){ .score = w->push.part.score,
                                       .global_step = a->step + 1,
                                       .staleness_mean = staleness_mean(&a->statistics.staleness),
                                       .staleness_max = a->statistics.staleness.max,
                                       .values = 1,
                                       .used = 1,
                                       .other = -1 };
    }
    settle_fates(a);
    a->step++;
    release_some(a);
}

/* 1: an update can be made; its pushes are chosen. ERR_CORRUPT. */
static int update_is_due(struct arbiter *a, struct error *e)
{
    if (a->plan.synchronous ? a->ended : a->step >= a->plan.max_steps || (a->plan.replay && (a->sticky & TALLY_ENDS)))
        return 0;
    if (a->plan.replay && a->replayed == a->plan.replay->count)
        return error_set(e, ERR_CORRUPT, "the record of --replay ends at step %lld", (long long)a->step);
    return a->plan.replay ? choose_recorded(a, e) : choose(a);
}

static int rule(struct arbiter *a, struct ruling *out, struct error *e)
{
    int due;

    memset(out, 0, sizeof *out);
    memset(a->fates, 0, (size_t)a->plan.workers);
    for (int i = 0; i < a->plan.workers; i++)
        a->workers[i].speaks = 0;
    a->push_count = 0;
    if (send_home(a))
        return 1;
    if ((due = update_is_due(a, e)) < 0)
        return due;
    out->decision = (struct decision){ .step = a->step, .updates = due, .fates = a->fates };
    if (due && a->plan.synchronous)
        decide_together(a);
    else if (due)
        decide_alone(a);
    else if (a->plan.synchronous || !release_some(a))
        return 0;
    out->decision.number = a->decisions++;
    out->decides = 1;
    out->pushes = a->pushes;
    out->push_count = a->push_count;
    return 1;
}

int arbiter_next(struct arbiter *a, struct ruling *out, struct error *e)
{
    const int rc = rule(a, out, e);

    if (a->workers[0].speaks)
        a->sticky &= ~(uint32_t)TALLY_SAVE;
    return rc;
}

const struct verdict *arbiter_verdict(const struct arbiter *a, int worker)
{
    return a->workers[worker].speaks ? &a->workers[worker].verdict : NULL;
}

int64_t arbiter_step(const struct arbiter *a)
{
    return a->step;
}

int arbiter_expects(const struct arbiter *a, int worker)
{
    return !a->workers[worker].over && !a->workers[worker].waits;
}

const struct server_statistics *arbiter_statistics(const struct arbiter *a)
{
    return &a->statistics;
}
