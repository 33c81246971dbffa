#include "eventlog/write/event_writer.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/io.h"
#include "eventlog/eventlog.h"
#include "eventlog/format/event_decode.h"
#include "eventlog/format/event_encode.h"
#include "eventlog/format/event_wire.h"
#include "eventlog/format/record.h"
#include "eventlog/public.h"
#include "eventlog/write/event_file.h"
#include "eventlog/write/event_resume.h"
#include "eventlog/write/event_sink.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- event writer value ------------------------------------------------------------------------------------------ */

/* The same for a tag of n bytes alone. */
static int event_writer_value_check_tag(const char *tag, size_t n, struct error *e)
{
    size_t bad = 0;

    return utf8_valid(tag, n, &bad)
               ? OK
               : error_set(e, ERR_ARG,
                           "the tag is not UTF-8 at byte %zu (0x%02x); TensorBoard would give up on the file", bad,
                           (unsigned char)tag[bad]);
}

/* Checks what does not depend on other values: OK or ERR_ARG. */
static int event_writer_value_check(const struct event_writer_value *v, struct error *e)
{
    if (!v->tag || !*v->tag)
        return error_set(e, ERR_ARG, "a value needs a tag");
    if (event_writer_value_check_tag(v->tag, strlen(v->tag), e) != OK)
        return ERR_ARG;
    if (v->blob && v->tag[strcspn(v->tag, "\"\\\n")])
        return error_set(e, ERR_ARG,
                         "tag '%.80s': TensorBoard does not serve %s whose tag has a quote, a backslash or a newline",
                         v->tag, v->plugin);
    return OK;
}

void event_writer_value_shape(struct wire *w, const int64_t *shape, size_t rank)
{
    for (size_t i = 0; i < rank; i++) {
        size_t dimension = wire_begin(w, 2);

        wire_integer(w, 1, shape[i]);
        wire_end(w, dimension);
    }
}

size_t event_writer_value_tensor(struct wire *w, int dtype, const int64_t *shape, size_t rank)
{
    size_t tensor = wire_begin(w, VALUE_FIELD_TENSOR), dimensions;

    wire_integer(w, TENSOR_FIELD_DTYPE, dtype);
    dimensions = wire_begin(w, TENSOR_FIELD_SHAPE);
    event_writer_value_shape(w, shape, rank);
    wire_end(w, dimensions);
    return tensor;
}

uint8_t *event_writer_value_room(struct wire *w, int dtype, const int64_t *shape, size_t rank, size_t n)
{
    size_t tensor = event_writer_value_tensor(w, dtype, shape, rank);
    size_t content = n ? wire_begin(w, TENSOR_FIELD_CONTENT) : 0;
    char *room = n ? buffer_reserve(&w->bytes, n) : NULL;

    if (room) {
        memset(room, 0, n);
        w->bytes.length += n;
    }
    if (n)
        wire_end(w, content);
    wire_end(w, tensor);
    return n && buffer_ok(&w->bytes) ? (uint8_t *)w->bytes.data + w->bytes.length - n : NULL;
}

/* Appends the metadata field of a Summary.Value; either text may be NULL. wire_check() reports if memory ran out. */
static void event_writer_value_metadata(struct wire *out, const struct event_writer_value *v, const char *display_name,
                                        const char *description)
{
    size_t metadata = wire_begin(out, 9), plugin = wire_begin(out, 1);

    wire_text(out, 1, v->plugin);
    if (v->content_length)
        wire_bytes(out, 2, v->content, v->content_length);
    wire_end(out, plugin);
    wire_text(out, 2, display_name);
    wire_text(out, 3, description);
    wire_integer(out, 4, v->data_class);
    wire_end(out, metadata);
}

/* Appends the field of an event that holds this one value: its tag, its member (the fields besides tag and metadata)
 * and its metadata. */
static int event_writer_value_encode(struct wire *out, const struct event_writer_value *v, const struct wire *member,
                                     const struct wire *metadata, struct error *e)
{
    size_t summary = wire_begin(out, EVENT_FIELD_SUMMARY), value = wire_begin(out, 1);

    wire_text(out, 1, v->tag);
    buffer_append(&out->bytes, member->bytes.data, member->bytes.length);
    buffer_append(&out->bytes, metadata->bytes.data, metadata->bytes.length);
    wire_end(out, value);
    wire_end(out, summary);
    return wire_check(out, v->plugin, e);
}

