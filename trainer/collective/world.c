#include "trainer/collective/world.h"

#include "base/clock.h"
#include "trainer/collective/places.h"
#include "trainer/collective/stand_in.h"
#include "trainer/collective/watchdog.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define TELLING_SECONDS 0.1 /* at most, to tell the others that this rank reports */

/* Nanoseconds. A pause becomes twice as long up to the middle one, then about a 64th of the time waited so far: what it
 * may cost is little beside the wait, and who waits for long, such as a server, leaves the cores to those that
 * compute. */
enum { PAUSE_SHORTEST = 20000, PAUSE_MIDDLE = 500000, PAUSE_LONGEST = 2000000 };
enum { LOOKS = 16 }; /* for the word of a rank that reports */
/* Above the strategies' tags. */
enum { TAG_REPORTED = PARTICIPANTS_TAG_MAX - 1, TAG_TOGETHER };

struct world {
    struct participants *participants; /* NULL: a rank alone */
    int launched, rank, size, one_host, lost;
    double deadline;
    double ran, looked_at;  /* the seconds of world_ran(), and the monotonic time of its last call */
    double stood, ran_then; /* the seconds of the last long pause between two calls; world_ran() after it */
    pid_t parent;
    void (*idle)(void *context);
    void *idle_context;
    void (*say)(void *context, struct error *sentence); /* NULL: nothing to report */
    void *say_context;
    double told_at;            /* world_ran() when that was said; 0: not yet */
    struct watchdog *watchdog; /* NULL: no watchdog */
    struct process *places;    /* (size) */
    struct process *arrived;   /* (size) the places by the launcher's numbers, for the watchdog */
    int *order, *number;       /* (size) the launcher's number of each rank, and the other way round; NULL: the same */
    struct message *in, *out;  /* (size) of the current collective operation */
    struct message heard; /* receives the word of a rank that has reported and ends all, once this one looks for it */
    struct message *told; /* (size) the same of this rank to the others */
    int listens;          /* 1: heard is used */
    char word;            /* its contents */
    char *late;           /* (size) */
    struct world_sent *sent; /* (size) */
};

double world_ran(struct world *w)
{
    const double now = clock_monotonic(), passed = now - w->looked_at;

    w->looked_at = now;
    w->ran += passed < 0.1 ? passed : 0.1;
    if (passed >= w->deadline / 2) {
        w->stood = passed;
        w->ran_then = w->ran;
    }
    return w->ran;
}

void patience_init(struct patience *p, struct world *w, double limit)
{
    p->world = w;
    p->limit = limit;
    p->begun = world_ran(w);
    p->nanoseconds = PAUSE_SHORTEST;
}

void patience_calm(struct patience *p)
{
    patience_init(p, p->world, p->limit);
}

int patience_spend(struct patience *p)
{
    if (p->world->idle)
        p->world->idle(p->world->idle_context);
    return !p->world->say && world_ran(p->world) - p->begun <= p->limit;
}

int patience_exceeds(const struct patience *p, int before)
{
    return p->world->say || world_ran(p->world) - p->begun > p->limit + places_precedence(p->world->deadline, before);
}

int patience_speaks(const struct patience *p, const char *late, int count)
{
    const struct world *w = p->world;
    int before_here = 0, stands = 0;

    for (int r = 0; r < w->rank && r < count; r++)
        before_here |= !late[r] && !strcmp(w->places[r].host, w->places[w->rank].host);
    if (w->say)
        return !before_here;
    for (int r = 0; r < count && !stands; r++)
        stands = late[r] && world_stands(w, r);
    return patience_exceeds(p, stands ? before_here : places_before(w->places, late, count, w->rank));
}

int patience_misses(const struct patience *p, int rank)
{
    return world_stands(p->world, rank) || (!p->world->say && patience_exceeds(p, 2));
}

/* Says that mpirun ends the ranks, and what this one knows: that others have ended; whom it waits for, unless it is
 * the others who wait for this one, which was stopped. */
