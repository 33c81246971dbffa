#include "eventlog/write/event_queue.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "eventlog/format/record.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * Two batches: callers fill `pending` under the lock, the thread swaps it for its own empty `taken` and writes that
 * without the lock. What could not be written stays in taken and is tried again. A new file is asked for by a mark
 * between two records: a length that no record has.
 */
enum { MARK = 8 };
static const uint64_t MARK_LENGTH = UINT64_MAX;
static const double RETRY_SECONDS = 0.25;

struct event_queue {
    pthread_mutex_t mutex;
    pthread_cond_t work, room, done;
    pthread_t thread;
    struct event_queue_options options;
    /* under the lock */
    struct event_batch pending;
    size_t taken_left;     /* bytes of taken that are not in the file yet */
    uint64_t taken_events;
    uint64_t put, written; /* bytes ever */
    double first;          /* when the oldest record of pending came */
    double retry_at;
    uint64_t asked, answered; /* flushes */
    int asked_how, stop, failing, waiting, rotation_failed;
    struct error failure;  /* the last write's, while failing */
    struct error answer;   /* to flushes up to answered */
    struct event_file counters;
    const char *path;
    /* the thread's own */
    struct event_file *file;
    struct event_batch taken;
    double next_sync;
};

void event_queue_lock(struct event_queue *q)
{
    pthread_mutex_lock(&q->mutex);
}

void event_queue_unlock(struct event_queue *q)
{
    pthread_mutex_unlock(&q->mutex);
}

/* ---- the callers' side ------------------------------------------------------------------------------------------- */

static int fits(const struct event_queue *q, size_t n)
{
    size_t used = q->pending.used + q->taken_left;

    return !used || (used <= q->options.bytes && n <= q->options.bytes - used);
}

int event_queue_room(struct event_queue *q, size_t n, struct error *e)
{
    while (!fits(q, n)) {
        if (q->options.drop)
            return 1;
        if (q->failing) {
            if (e)
                *e = q->failure;
            error_prefix(e, "event refused, the queue is full");
            return q->failure.code;
        }
        q->waiting++;
        pthread_cond_signal(&q->work);
        pthread_cond_wait(&q->room, &q->mutex);
        q->waiting--;
    }
    if (event_batch_reserve(&q->pending, n + MARK, q->options.bytes) < 0)
        return error_set(e, ERR_NOMEM, "%s: out of memory for an event of %zu bytes", q->path, n);
    return OK;
}

static void added(struct event_queue *q, size_t n)
{
    size_t before = q->pending.used;

    q->pending.used += n;
    q->put += n;
    if (!before)
        q->first = clock_monotonic();
    if (!before || (before < q->options.batch && q->pending.used >= q->options.batch))
        pthread_cond_signal(&q->work);
}

void event_queue_rotate(struct event_queue *q)
{
    put_le64(q->pending.bytes + q->pending.used, MARK_LENGTH);
    added(q, MARK);
}

uint8_t *event_queue_end(struct event_queue *q)
{
    return q->pending.bytes + q->pending.used;
}

void event_queue_put(struct event_queue *q, size_t n)
{
    q->pending.events++;
    added(q, n);
}

int event_queue_flush(struct event_queue *q, int how, struct error *e)
{
    uint64_t mine;
    int rc;

    event_queue_lock(q);
    mine = ++q->asked;
    q->asked_how |= how;
    pthread_cond_signal(&q->work);
    while (q->answered < mine)
        pthread_cond_wait(&q->done, &q->mutex);
    rc = q->answer.code;
    if (rc != OK && e)
        *e = q->answer;
    event_queue_unlock(q);
    return rc;
}

void event_queue_state(struct event_queue *q, struct event_queue_state *state)
{
    state->queued = q->pending.events + q->taken_events;
    state->file = q->counters;
    state->path = q->path;
}

int event_queue_rotation_failed(struct event_queue *q)
{
    int failed = q->rotation_failed;

    q->rotation_failed = 0;
    return failed;
}

/* ---- the thread's side ------------------------------------------------------------------------------------------- */

/* Bytes up to the next mark. */
static size_t segment(const uint8_t *bytes, size_t n)
{
    size_t i = 0;

    while (n - i >= MARK && get_le64(bytes + i) != MARK_LENGTH)
        i += (size_t)get_le64(bytes + i) + RECORD_OVERHEAD;
    return i;
}

/* Without the lock: what is in taken goes into the file, as far as it will. *failed: a new file could not be made. */
static int write_taken(struct event_queue *q, int *failed, struct error *e)
{
    struct event_batch *b = &q->taken;
    size_t done = 0, end = 0;
    int rc = OK;

    while (rc == OK && done < b->used) {
        size_t n = segment(b->bytes + done, b->used - done), whole = 0;

        if (n)
            rc = event_file_write(q->file, b->bytes + done, n, &whole, e);
        else if (event_file_next(q->file, NULL) != OK)
            *failed = 1;
        done += n ? whole : MARK;
    }
    memmove(b->bytes, b->bytes + done, b->used - done);
    b->used -= done;
    b->events = 0;
    for (; end < b->used; end += end < b->used ? MARK : 0) {
        size_t n = segment(b->bytes + end, b->used - end);

        b->events += event_file_records(b->bytes + end, n);
        end += n;
    }
    event_batch_shrink(b, q->options.batch * 2);
    return rc;
}

