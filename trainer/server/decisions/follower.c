#include "trainer/server/decisions/follower.h"

#include <stdlib.h>
#include <string.h>

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

void follower_use_all(struct follower *f, int64_t first_step)
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

void follower_hold(struct follower *f, int64_t decisions)
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