static void say_last(struct world *w, double waited, const char *text)
{
    struct error sentence = { ERR_PEER, 0, "" };
    struct buffer ended = BUFFER_EMPTY;

    for (int r = 0; r < w->size; r++)
        w->late[r] = r != w->rank && process_judge(&w->places[r]) == PROCESS_GONE;
    if (w->stood > 0 && w->ran - w->ran_then < w->deadline)
        error_set(&sentence, ERR_PEER, "mpirun ends the ranks; this one did not run for %.1f s", w->stood);
    else if (places_text(&ended, w->places, w->late, w->size, 1) > 0)
        error_set(&sentence, ERR_PEER, "mpirun ends the ranks, since %s ended; this one waited %.1f s %s",
                  buffer_text(&ended), waited, text);
    else
        error_set(&sentence, ERR_PEER, "mpirun ends the ranks; this one waited %.1f s %s", waited, text);
    buffer_release(&ended);
    w->say(w->say_context, &sentence);
    w->say = NULL;
    w->told_at = world_ran(w);
}

/* 1: this rank has said its last sentence, and the launcher is ending it; unless that takes a whole deadline. */
static int is_told(struct world *w)
{
    return w->told_at > 0 && world_ran(w) - w->told_at <= w->deadline;
}

/* 1: another rank has reported, and ends all ranks; the launcher may need longer for that than its word needs. */
static int is_reported(struct world *w)
{
    struct error ignored = { 0 };

    if (!w->listens && w->told)
        w->listens = world_receive(w, WORLD_ANY_RANK, TAG_REPORTED, &w->word, sizeof w->word, &w->heard, &ignored) ==
                     OK;
    for (int i = 0; w->listens && i < LOOKS; i++) /* the first ones may only move what has come */
        if (message_done(w, &w->heard, &ignored) == 1) {
            w->listens = 0;
            w->told_at = world_ran(w);
        }
    return is_told(w);
}

/* Tells all others that this rank reports. Who stands does not take it. */
static void tell_all(struct world *w)
{
    static const char word = 1;
    const double end = clock_monotonic() + TELLING_SECONDS;
    struct error ignored = { 0 };

    for (int r = 0; r < w->size && w->told; r++)
        if (r != w->rank)
            world_send(w, r, TAG_REPORTED, &word, sizeof word, &w->told[r], &ignored);
    for (int more = w->told != NULL; more && clock_monotonic() < end;) {
        more = 0;
        for (int r = 0; r < w->size; r++)
            more |= message_done(w, &w->told[r], &ignored) == 0;
    }
}

int patience_over(const struct patience *p, struct error *e, const char *format, ...)
{
    struct world *w = p->world;
    struct error sentence;
    va_list args;

    va_start(args, format);
    vsnprintf(sentence.message, sizeof sentence.message, format, args);
    va_end(args);
    if (!w->say && (is_told(w) || is_reported(w)))
        return 0;
    if (!w->say)
        tell_all(w);
    if (!w->say)
        return error_set(e, ERR_PEER, "waited %g s %s; ending all ranks", w->deadline, sentence.message);
    say_last(w, world_ran(w) - p->begun, sentence.message);
    return 0;
}

int patience_pause(struct patience *p)
{
    struct timespec pause = { 0, p->nanoseconds };

    nanosleep(&pause, NULL);
    if (p->nanoseconds < PAUSE_LONGEST)
        p->nanoseconds += p->nanoseconds < PAUSE_MIDDLE ? p->nanoseconds : p->nanoseconds / 64;
    return patience_spend(p);
}