/* ---- tag table --------------------------------------------------------------------------------------------------- */

void tag_table_release(struct tag_table *t)
{
    tag_index_release(&t->tags);
    tag_index_release(&t->plugins);
}

struct tag_entry *tag_table_entry(struct tag_table *t, const char *tag, size_t n)
{
    size_t number = tag_index_find(&t->tags, tag, n);

    return number == TAG_INDEX_NONE ? NULL : (struct tag_entry *)t->tags.items + number;
}

struct tag_entry *tag_table_add(struct tag_table *t, const char *tag, const char *plugin)
{
    size_t number = tag_index_add(&t->plugins, plugin, strlen(plugin));
    struct tag_entry *entry = number == TAG_INDEX_NONE ? NULL : tag_index_item(&t->tags, tag, strlen(tag));

    if (entry)
        entry->plugin = t->plugins.entries[number].text;
    return entry;
}

/* ---- event writer ------------------------------------------------------------------------------------------------ */

/* ---- event output ------------------------------------------------------------------------------------------------ */

/*
 * Where the bytes of a writer without a directory go: to functions of the caller (eventlog_output) or
 * to memory. Both look to event_file like system calls, with an object in the place of each file; an object takes all
 * bytes of a write or none, so nothing is ever cut back.
 */

struct event_output;

/* A file and the one that follows it are open together for a moment; their descriptors are places in `objects`. */
enum { OBJECTS = 2 };

struct event_output {
    struct io io;
    struct eventlog_output to;
    void *objects[OBJECTS];
    int open[OBJECTS];
    pid_t pid; /* what a forked child has of an object is a copy, which must not end it */
    pthread_mutex_t mutex;
    struct buffer memory; /* with the mutex */
};

/* The result of a system call, from that of a caller's function. */
static int output_result(int system)
{
    if (!system)
        return 0;
    errno = system < 0 || system == EINTR || system == EEXIST ? EIO : system;
    return -1;
}

/* ---- as system calls --------------------------------------------------------------------------------------------- */

static int output_open(void *context, const char *name, int flags, mode_t mode)
{
    struct event_output *o = context;
    int fd = o->open[0];

    (void)flags;
    (void)mode;
    o->objects[fd] = o->to.context;
    if (o->to.begin && output_result(o->to.begin(o->to.context, name, &o->objects[fd])) < 0)
        return -1;
    o->open[fd] = 1;
    return fd;
}

static ssize_t output_write(void *context, int fd, const void *bytes, size_t n)
{
    struct event_output *o = context;

    return output_result(o->to.write(o->objects[fd], bytes, n)) < 0 ? -1 : (ssize_t)n;
}

static int output_sync(void *context, int fd)
{
    struct event_output *o = context;

    return o->to.sync ? output_result(o->to.sync(o->objects[fd])) : 0;
}

static int output_close(void *context, int fd)
{
    struct event_output *o = context;

    o->open[fd] = 0;
    return o->to.end && getpid() == o->pid ? output_result(o->to.end(o->objects[fd])) : 0;
}

static int output_unlink(void *context, const char *name)
{
    (void)context;
    (void)name;
    return 0;
}

static int output_truncate(void *context, int fd, off_t length)
{
    (void)context;
    (void)fd;
    (void)length;
    return output_result(EIO);
}

