#include "eventlog/write/event_writer.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "eventlog/format/event_encode.h"
#include "eventlog/format/record.h"
#include "eventlog/public.h"
#include "eventlog/write/event_batch.h"
#include "eventlog/write/event_file.h"
#include "eventlog/write/event_queue.h"
#include "eventlog/write/event_resume.h"
#include "eventlog/write/tag_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * A call encodes its event as a whole record at the end of a batch. Without a queue that is the writer's own, written
 * by the call that fills it or comes late enough; what could not be written stays at its front for the next try. With
 * a queue it is the queue's, all state below is under the queue's lock, and `file` belongs to the queue's thread.
 *
 * begin_event() finds room and decides about rotation, so that what is encoded next knows its file; end_event() hands
 * over. Values with metadata need to know it: name and description stand with the first value of a tag in each file.
 * Plugin and content stand with every value: TensorBoard remembers them, readers of other programs look at each value
 * alone.
 */
enum { DEFAULT_BUFFER = 65536, LEAST_BUFFER = 64, FULL_BUFFERS = 16, TAGS_OF_SCALARS = 65536,
       VALUE_OVERHEAD = 64 };

/* The longest event: protobuf's own limit is 2 GiB. */
static const size_t EVENT_MAX = (size_t)1 << 30;
static const double ROTATION_RETRY = 10; /* seconds */

static const char SCALARS[] = "scalars";

enum { DROPPED = 1 };

struct eventlog_writer {
    struct event_file file;
    struct event_queue *queue; /* or NULL */
    struct event_batch batch;  /* without a queue */
    size_t full, limit;        /* bytes that make a write worth while, that may wait in memory */
    double flush_seconds, last_write, due; /* due: no later than then something is to be done at a call */
    struct tag_table tags;     /* of all files; an entry's file is the number of the last one with its metadata */
    uint64_t number;           /* of the file that the next event goes to, from 1 */
    uint64_t rotate_bytes, file_bytes; /* file_bytes: what that file holds once all that waits is written, */
    size_t first_bytes;                /* ... of which its first record is so many */
    double rotate_seconds, file_since, rotate_after;
    uint64_t events, dropped, flushes;
    enum eventlog_sync sync;
    pid_t pid; /* who opened it: a forked child has a copy of the buffer and must not write it again */
    int exact_times; /* a wall time of 0 is 1970, not now */
    char *mark; /* a byte that is 1 in that process and 0 in its children, or NULL where the kernel cannot do so */
};

/* ---- processes --------------------------------------------------------------------------------------------------- */

/* A page that the kernel empties in a forked child tells without a system call. */
static char *fork_mark(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *mark = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (mark == MAP_FAILED)
        return NULL;
    if (madvise(mark, page, MADV_WIPEONFORK) < 0) {
        munmap(mark, page);
        return NULL;
    }
    *mark = 1;
    return mark;
}

static int is_forked(const struct eventlog_writer *w)
{
    return w->mark ? !*w->mark : w->pid != getpid();
}

static int refuse_forked(const struct eventlog_writer *w, struct error *e)
{
    return error_set(e, ERR_ARG, "this writer belongs to process %ld, which was forked; open one of your own",
                     (long)w->pid);
}

static int check_process(const struct eventlog_writer *w, struct error *e)
{
    return is_forked(w) ? refuse_forked(w, e) : OK;
}

static const char *path_of(const struct eventlog_writer *w)
{
    struct event_queue_state state;

    if (!w->queue || is_forked(w))
        return event_file_path(&w->file);
    event_queue_lock(w->queue);
    event_queue_state(w->queue, &state);
    event_queue_unlock(w->queue);
    return state.path;
}

/* ---- writing without a queue ------------------------------------------------------------------------------------- */

static double least(double a, double b)
{
    return a < b ? a : b;
}

