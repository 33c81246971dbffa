#include "base/bytes.h"
#include "base/clock.h"
#include "eventlog/format/record.h"
#include "eventlog/write/event_sink.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * Two batches: callers fill the sink's under the lock, the thread swaps it for its own empty `taken` and writes that
 * without the lock. What could not be written stays in `taken` and is tried again. A mark between two records, a length
 * that no record has, requests a new file.
 *
 * A caller may do the thread's work: whoever sets `writing` has the file and `taken` until it clears it.
 */
enum { MARK = 8 };
static const uint64_t MARK_LENGTH = UINT64_MAX;
static const double RETRY_SECONDS = 0.25;

struct event_queue {
    struct event_sink sink; /* under the lock */
    pthread_mutex_t mutex;
    pthread_cond_t work, room, done;
    pthread_t thread;
    struct event_sink_options options;
    /* under the lock */
    size_t taken_left; /* bytes of taken that are not in the file yet */
    uint64_t taken_events;
    uint64_t put, written; /* bytes ever */
    double first;          /* when the oldest record of the sink's batch arrived */
    double retry_at;
    uint64_t asked, answered; /* flushes */
    int asked_how, stop, failing, waiting, writing;
    int held;             /* callers that will write what they put */
    struct error failure; /* of the last write, while failing */
    struct error answer;  /* answers flushes up to `answered` */
    struct event_file counters;
    const char *path;
    /* of who is `writing` */
    struct event_file *file;
    struct event_batch taken;
    double next_sync;
};

static struct event_queue *queue_of(struct event_sink *s)
{
    return (struct event_queue *)s;
}

/* ---- the callers' side ------------------------------------------------------------------------------------------- */

static void queue_enter(struct event_sink *s)
{
    pthread_mutex_lock(&queue_of(s)->mutex);
}

static void queue_leave(struct event_sink *s)
{
    pthread_mutex_unlock(&queue_of(s)->mutex);
}

static int fits(const struct event_queue *q, size_t n)
{
    size_t used = q->sink.batch.used + q->taken_left;

    return !used || (used <= q->options.bytes && n <= q->options.bytes - used);
}

static int queue_begin(struct event_sink *s, size_t n, struct error *e)
{
    struct event_queue *q = queue_of(s);

    pthread_mutex_lock(&q->mutex);
    while (!fits(q, n)) {
        if (q->options.drop)
            return EVENT_SINK_DROPPED;
        if (q->failing) {
            *e = q->failure;
            return error_prefix(e, "event refused, the queue is full");
        }
        q->waiting++;
        pthread_cond_signal(&q->work);
        pthread_cond_wait(&q->room, &q->mutex);
        q->waiting--;
    }
    if (event_batch_reserve(&s->batch, n + MARK, q->options.bytes) < 0)
        return error_memory(e, q->path, "for an event of %zu bytes", n);
    return OK;
}

static void added(struct event_queue *q, size_t n)
{
    size_t before = q->sink.batch.used;

    q->sink.batch.used += n;
    q->put += n;
    if (!before)
        q->first = clock_monotonic();
    if (!q->held && (!before || (before < q->options.batch && q->sink.batch.used >= q->options.batch)))
        pthread_cond_signal(&q->work);
}

static int queue_rotate(struct event_sink *s, struct error *e)
{
    (void)e;
    put_le64(event_sink_place(s), MARK_LENGTH);
    added(queue_of(s), MARK);
    return OK;
}

static int queue_put(struct event_sink *s, size_t n, struct error *e)
{
    s->batch.events++;
    added(queue_of(s), n);
    pthread_mutex_unlock(&queue_of(s)->mutex);
    return e->code;
}

static void queue_state(struct event_sink *s, struct event_sink_state *state)
{
    const struct event_queue *q = queue_of(s);

    state->queued = s->batch.events + q->taken_events;
    state->file = q->counters;
    state->path = q->path;
}

