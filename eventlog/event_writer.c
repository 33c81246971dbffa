#include "eventlog/event_writer.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "eventlog/event_encode.h"
#include "eventlog/record.h"
#include "eventlog/tag_table.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Events are encoded at the end of `buffer` as whole records; a batch of them is one write() to a descriptor opened
 * with O_APPEND. If the write stops half way, the file is cut back to the last whole record that arrived, and the rest
 * stays at the front of the buffer for the next try. If even the cut fails, `torn` forbids any write until it succeeds,
 * so that nothing is ever appended behind half a record.
 */
enum { DEFAULT_BUFFER = 65536, LEAST_BUFFER = 64, FULL_BUFFERS = 16, NAME_TRIES = 100000, SOURCE_MAX = 128 };

/* The longest event: protobuf's own limit is 2 GiB. */
static const size_t EVENT_MAX = (size_t)1 << 30;

struct eventlog_writer {
    const struct io *io;
    char *path;
    uint8_t *buffer;
    size_t used, capacity, batch; /* batch: bytes that make a write worth while */
    uint64_t size;                /* of the file: whole records only */
    uint64_t writes;
    double flush_seconds, last_write;
    struct tag_table tags; /* of the values with metadata; scalars do without */
    pid_t pid; /* who opened it: a forked child has a copy of the buffer and must not write it again */
    int fd, torn, named;
};

static int twin(struct eventlog_error *to, const struct error *from)
{
    if (to) {
        to->code = from->code;
        to->system = from->system;
        memcpy(to->message, from->message, sizeof to->message);
    }
    return from->code;
}

_Static_assert(sizeof(((struct eventlog_error *)0)->message) == sizeof(((struct error *)0)->message) &&
                   (int)EVENTLOG_ERROR_IO == (int)ERR_IO && (int)EVENTLOG_ERROR_CORRUPT == (int)ERR_CORRUPT &&
                   (int)EVENTLOG_ERROR_MEMORY == (int)ERR_NOMEM && (int)EVENTLOG_ERROR_ARGUMENT == (int)ERR_ARG,
               "eventlog_error is the public twin of error");

/* How many of the first `n` bytes of the buffer are whole records. */
static size_t whole_records(const uint8_t *buffer, size_t n)
{
    size_t whole = 0;

    while (n - whole >= RECORD_OVERHEAD) {
        uint64_t record = get_le64(buffer + whole) + RECORD_OVERHEAD;

        if (record > n - whole)
            break;
        whole += (size_t)record;
    }
    return whole;
}

static int cut_back(struct eventlog_writer *w, struct error *e)
{
    if (w->io->ftruncate(w->io->context, w->fd, (off_t)w->size) < 0)
        return error_system(e, "%s: cannot cut the file back to its last whole record, at %llu", w->path,
                            (unsigned long long)w->size);
    w->torn = 0;
    return OK;
}

static int write_out(struct eventlog_writer *w, struct error *e)
{
    size_t done = 0, whole;
    int system = 0;

    if (w->pid != getpid())
        return error_set(e, ERR_ARG, "%s: this writer belongs to process %ld, which was forked; open one of your own",
                         w->path, (long)w->pid);
    if (!w->used)
        return OK;
    if (w->torn && cut_back(w, e) != OK)
        return e ? e->code : ERR_IO;
    while (done < w->used && !system) {
        ssize_t n = w->io->write(w->io->context, w->fd, w->buffer + done, w->used - done);

        w->writes++;
        if (n > 0)
            done += (size_t)n;
        else if (n == 0)
            system = ENOSPC;
        else if (errno != EINTR)
            system = errno;
    }
    whole = done == w->used ? done : whole_records(w->buffer, done);
    w->size += whole;
    memmove(w->buffer, w->buffer + whole, w->used - whole);
    w->used -= whole;
    if (!system) {
        w->last_write = clock_monotonic();
        return OK;
    }
    errno = system;
    error_system(e, "%s: cannot write; %zu bytes of events wait in memory", w->path, w->used);
    if (done > whole) {
        w->torn = 1;
        cut_back(w, NULL);
    }
    return ERR_IO;
}