static int write_out(struct eventlog_writer *w, struct error *e)
{
    struct event_batch *b = &w->batch;
    size_t whole;
    int rc;

    if (!b->used)
        return OK;
    rc = event_file_write(&w->file, b->bytes, b->used, &whole, e);
    memmove(b->bytes, b->bytes + whole, b->used - whole);
    b->used -= whole;
    b->events = rc == OK ? 0 : event_file_records(b->bytes, b->used);
    if (rc == OK) {
        w->last_write = clock_monotonic();
        /* What one large value took is given back. */
        if (b->capacity > w->limit + 1024)
            event_batch_shrink(b, w->full + 1024);
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

/* Into a file that is there, looked for `always` or now and then. */
static int put_out(struct eventlog_writer *w, int always, struct error *e)
{
    struct error own;
    int rc = event_file_keep(&w->file, always, e);

    return keep_first(rc, write_out(w, &own), &own, e);
}

/* What is due by time or size. The first error is kept. */
static int write_when_due(struct eventlog_writer *w, struct error *e)
{
    struct error own;
    double now, next;
    int rc = OK;

    if (w->batch.used < w->full && clock_monotonic_coarse() < w->due)
        return OK;
    now = clock_monotonic();
    if (w->batch.used >= w->full || now - w->last_write >= w->flush_seconds)
        rc = put_out(w, 0, e);
    rc = keep_first(rc, event_file_sync_when_due(&w->file, now, &next, &own), &own, e);
    w->due = least(w->last_write + w->flush_seconds, next);
    return rc == OK && e ? event_file_notice(&w->file, e) : rc;
}

/* Room for `need` more bytes, beyond a batch only while writes fail (or for one very long event, which waits alone). */
static int make_room(struct eventlog_writer *w, size_t need, struct error *e)
{
    size_t limit = need > w->limit ? need : w->limit;

    if (w->batch.used > limit - need && write_out(w, e) != OK && w->batch.used > limit - need)
        return error_prefix(e, "event refused, %d buffers are full", FULL_BUFFERS);
    if (event_batch_reserve(&w->batch, need, limit) < 0)
        return error_set(e, ERR_NOMEM, "%s: out of memory for %zu bytes of events", event_file_path(&w->file),
                         w->batch.used + need);
    return OK;
}

/* ---- one event --------------------------------------------------------------------------------------------------- */

static int rotation_due(const struct eventlog_writer *w, size_t need)
{
    double now;

    if ((!w->rotate_bytes && !(w->rotate_seconds > 0)) || w->file_bytes <= w->first_bytes)
        return 0; /* a file has one event at least */
    if (w->rotate_bytes && w->file_bytes + need > w->rotate_bytes)
        return w->rotate_after == 0 || clock_monotonic() >= w->rotate_after;
    now = clock_monotonic();
    return w->rotate_seconds > 0 && now - w->file_since >= w->rotate_seconds && now >= w->rotate_after;
}

/* The next event goes into a new file; where that cannot be made, into the old one. */
static void rotate(struct eventlog_writer *w, struct error *e)
{
    double now = clock_monotonic();

    if (w->queue) {
        event_queue_rotate(w->queue);
    } else if (write_out(w, e) != OK || event_file_next(&w->file, e) != OK) {
        w->rotate_after = now + ROTATION_RETRY;
        return;
    }
    w->number++;
    w->file_bytes = w->first_bytes;
    w->file_since = now;
    w->rotate_after = 0;
}

/* Room for an event of up to need bytes. OK; DROPPED or an error: the event is not taken. With a queue OK leaves its
 * lock held until end_event() or abandon_event(). An error of rotation is only noted in e: the event is taken. */
static int begin_event(struct eventlog_writer *w, size_t need, struct error *e)
{
    int rc;

    if (w->queue)
        event_queue_lock(w->queue);
    rc = w->queue ? event_queue_room(w->queue, need, e) : make_room(w, need, e);
    if (rc != OK) {
        w->dropped++;
        if (w->queue)
            event_queue_unlock(w->queue);
        return rc;
    }
    if (w->queue && event_queue_rotation_failed(w->queue)) {
        w->rotate_after = clock_monotonic() + ROTATION_RETRY;
        w->file_bytes = w->rotate_bytes + w->first_bytes;
        w->file_since = -INFINITY;
    }
    if (rotation_due(w, need))
        rotate(w, e);
    return OK;
}

static uint8_t *event_place(struct eventlog_writer *w)
{
    return w->queue ? event_queue_end(w->queue) : w->batch.bytes + w->batch.used;
}

static void abandon_event(struct eventlog_writer *w)
{
    if (w->queue)
        event_queue_unlock(w->queue);
}

/* The n bytes at event_place() are one record. What e holds already is the call's answer if all else goes well. */
static int end_event(struct eventlog_writer *w, size_t n, struct error *e)
{
    w->events++;
    w->file_bytes += n;
    if (w->queue) {
        event_queue_put(w->queue, n);
        event_queue_unlock(w->queue);
        return e->code;
    }
    w->batch.used += n;
    w->batch.events++;
    if (e->code) {
        write_when_due(w, NULL);
        return e->code;
    }
    return write_when_due(w, e);
}

static int check_tag(const char *tag, size_t n, struct error *e)
{
    size_t bad = 0;

    return utf8_valid(tag, n, &bad)
               ? OK
               : error_set(e, ERR_ARG, "the tag is not UTF-8 at byte %zu (0x%02x); TensorBoard would give the file up",
                           bad, (unsigned char)tag[bad]);
}

/* The tag is a scalar's or new. Under the queue's lock. */
static int check_scalar_tag(struct eventlog_writer *w, const char *tag, size_t n, struct error *e)
{
    const struct tag_entry *known = tag_table_entry(&w->tags, tag, n);
    int rc;

    if (known && strcmp(known->plugin, SCALARS) != 0)
        return error_set(e, ERR_ARG, "tag '%.80s' belongs to %.40s in this run; a scalar under it would be hidden", tag,
                         known->plugin);
    if (known)
        return OK;
    if ((rc = check_tag(tag, n, e)) == OK && w->tags.count < TAGS_OF_SCALARS)
        tag_table_add(&w->tags, tag, SCALARS); /* without memory for it the next call comes here again */
    return rc;
}

int eventlog_writer_scalar(struct eventlog_writer *w, const char *tag, int64_t step, double wall_time, float value,
                           struct eventlog_error *error)
{
    struct error e;
    size_t n;
    int rc;

    e.code = OK;
    if (check_process(w, &e) != OK)
        goto refused;
    if (!tag || !isfinite(wall_time)) {
        error_set(&e, ERR_ARG, "tag '%.80s' at step %lld: %s", tag ? tag : "", (long long)step,
                  tag ? "the wall time is not a finite number" : "no tag");
        goto refused;
    }
    if ((n = strlen(tag)) > (size_t)1 << 29) {
        error_set(&e, ERR_ARG, "a tag of %zu bytes", n);
        goto refused;
    }
    if ((rc = begin_event(w, n + EVENT_SCALAR_OVERHEAD, &e)) != OK)
        return rc == DROPPED ? EVENTLOG_OK : public_error(error, &e);
    if (check_scalar_tag(w, tag, n, &e) != OK) {
        abandon_event(w);
        goto refused;
    }
    if (wall_time == 0 && !w->exact_times)
        wall_time = clock_wall();
    rc = end_event(w, event_encode_scalar(event_place(w), tag, n, step, wall_time, value), &e);
    return rc == OK ? EVENTLOG_OK : public_error(error, &e);
refused:
    error_prefix(&e, "%s", path_of(w));
    return public_error(error, &e);
}

/* ---- values with metadata ---------------------------------------------------------------------------------------- */

size_t event_writer_tensor(struct wire *w, int dtype, const int64_t *shape, size_t rank)
{
    size_t tensor = wire_begin(w, VALUE_FIELD_TENSOR), dimensions;

    wire_integer(w, TENSOR_FIELD_DTYPE, dtype);
    dimensions = wire_begin(w, TENSOR_FIELD_SHAPE);
    for (size_t i = 0; i < rank; i++) {
        size_t dimension = wire_begin(w, 2);

        wire_integer(w, 1, shape[i]);
        wire_end(w, dimension);
    }
    wire_end(w, dimensions);
    return tensor;
}

double event_writer_time(double wall_time)
{
    return wall_time == 0 ? clock_wall() : wall_time;
}

/* Encodes one event, whose fields after the step are `body`, at event_place(). Its length. */
static size_t encode_event(struct eventlog_writer *w, const struct wire *head, const struct wire *body)
{
    size_t n = head->bytes.length + body->bytes.length;
    uint8_t *record = event_place(w);

    memcpy(record + RECORD_HEADER, buffer_text(&head->bytes), head->bytes.length); /* may be none */
    memcpy(record + RECORD_HEADER + head->bytes.length, body->bytes.data, body->bytes.length);
    record_seal(record, n);
    return n + RECORD_OVERHEAD;
}

void event_writer_exact_times(struct eventlog_writer *w)
{
    w->exact_times = 1;
}

static int encode_head(const struct eventlog_writer *w, struct wire *head, int64_t step, double wall_time,
                       struct error *e)
{
    wire_number(head, 1, w->exact_times ? wall_time : event_writer_time(wall_time));
    wire_integer(head, 2, step);
    return buffer_ok(&head->bytes) ? OK : error_set(e, ERR_NOMEM, "out of memory for an event");
}

static int check_call(const struct eventlog_writer *w, double wall_time, struct error *e)
{
    if (check_process(w, e) != OK)
        return ERR_ARG;
    if (!isfinite(wall_time))
        return error_set(e, ERR_ARG, "the wall time is not a finite number");
    return OK;
}

/* What can be said of the value without the table of tags. */
static int check_value(const struct event_writer_value *v, struct error *e)
{
    if (!v->tag || !*v->tag)
        return error_set(e, ERR_ARG, "a value needs a tag");
    if (check_tag(v->tag, strlen(v->tag), e) != OK)
        return ERR_ARG;
    if (v->blob && v->tag[strcspn(v->tag, "\"\\\n")])
        return error_set(e, ERR_ARG, "tag '%.80s': TensorBoard does not serve %s whose tag has a quote, a backslash or "
                         "a newline", v->tag, v->plugin);
    if (!v->options)
        return OK;
    return public_reserved(v->options->reserved, sizeof v->options->reserved / sizeof *v->options->reserved, e);
}

static int check_length(size_t n, struct error *e)
{
    return n <= EVENT_MAX ? OK : error_set(e, ERR_ARG, "an event of %zu bytes is longer than 1 GiB", n);
}

/* The answer of a call that came to rc; the sentence of what was refused names the file. */
static int answer(struct eventlog_writer *w, int rc, int refused, struct error *e, struct eventlog_error *error)
{
    if (rc == OK || rc == DROPPED)
        return EVENTLOG_OK;
    if (refused)
        error_prefix(e, "%s", path_of(w));
    return public_error(error, e);
}

int event_writer_finish_event(struct eventlog_writer *w, int rc, int64_t step, double wall_time, struct wire *body,
                              struct error *e, struct eventlog_error *error)
{
    struct wire head = WIRE_EMPTY;
    int refused;

    if (rc == OK)
        rc = wire_check(body, "event", e);
    if (rc == OK && (rc = check_call(w, wall_time, e)) == OK && (rc = check_length(body->bytes.length, e)) == OK)
        rc = encode_head(w, &head, step, wall_time, e);
    refused = rc != OK;
    if (rc == OK && (rc = begin_event(w, head.bytes.length + body->bytes.length + RECORD_OVERHEAD, e)) == OK)
        rc = end_event(w, encode_event(w, &head, body), e);
    wire_release(&head);
    wire_release(body);
    return answer(w, rc, refused, e, error);
}

static void encode_metadata(struct wire *body, const struct event_writer_value *v, const char *display_name,
                            const char *description)
{
    size_t metadata = wire_begin(body, 9), plugin = wire_begin(body, 1);

    wire_text(body, 1, v->plugin);
    if (v->content_length)
        wire_bytes(body, 2, v->content, v->content_length);
    wire_end(body, plugin);
    wire_text(body, 2, display_name);
    wire_text(body, 3, description);
    wire_integer(body, 4, v->data_class);
    wire_end(body, metadata);
}

/* The fields of an event that holds the one value. */
static int encode_value(const struct event_writer_value *v, const struct wire *member, const struct wire *metadata,
                        struct wire *body, struct error *e)
{
    size_t summary = wire_begin(body, EVENT_FIELD_SUMMARY), value = wire_begin(body, 1);

    wire_text(body, 1, v->tag);
    buffer_append(&body->bytes, member->bytes.data, member->bytes.length);
    buffer_append(&body->bytes, metadata->bytes.data, metadata->bytes.length);
    wire_end(body, value);
    wire_end(body, summary);
    return wire_check(body, v->plugin, e);
}

/* Begun: the value's event with the metadata of a tag's first value in the file, or of a later one. *refused: it is not
 * taken. */
static int writer_put_value(struct eventlog_writer *w, const struct event_writer_value *v, const struct wire *head,
                            const struct wire *member, const struct wire *first, const struct wire *later, int *refused,
                            struct error *e)
{
    struct tag_entry *known = tag_table_entry(&w->tags, v->tag, strlen(v->tag));
    int fresh = !known || known->file != w->number, rc = OK;
    struct wire body = WIRE_EMPTY;
    struct error own = { 0 };
    size_t n;

    if (known && strcmp(known->plugin, v->plugin) != 0)
        rc = error_set(&own, ERR_ARG, "tag '%.80s' belongs to %.40s in this run; a value of %.40s under it would be "
                       "hidden", v->tag, known->plugin, v->plugin);
    else
        rc = encode_value(v, member, fresh ? first : later, &body, &own);
    if (rc != OK) {
        *e = own;
        *refused = 1;
        abandon_event(w);
    } else {
        n = encode_event(w, head, &body);
        /* Without memory for the tag its next value has name and description again, which readers do not mind. */
        if (!known && tag_table_add(&w->tags, v->tag, v->plugin) == 0)
            known = tag_table_entry(&w->tags, v->tag, strlen(v->tag));
        if (known)
            known->file = w->number;
        rc = end_event(w, n, e);
    }
    wire_release(&body);
    return rc;
}

int event_writer_finish(struct eventlog_writer *w, int rc, const struct event_writer_value *value, struct wire *member,
                        struct error *e, struct eventlog_error *error)
{
    const struct eventlog_value_options none = { 0 }, *options = value->options ? value->options : &none;
    struct wire head = WIRE_EMPTY, first = WIRE_EMPTY, later = WIRE_EMPTY;
    int described = options->display_name || options->description, refused;
    size_t n = 0;

    if (rc == OK)
        rc = wire_check(member, value->plugin, e);
    if (rc == OK && (rc = check_call(w, value->wall_time, e)) == OK && (rc = check_value(value, e)) == OK &&
        (rc = encode_head(w, &head, value->step, value->wall_time, e)) == OK) {
        encode_metadata(&first, value, options->display_name, options->description);
        if (described)
            encode_metadata(&later, value, NULL, NULL);
        if ((rc = wire_check(&first, value->plugin, e)) == OK)
            rc = wire_check(&later, value->plugin, e);
    }
    if (rc == OK) {
        n = head.bytes.length + member->bytes.length + first.bytes.length + strlen(value->tag) + VALUE_OVERHEAD;
        rc = check_length(n, e);
    }
    refused = rc != OK;
    if (rc == OK && (rc = begin_event(w, n, e)) == OK)
        rc = writer_put_value(w, value, &head, member, &first, described ? &later : &first, &refused, e);
    wire_release(&first);
    wire_release(&later);
    wire_release(&head);
    wire_release(member);
    return answer(w, rc, refused, e, error);
}

int event_writer_check(const struct eventlog_writer *w, struct error *e)
{
    return check_process(w, e);
}

const char *event_writer_directory(const struct eventlog_writer *w)
{
    return event_file_directory(&w->file);
}

const struct io *event_writer_io(const struct eventlog_writer *w)
{
    return w->file.io;
}

/* ---- the whole writer -------------------------------------------------------------------------------------------- */

static int flush(struct eventlog_writer *w, int sync, struct eventlog_error *error)
{
    struct error e = { 0 };
    int rc = check_process(w, &e);

    if (rc != OK) {
        error_prefix(&e, "%s", path_of(w));
    } else if (w->queue) {
        event_queue_lock(w->queue);
        w->flushes++;
        event_queue_unlock(w->queue);
        rc = event_queue_flush(w->queue, sync ? EVENT_QUEUE_SYNC : 0, &e);
    } else {
        w->flushes++;
        if ((rc = put_out(w, 1, &e)) == OK && sync)
            rc = event_file_sync(&w->file, &e);
        if (rc == OK)
            rc = event_file_notice(&w->file, &e);
        w->due = 0; /* looked at anew by the next call */
    }
    return rc == OK ? EVENTLOG_OK : public_error(error, &e);
}

int eventlog_writer_flush(struct eventlog_writer *w, struct eventlog_error *error)
{
    return flush(w, w->sync == EVENTLOG_SYNC_AT_FLUSH, error);
}

int eventlog_writer_sync(struct eventlog_writer *w, struct eventlog_error *error)
{
    return flush(w, 1, error);
}

int eventlog_writer_make_again(struct eventlog_writer *w, struct eventlog_error *error)
{
    struct error e = { 0 };
    int rc = check_process(w, &e);

    if (rc != OK)
        error_prefix(&e, "%s", path_of(w));
    else if (w->queue)
        rc = event_queue_flush(w->queue, EVENT_QUEUE_MAKE_AGAIN, &e);
    else if ((rc = event_file_make_again(&w->file, &e)) == OK)
        rc = event_file_notice(&w->file, &e);
    return rc == OK ? EVENTLOG_OK : public_error(error, &e);
}

const char *eventlog_writer_path(const struct eventlog_writer *w)
{
    return path_of(w);
}

int eventlog_writer_statistics(struct eventlog_writer *w, struct eventlog_writer_statistics *s,
                               struct eventlog_error *error)
{
    struct event_queue_state state;
    struct error e = { 0 };

    memset(s, 0, sizeof *s);
    if (check_process(w, &e) != OK) {
        error_prefix(&e, "%s", path_of(w));
        return public_error(error, &e);
    }
    if (w->queue) {
        event_queue_lock(w->queue);
        event_queue_state(w->queue, &state);
    } else {
        state.queued = w->batch.events;
        state.file = w->file;
    }
    s->events = w->events;
    s->dropped = w->dropped;
    s->flushes = w->flushes;
    if (w->queue)
        event_queue_unlock(w->queue);
    s->queued = state.queued;
    s->bytes = state.file.bytes;
    s->files = state.file.files;
    s->writes = state.file.writes;
    s->syncs = state.file.syncs;
    s->errors = state.file.errors;
    s->lost = event_file_lost(&state.file);
    public_error(&s->last_error, &state.file.last);
    return EVENTLOG_OK;
}

static void writer_release(struct eventlog_writer *w)
{
    if (w->mark)
        munmap(w->mark, (size_t)sysconf(_SC_PAGESIZE));
    tag_table_release(&w->tags);
    event_batch_release(&w->batch);
    free(w);
}

/* In a forked child. What the queue's thread held may be half changed there, so it is left alone. */
static int close_forked(struct eventlog_writer *w, struct eventlog_error *error)
{
    struct error e = { 0 };

    refuse_forked(w, &e);
    error_prefix(&e, "%s", path_of(w));
    if (w->queue)
        w->file.io->close(w->file.io->context, w->file.fd);
    else
        event_file_close(&w->file, NULL);
    if (!w->queue)
        writer_release(w);
    return public_error(error, &e);
}

/* At the end: what the sentence of rc does not say of lost events, of which so many still waited. */
static int tell_lost(struct eventlog_writer *w, uint64_t waiting, int rc, struct error *e)
{
    const unsigned long long lost = waiting + event_file_lost(&w->file);

    if (!lost)
        return rc == OK ? event_file_notice(&w->file, e) : rc;
    if (rc != OK)
        return error_prefix(e, waiting ? "the last %llu events are lost" : "%llu events are lost", lost);
    return error_set(e, ERR_IO, "%s: %llu events are lost, which were in files that are gone", path_of(w), lost);
}

int eventlog_writer_close(struct eventlog_writer *w, struct eventlog_error *error)
{
    struct error e = { 0 }, own = { 0 };
    uint64_t waiting = 0;
    int rc;

    if (!w)
        return EVENTLOG_OK;
    if (is_forked(w))
        return close_forked(w, error);
    if (w->queue) {
        rc = event_queue_stop(w->queue, &waiting, &e);
        w->queue = NULL;
    } else {
        rc = put_out(w, 1, &e);
        waiting = w->batch.events;
    }
    rc = keep_first(rc, event_file_keep(&w->file, 1, &own), &own, &e); /* with what was just written */
    if (rc == OK && w->sync != EVENTLOG_SYNC_NEVER)
        rc = event_file_sync(&w->file, &e);
    rc = tell_lost(w, waiting, rc, &e);
    if (event_file_close(&w->file, rc == OK ? &e : NULL) != OK && rc == OK)
        rc = e.code;
    writer_release(w);
    return rc == OK ? EVENTLOG_OK : public_error(error, &e);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int open_file(struct eventlog_writer *w, const char *directory, const struct eventlog_writer_options *o,
                     const struct io *io, struct error *e)
{
    const char *suffix = o->suffix ? o->suffix : "", *source = o->source ? o->source : "evalboard";
    struct buffer purge = BUFFER_EMPTY;
    size_t whole;
    int rc = OK;

    if (o->resume == EVENTLOG_RESUME_APPEND)
        return event_file_append(&w->file, io, directory, suffix, source, e);
    if (o->resume == EVENTLOG_RESUME_PURGE)
        rc = event_resume_purge(&purge, o->purge_step, clock_wall(), e);
    if (rc == OK)
        rc = event_file_create(&w->file, io, directory, suffix, source, e);
    if (rc == OK && purge.length &&
        (rc = event_file_write(&w->file, (const uint8_t *)purge.data, purge.length, &whole, e)) != OK)
        event_file_remove(&w->file);
    w->file.events = 0;
    buffer_release(&purge);
    return rc;
}

static int start(struct eventlog_writer *w, const char *directory, const struct eventlog_writer_options *o,
                 const struct io *io, struct error *e)
{
    struct event_queue_options queue = { .drop = o->when_full == EVENTLOG_WHEN_FULL_DROP };
    int rc;

    w->full = o->buffer_bytes ? o->buffer_bytes : DEFAULT_BUFFER;
    if (w->full < LEAST_BUFFER)
        w->full = LEAST_BUFFER;
    w->limit = w->full * FULL_BUFFERS;
    w->flush_seconds = o->flush_seconds > 0 ? o->flush_seconds : 2;
    w->rotate_bytes = o->rotate_bytes;
    w->rotate_seconds = o->rotate_seconds;
    w->sync = o->sync;
    w->number = 1;
    /* A large buffer is for the few who fill it, and grows when they do. */
    if (!o->queue_bytes &&
        event_batch_reserve(&w->batch, (w->full < DEFAULT_BUFFER ? w->full : DEFAULT_BUFFER) + 1024, w->limit) < 0)
        return error_set(e, ERR_NOMEM, "%s: out of memory for a buffer of %zu bytes", directory, w->full);
    if ((rc = open_file(w, directory, o, io, e)) != OK)
        return rc;
    w->file.leave_lost = o->leave_lost != 0;
    w->file.sync = o->sync;
    w->file.sync_seconds = o->sync_seconds;
    w->file_bytes = w->file.size;
    w->first_bytes = w->file.first;
    w->last_write = w->file_since = clock_monotonic();
    w->due = w->last_write + least(w->flush_seconds, o->sync == EVENTLOG_SYNC_EVERY ? o->sync_seconds : INFINITY);
    if (!o->queue_bytes)
        return OK;
    queue.bytes = o->queue_bytes < w->full ? w->full : o->queue_bytes;
    queue.batch = w->full < queue.bytes / 2 ? w->full : queue.bytes / 2;
    queue.flush_seconds = w->flush_seconds;
    if ((rc = event_queue_start(&w->queue, &w->file, &queue, e)) != OK) {
        if (o->resume == EVENTLOG_RESUME_APPEND)
            event_file_close(&w->file, NULL);
        else
            event_file_remove(&w->file);
    }
    return rc;
}

int event_writer_open_io(struct eventlog_writer **out, const char *directory,
                         const struct eventlog_writer_options *options, const struct io *io,
                         struct eventlog_error *error)
{
    struct eventlog_writer_options o = { 0 };
    struct eventlog_writer *w;
    struct error e = { 0 };

    *out = NULL;
    if (options)
        o = *options;
    if (event_writer_check_options(directory, &o, &e) != OK || file_make_directories(directory, &e) != OK)
        return public_error(error, &e);
    if (!(w = calloc(1, sizeof *w))) {
        error_set(&e, ERR_NOMEM, "%s: out of memory for an event writer", directory);
        return public_error(error, &e);
    }
    w->pid = getpid();
    w->mark = fork_mark();
    if (start(w, directory, &o, io ? io : &io_real, &e) != OK) {
        writer_release(w);
        return public_error(error, &e);
    }
    *out = w;
    return EVENTLOG_OK;
}

int eventlog_writer_open(struct eventlog_writer **out, const char *directory,
                         const struct eventlog_writer_options *options, struct eventlog_error *error)
{
    return event_writer_open_io(out, directory, options, NULL, error);
}
