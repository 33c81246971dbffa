#include "base/clock.h"
#include "eventlog/write/event_sink.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What could not be written stays at the front of the batch for the next try. */
enum { FIRST_BUFFER = 65536, SPARE = 1024 };

struct event_direct {
    struct event_sink sink;
    struct event_sink_options options;
    struct event_file *file;
    double last_write, due; /* due: the time at which a call must do something */
};

static struct event_direct *direct_of(struct event_sink *s)
{
    return (struct event_direct *)s;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

static int write_out(struct event_direct *d, struct error *e)
{
    struct event_batch *b = &d->sink.batch;
    size_t whole;
    int rc;

    if (!b->used)
        return OK;
    rc = event_file_write(d->file, b->bytes, b->used, &whole, e);
    memmove(b->bytes, b->bytes + whole, b->used - whole);
    b->used -= whole;
    b->events = rc == OK ? 0 : event_file_records(b->bytes, b->used);
    if (rc == OK) {
        d->last_write = clock_monotonic();
        /* Frees what one large value took. */
        if (b->capacity > d->options.bytes + SPARE)
            event_batch_shrink(b, d->options.batch + SPARE);
    }
    return rc;
}

/* The first error is kept. */
static int keep_first(int rc, int also, const struct error *own, struct error *e)
{
    if (rc != OK || also == OK)
        return rc;
    if (e)
        *e = *own;
    return also;
}

/* Writes, after checking (`always` or from time to time) that the file is still there. */
static int put_out(struct event_direct *d, int always, struct error *e)
{
    struct error own;
    int rc = event_file_keep(d->file, always, e);

    return keep_first(rc, write_out(d, &own), &own, e);
}

/* Does what is due by time or size. The first error is kept. */
static int write_when_due(struct event_direct *d, struct error *e)
{
    size_t used = d->sink.batch.used;
    struct error own;
    double now, next;
    int rc = OK;

    if (used < d->options.batch && clock_monotonic_coarse() < d->due)
        return OK;
    now = clock_monotonic();
    if (used >= d->options.batch || now - d->last_write >= d->options.flush_seconds)
        rc = put_out(d, 0, e);
    rc = keep_first(rc, event_file_sync_when_due(d->file, now, &next, &own), &own, e);
    d->due = least(d->last_write + d->options.flush_seconds, next);
    return rc == OK && e ? event_file_notice(d->file, e) : rc;
}

/* ---- the sink ---------------------------------------------------------------------------------------------------- */

static void direct_pass(struct event_sink *s)
{
    (void)s;
}

/* There is room beyond a batch only while writes fail (or for one very long event, which waits alone). */
static int direct_begin(struct event_sink *s, size_t n, struct error *e)
{
    struct event_direct *d = direct_of(s);
    size_t limit = n > d->options.bytes ? n : d->options.bytes;

    if (s->batch.used > limit - n && write_out(d, e) != OK && s->batch.used > limit - n)
        return error_prefix(e, "event refused, %zu buffers are full", d->options.bytes / d->options.batch);
    if (event_batch_reserve(&s->batch, n, limit) < 0)
        return error_memory(e, event_file_path(d->file), "for %zu bytes of events", s->batch.used + n);
    return OK;
}

static int direct_rotate(struct event_sink *s, struct error *e)
{
    int rc = write_out(direct_of(s), e);

    return rc == OK ? event_file_next(direct_of(s)->file, e) : rc;
}

static int direct_put(struct event_sink *s, size_t n, struct error *e)
{
    s->batch.used += n;
    s->batch.events++;
    if (!e->code)
        return write_when_due(direct_of(s), e);
    write_when_due(direct_of(s), NULL);
    return e->code;
}

static void direct_state(struct event_sink *s, struct event_sink_state *state)
{
    const struct event_file *file = direct_of(s)->file;

    *state = (struct event_sink_state){ .queued = s->batch.events, .file = *file, .path = event_file_path(file) };
}

static int direct_flush(struct event_sink *s, int how, struct error *e)
{
    struct event_direct *d = direct_of(s);
    int rc;

    if (how & EVENT_SINK_MAKE_AGAIN) {
        rc = event_file_make_again(d->file, e);
    } else {
        if ((rc = put_out(d, 1, e)) == OK && how & EVENT_SINK_SYNC)
            rc = event_file_sync(d->file, e);
        d->due = 0; /* checked again by the next call */
    }
    return rc == OK ? event_file_notice(d->file, e) : rc;
}

static void direct_write_held(struct event_sink *s)
{
    struct error ignored; /* what failed stays in the batch; the next flush says it */

    put_out(direct_of(s), 0, &ignored);
}

static void direct_free(struct event_sink *s)
{
    event_batch_release(&s->batch);
    free(s);
}

static int direct_stop(struct event_sink *s, uint64_t *lost, struct error *e)
{
    int rc = put_out(direct_of(s), 1, e);

    *lost = s->batch.events;
    direct_free(s);
    return rc;
}

static int direct_abandon(struct event_sink *s)
{
    event_file_close(direct_of(s)->file, NULL);
    direct_free(s);
    return 1;
}

int event_direct_start(struct event_sink **out, struct event_file *file, const struct event_sink_options *options,
                       struct error *e)
{
    static const struct event_sink_operations operations = {
        .enter = direct_pass,
        .leave = direct_pass,
        .begin = direct_begin,
        .rotate = direct_rotate,
        .put = direct_put,
        .state = direct_state,
        .flush = direct_flush,
        .hold = direct_pass,
        .write_held = direct_write_held,
        .stop = direct_stop,
        .abandon = direct_abandon,
    };
    struct event_direct *d = calloc(1, sizeof *d);
    /* Few writers fill a large buffer, so it grows only as needed. */
    size_t first = (options->batch < FIRST_BUFFER ? options->batch : FIRST_BUFFER) + SPARE;

    *out = NULL;
    if (!d || event_batch_reserve(&d->sink.batch, first, options->bytes) < 0) {
        free(d);
        return error_memory(e, event_file_directory(file), "for a buffer of %zu bytes", options->batch);
    }
    d->sink.operations = &operations;
    d->options = *options;
    d->file = file;
    d->last_write = clock_monotonic();
    d->due = d->last_write +
             least(options->flush_seconds, file->sync == EVENTLOG_SYNC_EVERY ? file->sync_seconds : INFINITY);
    *out = &d->sink;
    return OK;
}