/* The name of the file, from a counter that goes up until nobody has it. */
static int make_file(struct eventlog_writer *w, const char *directory, long long seconds, const char *suffix,
                     struct error *e)
{
    char host[HOST_NAME_MAX + 1] = "", name[NAME_MAX + 1], path[PATH_MAX];

    if (gethostname(host, sizeof host - 1) < 0 || !*host || !utf8_valid(host, strlen(host), NULL))
        strcpy(host, "localhost");
    for (char *p = host; *p; p++)
        if (*p == '/')
            *p = '_';
    for (unsigned counter = 0; counter < NAME_TRIES; counter++) {
        int n = snprintf(name, sizeof name, "events.out.tfevents.%010lld.%s.%ld.%u%s", seconds, host, (long)getpid(),
                         counter, suffix);

        if (n >= (int)sizeof name)
            return error_set(e, ERR_ARG, "%s: file name too long with the suffix '%.40s...'", directory, suffix);
        if (file_join(path, sizeof path, directory, name, e) != OK)
            return ERR_ARG;
        w->fd = w->io->open(w->io->context, path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0666);
        if (w->fd >= 0)
            return (w->path = strdup(path)) ? OK : error_set(e, ERR_NOMEM, "%s: out of memory", path);
        if (errno != EEXIST)
            return error_system(e, "%s: cannot create", path);
    }
    return error_set(e, ERR_IO, "%s: %d event files of this process and second are there already", directory,
                     NAME_TRIES);
}

static int check_options(const char *directory, const struct eventlog_writer_options *o, struct error *e)
{
    if (!directory || !*directory)
        return error_set(e, ERR_ARG, "an event writer needs a directory");
    if (o->buffer_bytes > ((size_t)1 << 30))
        return error_set(e, ERR_ARG, "a buffer of %zu bytes is more than 1 GiB", o->buffer_bytes);
    if (!(o->flush_seconds >= 0))
        return error_set(e, ERR_ARG, "flush_seconds %g is not a time", o->flush_seconds);
    if (o->suffix && (strchr(o->suffix, '/') || !utf8_valid(o->suffix, strlen(o->suffix), NULL)))
        return error_set(e, ERR_ARG, "suffix '%.80s' holds a slash or is not UTF-8", o->suffix);
    if (o->source && (strlen(o->source) > SOURCE_MAX || !utf8_valid(o->source, strlen(o->source), NULL)))
        return error_set(e, ERR_ARG, "source '%.80s' is longer than %d bytes or not UTF-8", o->source, SOURCE_MAX);
    return OK;
}

static int start(struct eventlog_writer *w, double now, const char *source, struct error *e)
{
    struct buffer first = BUFFER_EMPTY;
    int rc = event_encode_start(&first, now, source, e);

    if (rc == OK && first.length > w->capacity)
        rc = error_set(e, ERR_ARG, "%s: the first record does not fit in the buffer", w->path);
    if (rc == OK) {
        memcpy(w->buffer, first.data, first.length);
        w->used = first.length;
        rc = write_out(w, e);
    }
    buffer_release(&first);
    return rc;
}

int event_writer_open_io(struct eventlog_writer **out, const char *directory,
                         const struct eventlog_writer_options *options, const struct io *io,
                         struct eventlog_error *error)
{
    struct eventlog_writer_options o = { 0 };
    struct error e = { 0 };
    struct eventlog_writer *w;
    double now = clock_wall();