static int output_rename(void *context, const char *from, const char *to)
{
    (void)context;
    (void)from;
    (void)to;
    return output_result(EIO);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int output_remember(void *context, const void *bytes, size_t n)
{
    struct event_output *o = context;
    char *room;

    pthread_mutex_lock(&o->mutex);
    room = buffer_reserve(&o->memory, n);
    if (room)
        buffer_append(&o->memory, bytes, n);
    o->memory.failed = 0; /* what is there stays, and later there may be room */
    pthread_mutex_unlock(&o->mutex);
    return room ? 0 : ENOMEM;
}

/* Hands over what was written to memory since the last call, for free(): NULL and 0 if that is nothing. For any thread,
 * at any time. ERR_ARG: it does not go to memory. */
static int event_output_take(struct event_output *o, void **bytes, size_t *n, struct error *e)
{
    if (!o || o->to.write != output_remember)
        return error_set(e, ERR_ARG, "this writer does not write to memory");
    pthread_mutex_lock(&o->mutex);
    *bytes = o->memory.data;
    *n = o->memory.length;
    o->memory = (struct buffer)BUFFER_EMPTY;
    pthread_mutex_unlock(&o->mutex);
    return OK;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static int output_check(const struct eventlog_output *to, const struct eventlog_writer_options *options,
                        struct error *e)
{
    if (to && !to->write)
        return error_set(e, ERR_ARG, "an output needs a function that writes");
    if (options->resume == EVENTLOG_RESUME_APPEND)
        return error_set(e, ERR_ARG, "a writer without a directory has no file to append to");
    if (options->leave_lost)
        return error_set(e, ERR_ARG, "leave_lost is for the files of a directory");
    if ((!to || !to->begin) && (options->rotate_bytes || options->rotate_seconds > 0))
        return error_set(e, ERR_ARG, "rotation needs a function that begins another object");
    return OK;
}

/* to: copied; NULL: memory. ERR_ARG: a function is missing, or an option makes no sense without a directory. On OK *out
 * is the caller's until event_output_free(). */
static int event_output_new(struct event_output **out, const struct eventlog_output *to,
                            const struct eventlog_writer_options *options, struct error *e)
{
    struct event_output *o;

    *out = NULL;
    if (output_check(to, options, e) != OK)
        return ERR_ARG;
    if (!(o = calloc(1, sizeof *o)))
        return error_memory(e, NULL, "for an output");
    o->io = (struct io){ .open = output_open,
                         .write = output_write,
                         .fsync = output_sync,
                         .ftruncate = output_truncate,
                         .rename = output_rename,
                         .unlink = output_unlink,
                         .close = output_close,
                         .context = o };
    o->to = to ? *to : (struct eventlog_output){ .context = o, .write = output_remember };
    o->pid = getpid();
    pthread_mutex_init(&o->mutex, NULL);
    *out = o;
    return OK;
}

static void event_output_free(struct event_output *o)
{
    if (!o)
        return;
    pthread_mutex_destroy(&o->mutex);
    buffer_release(&o->memory);
    free(o);
}

/* Outlives every file written with it; for one thread at a time. */
static const struct io *event_output_io(const struct event_output *o)
{
    return &o->io;
}

/* ---- event writer ------------------------------------------------------------------------------------------------ */

/*
 * A call encodes its event as a whole record at the place that the sink gives it. All state below is changed only
 * inside the sink, and `file` belongs to the sink as long as there is one.
 *
 * begin_event() finds room and decides about rotation, so that the file of the next event is known; end_event() passes
 * the event on. Values with metadata need to know the file: name and description go with the first value of a tag in
 * each file. Plugin and content go with every value: TensorBoard remembers them, but other readers look at each value
 * alone.
 */
enum { DEFAULT_BUFFER = 65536, LEAST_BUFFER = 64, FULL_BUFFERS = 16, TAGS_OF_SCALARS = 65536, VALUE_OVERHEAD = 64 };

/* The longest event; protobuf's own limit is 2 GiB. */
static const size_t EVENT_MAX = (size_t)1 << 30;
static const double ROTATION_RETRY = 10; /* seconds */

static const char SCALARS[] = "scalars";

struct eventlog_writer {
    struct event_file file;
    struct event_output *output; /* where `file` is made of; NULL: in a directory */
    struct event_sink *sink;
    struct tag_table tags; /* of all files; an entry's file is the number of the last one with its metadata */
    uint64_t number;       /* of the file that the next event goes to, from 1 */
    uint64_t rotate_bytes, file_bytes; /* file_bytes: the size of that file once all waiting events are written, */
    size_t first_bytes;                /* ... and how many of these are its first record */
    double rotate_seconds, file_since, rotate_after;
    uint64_t events, dropped, flushes;
    enum eventlog_sync sync;
    pid_t pid; /* the process that opened it: a forked child has a copy of the buffer and must not write it again */
    int exact_times; /* a wall time of 0 means 1970, not now */
    char *mark;      /* a byte that is 1 in that process and 0 in its children, or NULL if the kernel does not support
                 * that */
};

/* ---- processes --------------------------------------------------------------------------------------------------- */

/* A page that the kernel clears in a forked child tells them apart without a system call. */
static char *fork_mark(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *mark = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (mark == MAP_FAILED)
        return NULL;
    /* The kernel refuses an advice that it does not know; emulators such as qemu take any and ignore it. */
    if (madvise(mark, page, INT_MAX) == 0 || madvise(mark, page, MADV_WIPEONFORK) < 0) {
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
    return error_set(e, ERR_ARG, "this writer belongs to process %ld, which forked this one; open another",
                     (long)w->pid);
}

static int check_process(const struct eventlog_writer *w, struct error *e)
{
    return is_forked(w) ? refuse_forked(w, e) : OK;
}

static const char *path_of(const struct eventlog_writer *w)
{
    struct event_sink_state state;

    if (is_forked(w))
        return event_file_path(&w->file);
    w->sink->operations->enter(w->sink);
    w->sink->operations->state(w->sink, &state);
    w->sink->operations->leave(w->sink);
    return state.path;
}

/* ---- one event --------------------------------------------------------------------------------------------------- */

static int rotation_due(const struct eventlog_writer *w, size_t need)
{
    double now;

    if ((!w->rotate_bytes && !(w->rotate_seconds > 0)) || w->file_bytes <= w->first_bytes)
        return 0; /* a file has at least one event */
    if (w->rotate_bytes && w->file_bytes + need > w->rotate_bytes)
        return w->rotate_after == 0 || clock_monotonic() >= w->rotate_after;
    now = clock_monotonic();
    return w->rotate_seconds > 0 && now - w->file_since >= w->rotate_seconds && now >= w->rotate_after;
}

/* The next event goes to a new file; if that cannot be made, to the old one. */
static void rotate(struct eventlog_writer *w, struct error *e)
{
    double now = clock_monotonic();

    if (w->sink->operations->rotate(w->sink, e) != OK) {
        w->rotate_after = now + ROTATION_RETRY;
        return;
    }
    w->number++;
    w->file_bytes = w->first_bytes;
    w->file_since = now;
    w->rotate_after = 0;
}

/* Room for an event of up to need bytes. OK: the caller is inside the sink until end_event() or leave(); or an error or
 * EVENT_SINK_DROPPED: the event is not taken. An error of rotation is only noted in e: the event is taken. */
static int begin_event(struct eventlog_writer *w, size_t need, struct error *e)
{
    int rc = w->sink->operations->begin(w->sink, need, e);

    if (rc != OK) {
        w->dropped++;
        w->sink->operations->leave(w->sink);
        return rc;
    }
    if (w->sink->rotation_failed) {
        w->sink->rotation_failed = 0;
        w->rotate_after = clock_monotonic() + ROTATION_RETRY;
        w->file_bytes = w->rotate_bytes + w->first_bytes;
        w->file_since = -INFINITY;
    }
    if (rotation_due(w, need))
        rotate(w, e);
    return OK;
}

/* The n bytes at event_sink_place() are one record. */
static int end_event(struct eventlog_writer *w, size_t n, struct error *e)
{
    w->events++;
    w->file_bytes += n;
    return w->sink->operations->put(w->sink, n, e);
}

/* The tag is a scalar's or new. */
static int check_scalar_tag(struct eventlog_writer *w, const char *tag, size_t n, struct error *e)
{
    const struct tag_entry *known = tag_table_entry(&w->tags, tag, n);
    int rc;

    if (known && strcmp(known->plugin, SCALARS) != 0)
        return error_set(e, ERR_ARG, "tag '%.80s' belongs to %.40s in this run; a scalar under it would be hidden", tag,
                         known->plugin);
    if (known)
        return OK;
    if ((rc = event_writer_value_check_tag(tag, n, e)) == OK && w->tags.tags.count < TAGS_OF_SCALARS)
        tag_table_add(&w->tags, tag, SCALARS); /* without memory for it the next call comes here again */
    return rc;
}

/* ---- values with metadata ---------------------------------------------------------------------------------------- */

double event_writer_time(double wall_time)
{
    return wall_time == 0 ? clock_wall() : wall_time;
}

/* Encodes one event, whose fields after the step are `body`, at event_sink_place(). Returns its length. */
static size_t encode_event(struct eventlog_writer *w, const struct wire *head, const struct wire *body)
{
    size_t n = head->bytes.length + body->bytes.length;
    uint8_t *record = event_sink_place(w->sink);

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
    return buffer_ok(&head->bytes) ? OK : error_memory(e, NULL, "for an event");
}

static int check_call(const struct eventlog_writer *w, double wall_time, struct error *e)
{
    if (check_process(w, e) != OK)
        return ERR_ARG;
    if (!isfinite(wall_time))
        return error_set(e, ERR_ARG, "the wall time is not a finite number");
    return OK;
}

static int check_length(size_t n, struct error *e)
{
    return n <= EVENT_MAX ? OK : error_set(e, ERR_ARG, "an event of %zu bytes is longer than 1 GiB", n);
}

/* The return value of a call with result rc; if the event was refused, the error names the file. */
static int answer(struct eventlog_writer *w, int rc, int refused, struct error *e, struct eventlog_error *error)
{
    if (rc == OK || rc == EVENT_SINK_DROPPED)
        return EVENTLOG_OK;
    if (refused)
        error_prefix(e, "%s", path_of(w));
    return public_error(error, e);
}

/* ---- scalars ----------------------------------------------------------------------------------------------------- */

/* what became of an event that ended in an error */
enum fate { REFUSED, NO_ROOM, TAKEN };

/* One point of a scalar series. Only an error that REFUSED it needs the file's name yet. */
static int put_scalar(struct eventlog_writer *w, const char *tag, int64_t step, double wall_time, float value,
                      enum fate *fate, struct error *e)
{
    size_t n;
    int rc;

    *fate = REFUSED;
    if (!tag || !isfinite(wall_time))
        return error_set(e, ERR_ARG, "tag '%.80s' at step %lld: %s", tag ? tag : "", (long long)step,
                         tag ? "the wall time is not a finite number" : "no tag");
    if ((n = strlen(tag)) > (size_t)1 << 29)
        return error_set(e, ERR_ARG, "a tag of %zu bytes is too long", n);
    if ((rc = begin_event(w, n + EVENT_SCALAR_OVERHEAD, e)) != OK) {
        *fate = NO_ROOM;
        return rc;
    }
    if ((rc = check_scalar_tag(w, tag, n, e)) != OK) {
        w->sink->operations->leave(w->sink);
        return rc;
    }
    *fate = TAKEN;
    if (wall_time == 0 && !w->exact_times)
        wall_time = clock_wall();
    return end_event(w, event_encode_scalar(event_sink_place(w->sink), tag, n, step, wall_time, value), e);
}

int eventlog_writer_scalar(struct eventlog_writer *w, const char *tag, int64_t step, double wall_time, float value,
                           struct eventlog_error *error)
{
    enum fate fate = REFUSED;
    struct error e;
    int rc;

    e.code = OK;
    if ((rc = check_process(w, &e)) == OK)
        rc = put_scalar(w, tag, step, wall_time, value, &fate, &e);
    return rc == OK ? EVENTLOG_OK : answer(w, rc, fate == REFUSED, &e, error);
}

/* The points from *i on; *i: those that are done with. */
static int put_scalars(struct eventlog_writer *w, const char *const *tags, size_t tag_count,
                       const struct eventlog_scalar *points, size_t n, size_t *i, enum fate *fate, struct error *e)
{
    int rc = OK;

    while (rc == OK && *i < n) {
        const struct eventlog_scalar *p = &points[*i];

        rc = put_scalar(w, p->tag < tag_count ? tags[p->tag] : NULL, p->step, p->wall_time, (float)p->value, fate, e);
        if (rc == EVENT_SINK_DROPPED)
            rc = OK;
        *i += rc == OK || *fate == TAKEN;
    }
    return rc;
}

int eventlog_writer_scalars(struct eventlog_writer *w, const char *const *tags, size_t tag_count,
                            const struct eventlog_scalar *points, size_t n, size_t *accepted,
                            struct eventlog_error *error)
{
    enum fate fate = REFUSED;
    struct error e;
    size_t i = 0;
    int rc;

    e.code = OK;
    if ((rc = check_process(w, &e)) == OK)
        rc = put_scalars(w, tags, tag_count, points, n, &i, &fate, &e);
    if (accepted)
        *accepted = i;
    return rc == OK ? EVENTLOG_OK : answer(w, rc, fate == REFUSED, &e, error);
}

int eventlog_writer_scalars_once(struct eventlog_writer *w, const char *const *tags, size_t tag_count,
                                 const struct eventlog_scalar *points, size_t n, uint64_t first, uint64_t *done,
                                 struct eventlog_error *error)
{
    size_t i = *done <= first ? 0 : *done - first < n ? (size_t)(*done - first) : n;
    enum fate fate = REFUSED;
    struct error e;
    int rc;

    e.code = OK;
    if ((rc = check_process(w, &e)) == OK) {
        if (!w->output)
            w->sink->operations->hold(w->sink);
        rc = put_scalars(w, tags, tag_count, points, n, &i, &fate, &e);
        if (rc == ERR_ARG && fate == REFUSED)
            i++;
        if (first + i > *done)
            *done = first + i;
        if (!w->output)
            w->sink->operations->write_held(w->sink);
    }
    return rc == OK ? EVENTLOG_OK : answer(w, rc, fate == REFUSED, &e, error);
}

/* ---- events that are encoded already ----------------------------------------------------------------------------- */

/* Whether every reader accepts these bytes as an event. */
static int check_encoded(const uint8_t *bytes, size_t n, struct error *e)
{
    static const char *const faults[] = { [EVENT_NOT_PROTOBUF] = "it is not a serialized message",
                                          [EVENT_STRAY_GROUP_END] = "a group ends that did not begin",
                                          [EVENT_OTHER_WIRE_TYPE] = "a field is of another type",
                                          [EVENT_NOT_UTF8] = "a text is not UTF-8" };
    struct event event;
    size_t place = 0;
    enum event_fault fault = event_wire_check(bytes, n, &place);

    if (fault == EVENT_SOUND && event_decode(bytes, n, &event, &place) != OK)
        fault = EVENT_NOT_PROTOBUF;
    if (fault != EVENT_SOUND)
        return error_set(e, ERR_ARG, "the event of %zu bytes is not a tensorboard.Event: at byte %zu %s", n, place,
                         faults[fault]);
    if (!isfinite(event.wall_time))
        return error_set(e, ERR_ARG, "the wall time of the event is not a finite number");
    return OK;
}

int eventlog_writer_event(struct eventlog_writer *w, const void *event, size_t n, struct eventlog_error *error)
{
    struct error e;
    int rc, refused;

    e.code = OK;
    if ((rc = check_process(w, &e)) == OK && (rc = check_length(n, &e)) == OK)
        rc = check_encoded(event, n, &e);
    refused = rc != OK;
    if (rc == OK && (rc = begin_event(w, n + RECORD_OVERHEAD, &e)) == OK) {
        memcpy(event_sink_place(w->sink) + RECORD_HEADER, event, n);
        record_seal(event_sink_place(w->sink), n);
        rc = end_event(w, n + RECORD_OVERHEAD, &e);
    }
    return rc == OK ? EVENTLOG_OK : answer(w, rc, refused, &e, error);
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

/* Between begin_event() and end_event(): encodes the value's event, with the metadata of the first value of its tag in
 * the file or of a later one. *refused: it is not taken. */
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
        rc = error_set(&own, ERR_ARG,
                       "tag '%.80s' belongs to %.40s in this run; a value of %.40s under it would be hidden", v->tag,
                       known->plugin, v->plugin);
    else
        rc = event_writer_value_encode(&body, v, member, fresh ? first : later, &own);
    if (rc != OK) {
        *e = own;
        *refused = 1;
        w->sink->operations->leave(w->sink);
    } else {
        n = encode_event(w, head, &body);
        /* Without memory for the tag its next value has name and description again, which readers do not mind. */
        if (!known)
            known = tag_table_add(&w->tags, v->tag, v->plugin);
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
    if (rc == OK && (rc = check_call(w, value->wall_time, e)) == OK &&
        (rc = event_writer_value_check(value, e)) == OK &&
        (rc = encode_head(w, &head, value->step, value->wall_time, e)) == OK) {
        event_writer_value_metadata(&first, value, options->display_name, options->description);
        if (described)
            event_writer_value_metadata(&later, value, NULL, NULL);
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

int event_writer_check_directory(const struct eventlog_writer *w, struct error *e)
{
    if (w->output)
        return error_set(e, ERR_ARG, "this writer has no directory to put other files into");
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

/* how: as of the sink. */
static int flush(struct eventlog_writer *w, int how, struct eventlog_error *error)
{
    struct event_sink *sink = w->sink;
    struct error e = { 0 };
    int rc = check_process(w, &e);

    if (rc != OK) {
        error_prefix(&e, "%s", path_of(w));
    } else {
        sink->operations->enter(sink);
        w->flushes += !(how & EVENT_SINK_MAKE_AGAIN);
        sink->operations->leave(sink);
        rc = sink->operations->flush(sink, how, &e);
    }
    return rc == OK ? EVENTLOG_OK : public_error(error, &e);
}

int eventlog_writer_flush(struct eventlog_writer *w, struct eventlog_error *error)
{
    return flush(w, w->sync == EVENTLOG_SYNC_AT_FLUSH ? EVENT_SINK_SYNC : 0, error);
}

int eventlog_writer_sync(struct eventlog_writer *w, struct eventlog_error *error)
{
    return flush(w, EVENT_SINK_SYNC, error);
}

int eventlog_writer_make_again(struct eventlog_writer *w, struct eventlog_error *error)
{
    return flush(w, EVENT_SINK_MAKE_AGAIN, error);
}

const char *eventlog_writer_path(const struct eventlog_writer *w)
{
    return path_of(w);
}

int eventlog_writer_statistics(struct eventlog_writer *w, struct eventlog_writer_statistics *s,
                               struct eventlog_error *error)
{
    struct event_sink_state state;
    struct error e = { 0 };

    memset(s, 0, sizeof *s);
    if (check_process(w, &e) != OK) {
        error_prefix(&e, "%s", path_of(w));
        return public_error(error, &e);
    }
    w->sink->operations->enter(w->sink);
    w->sink->operations->state(w->sink, &state);
    s->events = w->events;
    s->dropped = w->dropped;
    s->flushes = w->flushes;
    w->sink->operations->leave(w->sink);
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

int eventlog_writer_take(struct eventlog_writer *w, void **bytes, size_t *n, struct eventlog_error *error)
{
    struct error e = { 0 };

    int rc;

    *bytes = NULL;
    *n = 0;
    if ((rc = flush(w, 0, error)) != EVENTLOG_OK)
        return rc;
    rc = event_output_take(w->output, bytes, n, &e);
    return rc == OK ? EVENTLOG_OK : public_error(error, &e);
}

static void writer_release(struct eventlog_writer *w)
{
    event_output_free(w->output);
    if (w->mark)
        munmap(w->mark, (size_t)sysconf(_SC_PAGESIZE));
    tag_table_release(&w->tags);
    free(w);
}

static int close_forked(struct eventlog_writer *w, struct eventlog_error *error)
{
    struct error e = { 0 };

    refuse_forked(w, &e);
    error_prefix(&e, "%s", path_of(w));
    if (w->sink->operations->abandon(w->sink))
        writer_release(w);
    return public_error(error, &e);
}

/* At the end: reports lost events that the error of rc does not mention; waiting: how many were still in memory. */
static int tell_lost(struct eventlog_writer *w, uint64_t waiting, int rc, struct error *e)
{
    const unsigned long long lost = waiting + event_file_lost(&w->file);

    if (!lost)
        return rc == OK ? event_file_notice(&w->file, e) : rc;
    if (rc != OK)
        return error_prefix(e, waiting ? "the last %llu events are lost" : "%llu events are lost", lost);
    return error_set(e, ERR_IO, "%s: %llu events are lost with the files that are gone", event_file_path(&w->file),
                     lost);
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
    rc = w->sink->operations->stop(w->sink, &waiting, &e);
    if (event_file_keep(&w->file, 1, &own) != OK && rc == OK) { /* with what was just written */
        rc = own.code;
        e = own;
    }
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

/* directory: NULL if io is that of an output. */
static int start(struct eventlog_writer *w, const char *directory, const struct eventlog_writer_options *o,
                 const struct io *io, struct error *e)
{
    const size_t buffer = o->buffer_bytes ? o->buffer_bytes : DEFAULT_BUFFER;
    struct event_sink_options sink = { .batch = buffer < LEAST_BUFFER ? LEAST_BUFFER : buffer,
                                       .flush_seconds = o->flush_seconds > 0 ? o->flush_seconds : 2,
                                       .drop = o->when_full == EVENTLOG_WHEN_FULL_DROP };
    int rc;

    w->rotate_bytes = o->rotate_bytes;
    w->rotate_seconds = o->rotate_seconds;
    w->sync = o->sync;
    w->number = 1;
    if ((rc = open_file(w, directory, o, io, e)) != OK)
        return rc;
    w->file.leave_lost = o->leave_lost != 0;
    w->file.sync = o->sync;
    w->file.sync_seconds = o->sync_seconds;
    w->file_bytes = w->file.size;
    w->first_bytes = w->file.first;
    w->file_since = clock_monotonic();
    if (o->queue_bytes) {
        sink.bytes = o->queue_bytes < sink.batch ? sink.batch : o->queue_bytes;
        if (sink.batch > sink.bytes / 2)
            sink.batch = sink.bytes / 2;
        rc = event_queue_start(&w->sink, &w->file, &sink, e);
    } else {
        sink.bytes = sink.batch * FULL_BUFFERS;
        rc = event_direct_start(&w->sink, &w->file, &sink, e);
    }
    if (rc != OK && o->resume == EVENTLOG_RESUME_APPEND)
        event_file_close(&w->file, NULL);
    else if (rc != OK)
        event_file_remove(&w->file);
    return rc;
}

static struct eventlog_writer *writer_new(struct error *e)
{
    struct eventlog_writer *w = calloc(1, sizeof *w);

    if (!w) {
        error_memory(e, NULL, "for an event writer");
        return NULL;
    }
    w->tags = (struct tag_table)TAG_TABLE_EMPTY;
    w->pid = getpid();
    w->mark = fork_mark();
    return w;
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
    if (!directory || !*directory) {
        error_set(&e, ERR_ARG, "an event writer needs a directory");
        return public_error(error, &e);
    }
    if (event_writer_check_options(&o, &e) != OK || file_make_directories(directory, &e) != OK || !(w = writer_new(&e)))
        return public_error(error, &e);
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

/* to: NULL: memory. */
static int open_output(struct eventlog_writer **out, const struct eventlog_output *to,
                       const struct eventlog_writer_options *options, struct eventlog_error *error)
{
    struct eventlog_writer_options o = { 0 };
    struct eventlog_writer *w;
    struct error e = { 0 };

    *out = NULL;
    if (options)
        o = *options;
    if (event_writer_check_options(&o, &e) != OK || !(w = writer_new(&e)))
        return public_error(error, &e);
    if (event_output_new(&w->output, to, &o, &e) != OK || start(w, NULL, &o, event_output_io(w->output), &e) != OK) {
        writer_release(w);
        return public_error(error, &e);
    }
    *out = w;
    return EVENTLOG_OK;
}

int eventlog_writer_open_output(struct eventlog_writer **out, const struct eventlog_output *output,
                                const struct eventlog_writer_options *options, struct eventlog_error *error)
{
    struct error e = { 0 };

    if (output)
        return open_output(out, output, options, error);
    *out = NULL;
    error_set(&e, ERR_ARG, "an event writer needs a directory, an output or memory");
    return public_error(error, &e);
}

int eventlog_writer_open_memory(struct eventlog_writer **out, const struct eventlog_writer_options *options,
                                struct eventlog_error *error)
{
    return open_output(out, NULL, options, error);
}