/* One attempt at all that waits; inside, but the lock is given up while it writes. */
static void attempt(struct event_queue *q)
{
    uint64_t answer_to = q->asked, target = q->put;
    struct error e = { 0 }, keep_error = { 0 }, sync_error = { 0 };
    int how = q->asked_how, rc = OK, failed = 0, kept;

    q->asked_how = 0;
    event_queue_unlock(q);
    kept = how & EVENT_QUEUE_MAKE_AGAIN ? event_file_make_again(q->file, &keep_error)
                                        : event_file_keep(q->file, answer_to != q->answered, &keep_error);
    event_queue_lock(q);
    while (rc == OK && q->written < target) {
        if (!q->taken.used) {
            struct event_batch empty = q->taken;

            q->taken = q->pending;
            q->pending = empty;
            q->taken_left = q->taken.used;
            q->taken_events = q->taken.events;
        }
        event_queue_unlock(q);
        rc = write_taken(q, &failed, &e);
        event_queue_lock(q);
        q->written += q->taken_left - q->taken.used;
        q->taken_left = q->taken.used;
        q->taken_events = q->taken.events;
        q->counters = *q->file;
        q->path = event_file_path(q->file);
        q->rotation_failed |= failed;
        q->failing = rc != OK;
        q->failure = e;
        pthread_cond_broadcast(&q->room);
    }
    q->retry_at = clock_monotonic() + RETRY_SECONDS;
    event_queue_unlock(q);
    if (rc == OK && how & EVENT_QUEUE_SYNC)
        event_file_sync(q->file, &sync_error);
    event_file_sync_when_due(q->file, clock_monotonic(), &q->next_sync, NULL);
    if (rc == OK && kept == OK && sync_error.code == OK && answer_to != q->answered)
        event_file_notice(q->file, &sync_error);
    event_queue_lock(q);
    q->counters = *q->file;
    q->path = event_file_path(q->file);
    q->answer = kept != OK ? keep_error : rc != OK ? e : sync_error;
    q->answered = answer_to;
    pthread_cond_broadcast(&q->done);
}

/* Inside: sleeps until there is something to do. */
static void wait_for_work(struct event_queue *q)
{
    while (!q->stop && q->asked == q->answered) {
        double until = q->next_sync, due = INFINITY;

        if (q->failing)
            due = q->retry_at;
        else if (q->pending.used && (q->waiting || q->pending.used >= q->options.batch))
            return;
        else if (q->pending.used)
            due = q->first + q->options.flush_seconds;
        if (due < until)
            until = due;
        if (clock_monotonic() >= until)
            return;
        if (until < 1e18) {
            struct timespec t = { .tv_sec = (time_t)until, .tv_nsec = (long)((until - floor(until)) * 1e9) };

            pthread_cond_timedwait(&q->work, &q->mutex, &t);
        } else {
            pthread_cond_wait(&q->work, &q->mutex);
        }
    }
}

static void *run(void *argument)
{
    struct event_queue *q = argument;
    int stopping = 0;

    event_queue_lock(q);
    while (!stopping) {
        wait_for_work(q);
        stopping = q->stop;
        attempt(q);
    }
    event_queue_unlock(q);
    return NULL;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void queue_release(struct event_queue *q)
{
    pthread_cond_destroy(&q->done);
    pthread_cond_destroy(&q->room);
    pthread_cond_destroy(&q->work);
    pthread_mutex_destroy(&q->mutex);
    event_batch_release(&q->pending);
    event_batch_release(&q->taken);
    free(q);
}

int event_queue_start(struct event_queue **out, struct event_file *file, const struct event_queue_options *options,
                      struct error *e)
{
    struct event_queue *q = calloc(1, sizeof *q);
    pthread_condattr_t monotonic;
    sigset_t all, before;
    int rc;

    *out = NULL;
    if (!q)
        return error_set(e, ERR_NOMEM, "%s: out of memory for a queue", event_file_path(file));
    q->options = *options;
    q->file = file;
    q->path = event_file_path(file);
    q->counters = *file;
    q->next_sync = file->sync == EVENTLOG_SYNC_EVERY ? 0 : INFINITY;
    pthread_mutex_init(&q->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&q->work, &monotonic);
    pthread_cond_init(&q->room, NULL);
    pthread_cond_init(&q->done, NULL);
    pthread_condattr_destroy(&monotonic);
    /* The program's signals are for its own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&q->thread, NULL, run, q);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        queue_release(q);
        errno = rc;
        return error_system(e, "%s: cannot start the thread of its queue", event_file_path(file));
    }
    *out = q;
    return OK;
}

int event_queue_stop(struct event_queue *q, uint64_t *lost, struct error *e)
{
    int rc;

    event_queue_lock(q);
    q->stop = 1;
    pthread_cond_signal(&q->work);
    event_queue_unlock(q);
    pthread_join(q->thread, NULL);
    *lost = q->pending.events + q->taken.events;
    rc = q->answer.code;
    if (rc != OK && e)
        *e = q->answer;
    queue_release(q);
    return rc;
}