    *out = NULL;
    if (options)
        o = *options;
    if (check_options(directory, &o, &e) != OK || file_make_directories(directory, &e) != OK)
        return twin(error, &e);
    if (!(w = calloc(1, sizeof *w))) {
        error_set(&e, ERR_NOMEM, "%s: out of memory for an event writer", directory);
        return twin(error, &e);
    }
    w->io = io ? io : &io_real;
    w->fd = -1;
    w->pid = getpid();
    w->batch = o.buffer_bytes ? o.buffer_bytes : DEFAULT_BUFFER;
    if (w->batch < LEAST_BUFFER)
        w->batch = LEAST_BUFFER;
    w->flush_seconds = o.flush_seconds > 0 ? o.flush_seconds : 2;
    w->capacity = w->batch + 1024;
    if (!(w->buffer = malloc(w->capacity)))
        error_set(&e, ERR_NOMEM, "%s: out of memory for a buffer of %zu bytes", directory, w->capacity);
    else if (make_file(w, directory, (long long)now, o.suffix ? o.suffix : "", &e) == OK &&
             start(w, now, o.source ? o.source : "evalboard", &e) == OK) {
        *out = w;
        return EVENTLOG_OK;
    }
    if (w->fd >= 0)
        w->io->close(w->io->context, w->fd);
    if (w->path)
        w->io->unlink(w->io->context, w->path);
    free(w->path);
    free(w->buffer);
    free(w);
    return twin(error, &e);
}

int eventlog_writer_open(struct eventlog_writer **out, const char *directory,
                         const struct eventlog_writer_options *options, struct eventlog_error *error)
{
    return event_writer_open_io(out, directory, options, NULL, error);
}

/* Room for `need` more bytes, beyond a batch only while writes fail (or for one very long event). `limit` is what may
 * wait in memory altogether. */
static int make_room(struct eventlog_writer *w, size_t need, size_t limit, struct error *e)
{
    size_t capacity = w->capacity;
    uint8_t *buffer;

    if (need <= w->capacity - w->used)
        return OK;
    if (need > limit)
        return error_set(e, ERR_ARG, "%s: an event of %zu bytes is longer than %d buffers", w->path, need,
                         FULL_BUFFERS);
    if (w->used > limit - need) {
        int rc = write_out(w, e);

        if (rc == OK && need <= w->capacity - w->used)
            return OK;
        if (rc != OK && w->used > limit - need) {
            error_prefix(e, "event refused, %d buffers are full", FULL_BUFFERS);
            return rc;
        }
        if (need <= w->capacity - w->used)
            return OK;
    }
    while (capacity - w->used < need)
        capacity = capacity < limit / 2 ? capacity * 2 : limit + 1024;
    if (!(buffer = realloc(w->buffer, capacity)))
        return error_set(e, ERR_NOMEM, "%s: out of memory for %zu bytes of events", w->path, capacity);
    w->buffer = buffer;
    w->capacity = capacity;
    return OK;
}

/* Most tags are ASCII: eight bytes at a time, then the rest by characters. */
static int tag_valid(const char *tag, size_t n, size_t *bad)
{
    size_t i = 0;
    int good;

    for (uint64_t word; n - i >= sizeof word; i += sizeof word) {
        memcpy(&word, tag + i, sizeof word);
        if (word & 0x8080808080808080u)
            break;
    }
    while (i < n && (unsigned char)tag[i] < 0x80)
        i++;
    good = utf8_valid(tag + i, n - i, bad);
    if (!good)
        *bad += i;
    return good;
}

int eventlog_writer_scalar(struct eventlog_writer *w, const char *tag, int64_t step, double wall_time, float value,
                           struct eventlog_error *error)
{
    struct error e = { 0 };
    size_t n, bad = 0;
    int rc;

    if (!tag || !isfinite(wall_time)) {
        error_set(&e, ERR_ARG, "%s: tag '%.80s' at step %lld: %s", w->path, tag ? tag : "", (long long)step,
                  tag ? "the wall time is not a finite number" : "no tag");
        return twin(error, &e);
    }
    n = strlen(tag);
    if (!tag_valid(tag, n, &bad)) {
        error_set(&e, ERR_ARG, "%s: the tag is not UTF-8 at byte %zu (0x%02x); TensorBoard would give the file up",
                  w->path, bad, (unsigned char)tag[bad]);
        return twin(error, &e);
    }
    if (n > (size_t)1 << 29)
        return twin(error, (error_set(&e, ERR_ARG, "%s: a tag of %zu bytes", w->path, n), &e));
    if (make_room(w, n + EVENT_SCALAR_OVERHEAD, w->batch * FULL_BUFFERS, &e) != OK)
        return twin(error, &e);
    if (wall_time == 0)
        wall_time = clock_wall();
    w->used += event_encode_scalar(w->buffer + w->used, tag, n, step, wall_time, value);
    if (w->used < w->batch && clock_monotonic() - w->last_write < w->flush_seconds)
        return EVENTLOG_OK;
    rc = write_out(w, &e);
    return rc == OK ? EVENTLOG_OK : twin(error, &e);
}

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