static int queue_flush(struct event_sink *s, int how, struct error *e)
{
    struct event_queue *q = queue_of(s);
    uint64_t mine;
    int rc;

    pthread_mutex_lock(&q->mutex);
    mine = ++q->asked;
    q->asked_how |= how;
    pthread_cond_signal(&q->work);
    while (q->answered < mine)
        pthread_cond_wait(&q->done, &q->mutex);
    rc = q->answer.code;
    if (rc != OK)
        *e = q->answer;
    pthread_mutex_unlock(&q->mutex);
    return rc;
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

/* Without the lock: writes `taken` to the file, as far as possible. *failed: a new file could not be made. */
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

/* Inside, by who is `writing`, but without the lock meanwhile: tries once to write what was put up to `target`. */
static int write_up_to(struct event_queue *q, uint64_t target, struct error *e)
{
    int rc = OK, failed = 0;

    while (rc == OK && q->written < target) {
        if (!q->taken.used) {
            struct event_batch empty = q->taken;

            q->taken = q->sink.batch;
            q->sink.batch = empty;
            q->taken_left = q->taken.used;
            q->taken_events = q->taken.events;
        }
        pthread_mutex_unlock(&q->mutex);
        rc = write_taken(q, &failed, e);
        pthread_mutex_lock(&q->mutex);
        q->written += q->taken_left - q->taken.used;
        q->taken_left = q->taken.used;
        q->taken_events = q->taken.events;
        q->counters = *q->file;
        q->path = event_file_path(q->file);
        q->sink.rotation_failed |= failed;
        q->failing = rc != OK;
        q->failure = *e;
        pthread_cond_broadcast(&q->room);
    }
    q->retry_at = clock_monotonic() + RETRY_SECONDS;
    return rc;
}

/* Does all that is due; inside, but without the lock while writing. */
static void attempt(struct event_queue *q)
{
    struct error e = { 0 }, keep_error = { 0 }, sync_error = { 0 };
    uint64_t answer_to, target;
    int how, rc, kept;

    while (q->writing)
        pthread_cond_wait(&q->done, &q->mutex);
    q->writing = 1;
    answer_to = q->asked;
    target = q->put;
    how = q->asked_how;
    q->asked_how = 0;
    pthread_mutex_unlock(&q->mutex);
    kept = how & EVENT_SINK_MAKE_AGAIN ? event_file_make_again(q->file, &keep_error)
                                       : event_file_keep(q->file, answer_to != q->answered, &keep_error);
    pthread_mutex_lock(&q->mutex);
    rc = write_up_to(q, target, &e);
    pthread_mutex_unlock(&q->mutex);
    if (rc == OK && how & EVENT_SINK_SYNC)
        event_file_sync(q->file, &sync_error);
    event_file_sync_when_due(q->file, clock_monotonic(), &q->next_sync, NULL);
    if (rc == OK && kept == OK && sync_error.code == OK && answer_to != q->answered)
        event_file_notice(q->file, &sync_error);
    pthread_mutex_lock(&q->mutex);
    q->counters = *q->file;
    q->path = event_file_path(q->file);
    q->answer = kept != OK ? keep_error : rc != OK ? e : sync_error;
    q->answered = answer_to;
    q->writing = 0;
    pthread_cond_broadcast(&q->done);
}

/* Inside: sleeps until there is something to do. */
static void wait_for_work(struct event_queue *q)
{
    while (!q->stop && q->asked == q->answered) {
        double until = q->next_sync, due = INFINITY;

        if (q->failing)
            due = q->retry_at;
        else if (q->sink.batch.used && (q->waiting || q->sink.batch.used >= q->options.batch))
            return;
        else if (q->sink.batch.used)
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

    pthread_mutex_lock(&q->mutex);
    while (!stopping) {
        wait_for_work(q);
        stopping = q->stop;
        attempt(q);
    }
    pthread_mutex_unlock(&q->mutex);
    return NULL;
}

/* ---- a caller in the thread's place ------------------------------------------------------------------------------ */

static void queue_hold(struct event_sink *s)
{
    pthread_mutex_lock(&queue_of(s)->mutex);
    queue_of(s)->held++;
    pthread_mutex_unlock(&queue_of(s)->mutex);
}

static void queue_write_held(struct event_sink *s)
{
    struct event_queue *q = queue_of(s);
    struct error ignored = { 0 };
    uint64_t target;

    pthread_mutex_lock(&q->mutex);
    target = q->put;
    while (q->writing && !q->failing && q->written < target)
        pthread_cond_wait(&q->done, &q->mutex);
    if (!q->writing && !q->failing && q->written < target) {
        q->writing = 1;
        pthread_mutex_unlock(&q->mutex);
        event_file_keep(q->file, 0, &ignored); /* the next flush looks again, and says it */
        pthread_mutex_lock(&q->mutex);
        write_up_to(q, target, &ignored);
        q->writing = 0;
        pthread_cond_broadcast(&q->done);
    }
    q->held--;
    if (q->sink.batch.used || q->taken_left)
        pthread_cond_signal(&q->work);
    pthread_mutex_unlock(&q->mutex);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void queue_release(struct event_queue *q)
{
    pthread_cond_destroy(&q->done);
    pthread_cond_destroy(&q->room);
    pthread_cond_destroy(&q->work);
    pthread_mutex_destroy(&q->mutex);
    event_batch_release(&q->sink.batch);
    event_batch_release(&q->taken);
    free(q);
}

static int queue_stop(struct event_sink *s, uint64_t *lost, struct error *e)
{
    struct event_queue *q = queue_of(s);
    int rc;

    pthread_mutex_lock(&q->mutex);
    q->stop = 1;
    pthread_cond_signal(&q->work);
    pthread_mutex_unlock(&q->mutex);
    pthread_join(q->thread, NULL);
    *lost = s->batch.events + q->taken.events;
    rc = q->answer.code;
    if (rc != OK)
        *e = q->answer;
    queue_release(q);
    return rc;
}

static int queue_abandon(struct event_sink *s)
{
    const struct event_file *file = queue_of(s)->file;

    file->io->close(file->io->context, file->fd);
    return 0;
}

int event_queue_start(struct event_sink **out, struct event_file *file, const struct event_sink_options *options,
                      struct error *e)
{
    static const struct event_sink_operations operations = {
        .enter = queue_enter,
        .leave = queue_leave,
        .begin = queue_begin,
        .rotate = queue_rotate,
        .put = queue_put,
        .state = queue_state,
        .flush = queue_flush,
        .hold = queue_hold,
        .write_held = queue_write_held,
        .stop = queue_stop,
        .abandon = queue_abandon,
    };
    struct event_queue *q = calloc(1, sizeof *q);
    pthread_condattr_t monotonic;
    sigset_t all, before;
    int rc;

    *out = NULL;
    if (!q)
        return error_memory(e, event_file_path(file), "for a queue");
    q->sink.operations = &operations;
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
    /* Leave the program's signals to its own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&q->thread, NULL, run, q);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        queue_release(q);
        errno = rc;
        return error_system(e, "%s: cannot start the thread of its queue", event_file_path(file));
    }
    *out = &q->sink;
    return OK;
}