/* Without these variables there is no launcher, and MPI's start-up (0.1 s and more) is not needed. */
static int launched(void)
{
    static const char *const names[] = { "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE",
                                         "MPI_LOCALNRANKS" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return 1;
    return 0;
}

/* Waits until the messages `in` and `out` are done. `doing`: what a late rank should do. longer: seconds beyond the
 * deadline, where the rank that this one waits for may itself wait for another. */
static int wait_for_all(struct world *w, const char *doing, double longer, struct error *e)
{
    struct buffer ranks = BUFFER_EMPTY;
    struct patience p;

    patience_init(&p, w, w->deadline + longer);
    for (int more = 1; more;) {
        more = 0;
        for (int r = 0; r < w->size; r++) {
            const int in = message_done(w, &w->in[r], e), out = in < 0 ? in : message_done(w, &w->out[r], e);

            if (out < 0) {
                w->lost = 1;
                return out;
            }
            w->late[r] = !in || !out;
            more |= w->late[r];
        }
        if (!more || patience_pause(&p) || !patience_speaks(&p, w->late, w->size))
            continue;
        buffer_clear(&ranks);
        world_narrow(w, w->late, w->size);
        places_text(&ranks, w->places, w->late, w->size, 1);
        if (patience_over(&p, e, "for %s to %s", buffer_text(&ranks), doing) < 0) {
            buffer_release(&ranks);
            w->lost = 1;
            return ERR_PEER;
        }
    }
    buffer_release(&ranks);
    return OK;
}

/* Sends every rank's n bytes to every rank: all[r] is rank r's. `mine` must stay until the wait ends. */
static int gather(struct world *w, const void *mine, size_t n, void *all, const char *doing, struct error *e)
{
    int rc = OK;

    if (w->lost) /* e has the sentence */
        return ERR_PEER;
    for (int r = 0; r < w->size && rc == OK; r++) {
        char *its = (char *)all + (size_t)r * n;

        if (r == w->rank)
            memcpy(its, mine, n);
        else if ((rc = world_receive(w, r, TAG_TOGETHER, its, n, &w->in[r], e)) == OK)
            rc = world_send(w, r, TAG_TOGETHER, mine, n, &w->out[r], e);
    }
    if (rc < 0)
        w->lost = 1;
    return rc < 0 ? rc : wait_for_all(w, doing, 0, e);
}

/* Allocates memory for collective operations, and learns where the ranks are. */
static int meet(struct world *w, struct error *e)
{
    const double deadline = w->deadline;
    struct process self;
    int rc;

    w->rank = w->participants->rank;
    w->size = w->participants->size;
    w->places = calloc((size_t)w->size, sizeof *w->places);
    w->in = calloc((size_t)w->size, sizeof *w->in);
    w->out = calloc((size_t)w->size, sizeof *w->out);
    w->late = calloc((size_t)w->size, 1);
    w->sent = calloc((size_t)w->size, sizeof *w->sent);
    w->told = calloc((size_t)w->size, sizeof *w->told);
    if (!w->places || !w->told || !w->in || !w->out || !w->late || !w->sent)
        return error_memory(e, NULL, "to start as one of %d ranks", w->size);
    process_self(&self);
    if (w->watchdog)
        w->deadline = INFINITY; /* the watchdog's deadline applies */
    if ((rc = gather(w, &self, sizeof self, w->places, "start", e)) < 0)
        return rc;
    w->deadline = deadline;
    w->arrived = w->places;
    w->one_host = places_one_host(w->places, w->size);
    return OK;
}

static struct world *world_new(double deadline)
{
    struct world *w = calloc(1, sizeof *w);

    if (!w)
        return NULL;
    w->size = w->one_host = 1;
    w->deadline = deadline;
    w->parent = getppid();
    w->looked_at = clock_monotonic();
    return w;
}

int world_open(struct world **out, double deadline, struct error *e)
{
    struct world *w = world_new(deadline);
    int rc;

    if (!w)
        return error_memory(e, NULL, "to start");
    w->launched = launched();
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* otherwise a pause of 20 us takes 70 */
    *out = w;
    if (!w->launched)
        return OK;
    w->watchdog = watchdog_start(deadline, EXIT_FAILURE);
    if ((rc = ranks_start(&w->participants, e)) < 0 || (rc = meet(w, e)) < 0)
        return rc;
    watchdog_know(w->watchdog, w->arrived, w->size);
    watchdog_enter(w->watchdog, WATCHDOG_RUNNING);
    return OK;
}

int world_over(struct world **out, struct participants *p, double deadline, struct error *e)
{
    struct world *w = world_new(deadline);

    if (!w)
        return error_memory(e, NULL, "to start");
    *out = w;
    w->participants = p;
    return meet(w, e);
}

void world_close(struct world *w)
{
    if (!w)
        return;
    watchdog_enter(w->watchdog, WATCHDOG_ENDING);
    message_cancel(w, &w->heard);
    if (w->participants)
        w->participants->operations->end(w->participants);
    watchdog_stop(w->watchdog);
    if (w->arrived != w->places)
        free(w->arrived);
    free(w->places);
    free(w->order);
    free(w->number);
    free(w->in);
    free(w->out);
    free(w->late);
    free(w->sent);
    free(w->told);
    free(w);
}

void world_abort(struct world *w, int status)
{
    if (w && stand_in_watched() >= 0)
        watchdog_enter(w->watchdog, WATCHDOG_ENDING); /* the others see it, and do not outlive mpirun, which ends now */
    if (w && w->participants)
        w->participants->operations->abort(w->participants, status);
    _Exit(status);
}

int world_renumber(struct world *w, const int *order, struct error *e)
{
    const size_t size = (size_t)w->size;
    struct process *places = calloc(size, sizeof *places);
    struct world_sent *sent = calloc(size, sizeof *sent);
    int *by_rank = calloc(size, sizeof *by_rank), *number = calloc(size, sizeof *number);

    if (!places || !sent || !by_rank || !number) {
        free(places);
        free(sent);
        free(by_rank);
        free(number);
        return error_memory(e, NULL, "to number %d ranks", w->size);
    }
    for (int r = 0; r < w->size; r++) {
        places[r] = w->places[order[r]];
        sent[r] = w->sent[order[r]];
        by_rank[r] = w->order ? w->order[order[r]] : order[r];
        number[by_rank[r]] = r;
    }
    if (w->places != w->arrived)
        free(w->places);
    free(w->order);
    free(w->number);
    free(w->sent);
    w->places = places;
    w->sent = sent;
    w->order = by_rank;
    w->number = number;
    w->rank = number[w->participants->rank];
    return OK;
}

int world_rank(const struct world *w)
{
    return w->rank;
}

int world_size(const struct world *w)
{
    return w->size;
}

int world_one_host(const struct world *w)
{
    return w->one_host;
}

int world_lost(const struct world *w)
{
    return w->lost;
}

const struct process *world_places(const struct world *w)
{
    return w->places;
}

int world_stands(const struct world *w, int rank)
{
    const struct process *p = &w->places[rank];
    const enum process_state state = process_judge(p);

    return rank != w->rank && (state == PROCESS_GONE || (state == PROCESS_LIVES && process_stopped(p->pid)));
}

int world_narrow(const struct world *w, char *late, int count)
{
    enum { MISSING = 1, STANDS };
    int some = 0;

    for (int r = 0; r < count && !w->say; r++)
        if (late[r]) {
            late[r] = world_stands(w, r) ? STANDS : MISSING;
            some |= late[r] == STANDS;
        }
    for (int r = 0; r < count; r++)
        late[r] = some ? late[r] == STANDS : late[r] != 0;
    return some;
}

void world_name(const struct world *w, int rank, char *text, size_t size)
{
    if (w->places && w->places[rank].host[0]) /* else the ranks are still meeting */
        snprintf(text, size, "rank %d on host %s", rank, w->places[rank].host);
    else
        snprintf(text, size, "rank %d", rank);
}

int world_sign(const struct world *w, int rank, struct error *e)
{
    char name[WORLD_NAME_MAX];

    if (w->size == 1)
        return e->code;
    world_name(w, rank, name, sizeof name);
    return error_prefix(e, "%s", name);
}

int world_orphaned(const struct world *w)
{
    return w->launched && getppid() != w->parent && watchdog_outlives(w->watchdog);
}

int world_watched(const struct world *w)
{
    char link[64], target[64];
    ssize_t n;

    snprintf(link, sizeof link, "/proc/%ld/fd/2", (long)stand_in_launcher());
    n = w->launched ? readlink(link, target, sizeof target - 1) : -1;
    target[n > 0 ? n : 0] = '\0';
    return !strncmp(target, "/dev/pts/", 9) || !strncmp(target, "/dev/tty", 8);
}

void world_hurry(struct world *w, void (*say)(void *context, struct error *sentence), void *context)
{
    w->say = say;
    w->say_context = context;
}

void world_set_idle(struct world *w, void (*idle)(void *context), void *context)
{
    w->idle = idle;
    w->idle_context = context;
}

double world_deadline(const struct world *w)
{
    return w->deadline;
}

int world_agree(struct world *w, const char *doing, int status, struct error *e)
{
    struct error mine = { status, 0, "" }, *all;
    int worst = -1, alike = 1, rc;

    if (w->size == 1)
        return status;
    if (status < 0 && e)
        mine = *e;
    mine.code = status;
    if (!(all = calloc((size_t)w->size, sizeof *all))) {
        w->lost = 1;
        return error_memory(e, NULL, "to compare %d ranks", w->size);
    }
    rc = gather(w, &mine, sizeof mine, all, doing, e);
    for (int r = 0; r < w->size && rc == OK; r++) {
        alike = alike && all[r].code < 0 && !strcmp(all[r].message, all[0].message);
        worst = worst < 0 && all[r].code < 0 ? r : worst;
    }
    if (worst >= 0) {
        rc = error_copy(e, &all[worst]);
        if (e && !alike) /* an error of all ranks is not attributed to one */
            world_sign(w, worst, e);
    }
    free(all);
    return rc;
}

int world_gather(struct world *w, const void *mine, size_t n, void *all, const char *doing, struct error *e)
{
    if (w->size > 1)
        return gather(w, mine, n, all, doing, e);
    memcpy(all, mine, n);
    return OK;
}

int world_broadcast(struct world *w, void *bytes, size_t n, const char *what, struct error *e)
{
    enum { PIECE = 1 << 28 }; /* MPI counts are int */
    char doing[80];
    int rc = OK;

    if (w->size == 1)
        return OK;
    if (w->lost)
        return ERR_PEER;
    snprintf(doing, sizeof doing, "%s %s", w->rank == 0 ? "take" : "send", what);
    for (size_t at = 0; at < n && rc == OK; at += PIECE) {
        const size_t piece = n - at < PIECE ? n - at : PIECE;

        if (w->rank > 0)
            rc = world_receive(w, 0, TAG_TOGETHER, (char *)bytes + at, piece, &w->in[0], e);
        for (int r = 1; w->rank == 0 && r < w->size && rc == OK; r++)
            rc = world_send(w, r, TAG_TOGETHER, (char *)bytes + at, piece, &w->out[r], e);
        if (rc < 0)
            w->lost = 1;
        else
            rc = wait_for_all(w, doing, w->rank > 0 ? places_precedence(w->deadline, 2) : 0, e);
    }
    return rc;
}

int world_same(struct world *w, const char *doing, uint64_t value, const char *what, struct error *e)
{
    struct buffer ranks = BUFFER_EMPTY;
    uint64_t *all;
    int rc;

    if (w->size == 1)
        return OK;
    if (!(all = calloc((size_t)w->size, sizeof *all))) {
        w->lost = 1;
        return error_memory(e, NULL, "to compare %d ranks", w->size);
    }
    rc = gather(w, &value, sizeof value, all, doing, e);
    for (int r = 0; rc == OK && r < w->size; r++)
        w->late[r] = all[r] != all[0];
    if (rc == OK && places_text(&ranks, w->places, w->late, w->size, 1) > 0)
        rc = error_set(e, ERR_ARG, "%s: not the same on %s as on rank 0", what, buffer_text(&ranks));
    buffer_release(&ranks);
    free(all);
    return rc;
}

/* Says with whom a message failed. */
static int message_failed(const struct world *w, int with, int rc, struct error *e)
{
    char name[WORLD_NAME_MAX];

    if (rc < 0 && with != WORLD_ANY_RANK) {
        world_name(w, with, name, sizeof name);
        error_prefix(e, "the connection with %s failed", name);
    }
    return rc;
}

int world_send(struct world *w, int to, int tag, const void *bytes, size_t n, struct message *m, struct error *e)
{
    const int its = w->order ? w->order[to] : to;
    int rc = w->participants->operations->send(w->participants, its, tag, bytes, n, &m->handle, e);

    m->active = rc == OK;
    m->with = to;
    *(tag < WORLD_TAG_ASIDE ? &w->sent[to].steps : &w->sent[to].aside) += (int64_t)n;
    return message_failed(w, to, rc, e);
}

const struct world_sent *world_sent(const struct world *w)
{
    return w->sent;
}

void world_share(struct world *w, int reader, size_t n)
{
    w->sent[reader].memory += (int64_t)n;
}

int world_receive(struct world *w, int from, int tag, void *bytes, size_t n, struct message *m, struct error *e)
{
    const int its = w->order && from != WORLD_ANY_RANK ? w->order[from] : from;
    int rc = w->participants->operations->receive(w->participants, its, tag, bytes, n, &m->handle, e);

    m->active = rc == OK;
    m->with = from;
    return message_failed(w, from, rc, e);
}

int message_done(struct world *w, struct message *m, struct error *e)
{
    int rc;

    if (!m->active)
        return 1;
    if ((rc = w->participants->operations->done(w->participants, &m->handle, &m->source, e)) == 1) {
        m->active = 0;
        if (w->number && m->source >= 0)
            m->source = w->number[m->source];
    }
    return message_failed(w, m->with, rc, e);
}

void message_cancel(struct world *w, struct message *m)
{
    if (m->active)
        w->participants->operations->cancel(w->participants, &m->handle);
    m->active = 0;
}