/* Appends one event, whose fields after the step are `body`, as a record. It is in the buffer when this returns OK. */
static int append_event(struct eventlog_writer *w, int64_t step, double wall_time, const struct wire *body,
                        struct error *e)
{
    size_t limit = w->batch * FULL_BUFFERS, n = body->bytes.length, need;
    struct wire head = WIRE_EMPTY;
    int rc;

    if (n > EVENT_MAX)
        return error_set(e, ERR_ARG, "%s: an event of %zu bytes is longer than 1 GiB", w->path, n);
    wire_number(&head, 1, event_writer_time(wall_time));
    wire_integer(&head, 2, step);
    need = head.bytes.length + n + RECORD_OVERHEAD;
    /* A picture may be longer than all buffers together; then it waits alone. */
    rc = buffer_ok(&head.bytes) ? OK : error_set(e, ERR_NOMEM, "%s: out of memory for an event", w->path);
    if (rc == OK && (rc = make_room(w, need, limit > need ? limit : need, e)) == OK) {
        uint8_t *record = w->buffer + w->used;

        memcpy(record + RECORD_HEADER, head.bytes.data, head.bytes.length);
        memcpy(record + RECORD_HEADER + head.bytes.length, body->bytes.data, n);
        record_seal(record, head.bytes.length + n);
        w->used += need;
    }
    wire_release(&head);
    return rc;
}

static int write_when_due(struct eventlog_writer *w, struct error *e)
{
    int rc;

    if (w->used < w->batch && clock_monotonic() - w->last_write < w->flush_seconds)
        return OK;
    rc = write_out(w, e);
    /* What one large value took is given back. */
    if (rc == OK && w->capacity > w->batch * FULL_BUFFERS + 1024) {
        uint8_t *smaller = realloc(w->buffer, w->batch + 1024);

        if (smaller) {
            w->buffer = smaller;
            w->capacity = w->batch + 1024;
        }
    }
    return rc;
}

static int check_call(const struct eventlog_writer *w, double wall_time, struct error *e)
{
    if (w->pid != getpid())
        return error_set(e, ERR_ARG, "this writer belongs to process %ld, which was forked; open one of your own",
                         (long)w->pid);
    if (!isfinite(wall_time))
        return error_set(e, ERR_ARG, "the wall time is not a finite number");
    return OK;
}

static int check_value(const struct eventlog_writer *w, const struct event_value *v, const char **known,
                       struct error *e)
{
    size_t bad = 0;

    if (!v->tag || !*v->tag)
        return error_set(e, ERR_ARG, "a value needs a tag");
    if (!tag_valid(v->tag, strlen(v->tag), &bad))
        return error_set(e, ERR_ARG, "the tag is not UTF-8 at byte %zu (0x%02x); TensorBoard would give the file up",
                         bad, (unsigned char)v->tag[bad]);
    if (v->blob && v->tag[strcspn(v->tag, "\"\\\n")])
        return error_set(e, ERR_ARG, "tag '%.80s': TensorBoard does not serve %s whose tag has a quote, a backslash or "
                         "a newline", v->tag, v->plugin);
    *known = tag_table_find(&w->tags, v->tag);
    if (*known && strcmp(*known, v->plugin) != 0)
        return error_set(e, ERR_ARG, "tag '%.80s' belongs to %.40s in this file; a value of %.40s under it would be "
                         "hidden", v->tag, *known, v->plugin);
    return OK;
}

static void encode_metadata(struct wire *body, const struct event_value *v)
{
    size_t metadata = wire_begin(body, 9), plugin = wire_begin(body, 1);

    wire_text(body, 1, v->plugin);
    if (v->content_length)
        wire_bytes(body, 2, v->content, v->content_length);
    wire_end(body, plugin);
    wire_text(body, 2, v->options ? v->options->display_name : NULL);
    wire_text(body, 3, v->options ? v->options->description : NULL);
    wire_integer(body, 4, v->data_class);
    wire_end(body, metadata);
}

/* The fields of an event that holds the one value; *fresh: with metadata, because the tag is new. */
static int encode_value(const struct eventlog_writer *w, const struct event_value *v, const struct wire *member,
                        struct wire *body, int *fresh, struct error *e)
{
    size_t summary, value;
    const char *known = NULL;
    int rc = check_value(w, v, &known, e);

    if (rc != OK)
        return rc;
    summary = wire_begin(body, EVENT_FIELD_SUMMARY);
    value = wire_begin(body, 1);
    wire_text(body, 1, v->tag);
    buffer_append(&body->bytes, member->bytes.data, member->bytes.length);
    *fresh = !known;
    if (!known || v->always_metadata)
        encode_metadata(body, v);
    wire_end(body, value);
    wire_end(body, summary);
    return wire_check(body, v->plugin, e);
}

int event_writer_finish_event(struct eventlog_writer *w, int rc, int64_t step, double wall_time, struct wire *body,
                              struct error *e, struct eventlog_error *error)
{
    if (rc == OK)
        rc = wire_check(body, "event", e);
    if (rc == OK)
        rc = check_call(w, wall_time, e);
    if (rc != OK)
        error_prefix(e, "%s", w->path);
    else if ((rc = append_event(w, step, wall_time, body, e)) == OK)
        rc = write_when_due(w, e);
    wire_release(body);
    return rc == OK ? EVENTLOG_OK : twin(error, e);
}

int event_writer_finish(struct eventlog_writer *w, int rc, const struct event_value *value, struct wire *member,
                        struct error *e, struct eventlog_error *error)
{
    struct wire body = WIRE_EMPTY;
    int fresh = 0;

    if (rc == OK)
        rc = wire_check(member, value->plugin, e);
    if (rc == OK && (rc = check_call(w, value->wall_time, e)) == OK)
        rc = encode_value(w, value, member, &body, &fresh, e);
    wire_release(member);
    if (rc != OK)
        error_prefix(e, "%s", w->path);
    else if ((rc = append_event(w, value->step, value->wall_time, &body, e)) == OK) {
        /* Without memory for the tag its next value has metadata again, which readers do not mind. */
        if (fresh)
            tag_table_add(&w->tags, value->tag, value->plugin);
        rc = write_when_due(w, e);
    }
    wire_release(&body);
    return rc == OK ? EVENTLOG_OK : twin(error, e);
}

int eventlog_writer_flush(struct eventlog_writer *w, struct eventlog_error *error)
{
    struct error e = { 0 };
    int rc = write_out(w, &e);

    return rc == OK ? EVENTLOG_OK : twin(error, &e);
}

int eventlog_writer_sync(struct eventlog_writer *w, struct eventlog_error *error)
{
    struct error e = { 0 };
    int rc = write_out(w, &e);

    if (rc == OK && w->io->fsync(w->io->context, w->fd) < 0)
        rc = error_system(&e, "%s: cannot sync", w->path);
    /* The name must survive as well, once. */
    if (rc == OK && !w->named && (rc = file_sync_parent(w->io, w->path, &e)) == OK)
        w->named = 1;
    return rc == OK ? EVENTLOG_OK : twin(error, &e);
}

const char *eventlog_writer_path(const struct eventlog_writer *w)
{
    return w->path;
}

uint64_t event_writer_writes(const struct eventlog_writer *w)
{
    return w->writes;
}

int eventlog_writer_close(struct eventlog_writer *w, struct eventlog_error *error)
{
    struct error e = { 0 };
    int rc;

    if (!w)
        return EVENTLOG_OK;
    rc = write_out(w, &e);
    if (rc != OK && w->used && w->pid == getpid())
        error_prefix(&e, "the last events are lost");
    if (w->io->close(w->io->context, w->fd) < 0 && rc == OK)
        rc = error_system(&e, "%s: cannot close", w->path);
    tag_table_release(&w->tags);
    free(w->path);
    free(w->buffer);
    free(w);
    return rc == OK ? EVENTLOG_OK : twin(error, &e);
}
