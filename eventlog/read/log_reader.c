/*
 * The reader of eventlog.h: reads the files of the runs in rounds with log_follow.h, and lists the directory again
 * before each round but the first. Each run keeps a scalar_run without points, which knows from its first value what
 * each series is; therefore values that nobody asked for go through it too.
 */
#include "eventlog/eventlog.h"

#include "base/array.h"
#include "base/buffer.h"
#include "eventlog/format/value_content.h"
#include "eventlog/format/wire.h"
#include "eventlog/public.h"
#include "eventlog/read/log_filter.h"
#include "eventlog/read/log_follow.h"
#include "eventlog/read/log_series.h"
#include "eventlog/read/log_watch.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKS = 4, CONTENT_MAX = 256 << 20 };

/* what is known of a run */
struct log_place {
    struct scalar_run scalars;
    struct log_series **series; /* by scalar_series.number */
    size_t series_count;
};

struct eventlog_reader {
    char *path;
    struct log_input input;
    struct log_filter filter;
    struct log_follow follow;
    struct log_place *runs; /* by their numbers in scalars */
    size_t run_count;
    int at_end;
    struct log_watch watch;
    struct event decoded;
    struct event_values values;
    int walking, found; /* values are left to walk; the next one is in `value` already */
    int failed;         /* out of memory while looking for a value: the next call of eventlog_reader_next() reports
                             * it */
    struct eventlog_event event;
    struct eventlog_damage damage;
    char damage_text[200];
    struct eventlog_value value;
    struct buffer content, spans;
    int64_t shape[TENSOR_RANK];
};

_Static_assert((int)EVENTLOG_EVENT_FILE_VERSION == (int)EVENT_FILE_VERSION &&
                   (int)EVENTLOG_EVENT_META_GRAPH == (int)EVENT_META_GRAPH &&
                   (int)EVENTLOG_STORED_SIMPLE_VALUE == (int)EVENT_VALUE_SIMPLE &&
                   (int)EVENTLOG_STORED_TENSOR == (int)EVENT_VALUE_TENSOR,
               "both count as TensorBoard's messages do");

/* ---- runs and files -------------------------------------------------------------------------------------------- */

static void forget_series(struct log_place *run)
{
    for (size_t i = 0; i < run->series_count; i++)
        log_series_free(run->series[i]);
    free(run->series);
    run->series = NULL;
    run->series_count = 0;
    scalar_run_restart(&run->scalars);
}

/* Makes room for `count` runs. */
static int make_places(struct eventlog_reader *r, size_t count, struct error *e)
{
    struct log_place *runs = count > r->run_count ? realloc(r->runs, count * sizeof *runs) : r->runs;

    if (count && !runs)
        return error_memory(e, r->path, "for %zu runs", count);
    r->runs = runs;
    for (; r->run_count < count; r->run_count++) {
        runs[r->run_count] = (struct log_place){ .series = NULL };
        scalar_run_init(&runs[r->run_count].scalars, EVENTLOG_VIEW_ALL, 0, 0);
    }
    return OK;
}

static int run_wanted(void *context, const char *run)
{
    return log_filter_run(context, run);
}

/* Lists the path, and lists it again if a directory was not watched yet: its newest files may have come before the
 * watch. */
static int look(struct eventlog_reader *r, int first, struct error *e)
{
    int again = 1, rc = OK;

    log_watch_drain(&r->watch);
    for (int i = 0; again && i < LOOKS && rc == OK; i++) {
        struct log_directory d;

        again = 0;
        rc = first ? log_directory_list(&d, &r->input, &r->path, 1, e)
                   : log_directory_list_there(&d, &r->input, &r->path, 1, e); /* what is gone may come back */
        if (rc == OK && (rc = make_places(r, r->follow.count + d.count, e)) == OK)
            rc = log_follow_list(&r->follow, &d, e);
        for (size_t k = 0; rc == OK && r->watch.fd >= 0 && k < d.directory_count; k++)
            again |= log_watch_directory(&r->watch, d.directories[k].path);
        log_directory_release(&d);
    }
    return rc;
}

int eventlog_reader_open(struct eventlog_reader **out, const char *path, const struct eventlog_reader_options *options,
                         struct eventlog_error *error)
{
    static const struct log_watch no_watch = LOG_WATCH_NONE;
    struct eventlog_reader *r = calloc(1, sizeof *r);
    struct error e = { 0 };
    int rc;

    *out = NULL;
    if (!r) {
        error_memory(&e, path, "for reading");
        return public_error(error, &e);
    }
    r->watch = no_watch;
    rc = log_filter_init(&r->filter, options, &e);
    r->follow = (struct log_follow){ .input = &r->input,
                                     .wanted = run_wanted,
                                     .context = &r->filter,
                                     .records_only = r->filter.records_only,
                                     .whole_runs = 1,
                                     .forgets = 1 };
    if (rc == OK && !(r->path = strdup(path)))
        rc = error_memory(&e, path, "for reading");
    if (rc == OK)
        rc = look(r, 1, &e);
    if (rc != OK) {
        eventlog_reader_close(r);
        return public_error(error, &e);
    }
    *out = r;
    return EVENTLOG_OK;
}

void eventlog_reader_close(struct eventlog_reader *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->run_count; i++)
        forget_series(&r->runs[i]);
    log_follow_release(&r->follow);
    log_watch_close(&r->watch);
    log_filter_release(&r->filter);
    log_input_release(&r->input);
    buffer_release(&r->content);
    buffer_release(&r->spans);
    free(r->runs);
    free(r->path);
    free(r);
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

static const struct log_follow_run *run_at_hand(const struct eventlog_reader *r)
{
    return &r->follow.runs[r->follow.at_run];
}

static struct log_series *series_of(struct eventlog_reader *r, const struct scalar_series *s)
{
    struct log_place *run = &r->runs[r->follow.at_run];

    if (!ARRAY_ROOM_ZERO(run->series, run->series_count, s->number + 1))
        return NULL;
    if (!run->series[s->number])
        run->series[s->number] = log_series_new(run_at_hand(r)->name, s, log_filter_tag(&r->filter, s->tag));
    return run->series[s->number];
}

/* Walks to the next value that is wanted, and puts it into r->value. 1, or 0: no more, or no memory (r->failed). */
static int find_value(struct eventlog_reader *r)
{
    const struct event_value *v;

    while (r->walking && (v = event_values_next(&r->values))) {
        struct scalar_series *s;
        struct eventlog_point point;
        struct log_series *series;
        unsigned from;
        int rc = scalar_run_value(&r->runs[r->follow.at_run].scalars, &r->decoded, v, &point, &s, &from, NULL);

        if (rc < 0 || !(series = series_of(r, s))) {
            r->failed = 1;
            break;
        }
        if (!series->wanted || !log_filter_step(&r->filter, r->decoded.step) || (r->filter.numbers_only && rc != 1))
            continue;
        r->value = (struct eventlog_value){
            .series = &series->shown,
            .kind = log_series_kind(v, series->shown.plugin, rc == 1),
            .step = r->decoded.step,
            .wall_time = r->decoded.wall_time,
            .number = rc == 1 ? point.value : 0,
            .stored = (enum eventlog_stored)v->kind,
            .dtype = v->kind == EVENT_VALUE_SIMPLE ? EVENTLOG_DTYPE_FLOAT : v->dtype,
            .data = v->bytes,
            .length = v->length,
        };
        return 1;
    }
    r->walking = 0;
    return 0;
}

const struct eventlog_value *eventlog_reader_value(struct eventlog_reader *r)
{
    if (r->found)
        r->found = 0;
    else if (!find_value(r))
        r->value.data = NULL;
    return r->value.data ? &r->value : NULL;
}

/* ---- events ---------------------------------------------------------------------------------------------------- */

/* The last member of the event's oneof: r->event.what is its number. */
static void find_payload(struct eventlog_reader *r)
{
    const uint8_t *p = r->event.data, *end = p + r->event.length;
    struct wire_field f;

    while (wire_take(&p, end, &f) == 1)
        if (f.number == (uint64_t)r->event.what && f.type == WIRE_BYTES) {
            r->event.payload = f.bytes;
            r->event.payload_length = f.length;
        }
}

/* Takes an event of log_follow_next(). 1: it is wanted, 0: not. */
static int take_event(struct eventlog_reader *r, const struct log_follow_file *file)
{
    int all = log_filter_all_values(&r->filter);

    r->event.data = event_reader_record(file->reader, &r->event.length, &r->event.offset);
    if (r->filter.records_only) {
        r->event.what = EVENTLOG_EVENT_RECORD;
        return 1;
    }
    r->event.what = (enum eventlog_what)r->decoded.what;
    r->event.step = r->decoded.step;
    r->event.wall_time = r->decoded.wall_time;
    if (r->decoded.what == EVENT_SUMMARY) {
        event_values_init(&r->values, &r->decoded);
        r->walking = 1;
        return all || (r->found = find_value(r));
    }
    if (all)
        find_payload(r);
    return all;
}

static int tell_damage(struct eventlog_reader *r, const struct event_damage *d)
{
    event_damage_text(d, r->damage_text, sizeof r->damage_text);
    r->damage = (struct eventlog_damage){ d->kind, d->offset, d->found, d->wanted, r->damage_text };
    return EVENTLOG_READ_DAMAGE;
}

static int tell_infinite(struct eventlog_reader *r, struct log_follow_file *file)
{
    file->infinite++;
    while (find_value(r))
        ;
    r->found = 0;
    r->value.data = NULL;
    strcpy(r->damage_text, "the event's wall time is infinite; event skipped");
    r->damage = (struct eventlog_damage){ EVENTLOG_DAMAGE_WALL_TIME, r->event.offset, 0, 0, r->damage_text };
    return EVENTLOG_READ_DAMAGE;
}

/* Turns a result of log_follow_next() into an enum eventlog_read; EVENTLOG_READ_END if it is not wanted. */
static int reader_take(struct eventlog_reader *r, int found, const struct event_damage *damage, struct error *e)
{
    const struct log_follow_run *run = run_at_hand(r);
    struct log_follow_file *file = r->follow.at_file < run->count ? &run->files[r->follow.at_file] : NULL;

    memset(&r->event, 0, sizeof r->event);
    r->event.run = run->name;
    r->event.file = file ? file->path : "";
    switch (found) {
    case EVENTLOG_READ_EVENT:
        if (!take_event(r, file))
            return EVENTLOG_READ_END;
        return !r->filter.records_only && isinf(r->decoded.wall_time) ? tell_infinite(r, file) : EVENTLOG_READ_EVENT;
    case EVENTLOG_READ_DAMAGE: return tell_damage(r, damage);
    case EVENTLOG_READ_RESTARTED: forget_series(&r->runs[r->follow.at_run]); return EVENTLOG_READ_RESTARTED;
    case LOG_FOLLOW_FILE_END: return EVENTLOG_READ_END;
    default: return log_input_gone(file->path, e) ? EVENTLOG_READ_END : found;
    }
}

static int out_of_memory(struct eventlog_reader *r, struct eventlog_error *error)
{
    struct error e = { 0 };

    r->failed = 0;
    error_memory(&e, r->path, "for a series");
    return public_error(error, &e);
}

int eventlog_reader_next(struct eventlog_reader *r, struct eventlog_error *error)
{
    struct event_damage damage;
    struct error e = { 0 };
    int rc;

    while (find_value(r)) /* even values that nobody asked for tell what their series are */
        ;
    r->found = 0;
    r->value.data = NULL;
    if (r->failed)
        return out_of_memory(r, error);
    if (r->at_end) {
        r->at_end = 0;
        if (look(r, 0, &e) != OK)
            return public_error(error, &e);
    }
    while ((rc = log_follow_next(&r->follow, &r->decoded, &damage, &e)) != LOG_FOLLOW_END) {
        rc = reader_take(r, rc, &damage, &e);
        if (r->failed)
            return out_of_memory(r, error);
        if (rc != EVENTLOG_READ_END)
            return rc < 0 ? public_error(error, &e) : rc;
    }
    r->at_end = 1;
    return EVENTLOG_READ_END;
}

const struct eventlog_event *eventlog_reader_event(const struct eventlog_reader *r)
{
    return &r->event;
}

const struct eventlog_damage *eventlog_reader_damage(const struct eventlog_reader *r)
{
    return &r->damage;
}

struct eventlog_reader_totals eventlog_reader_totals(const struct eventlog_reader *r)
{
    struct eventlog_reader_totals t = { 0 };

    for (size_t i = 0; i < r->follow.count; i++) {
        const struct log_follow_run *run = &r->follow.runs[i];

        t.runs += run->count > 0;
        t.files += run->count;
        for (size_t k = 0; k < run->count; k++) {
            const struct log_follow_file *file = &run->files[k];
            struct event_reader_state state;

            if (!file->reader)
                continue;
            state = event_reader_state(file->reader);
            t.records += state.records - file->infinite;
            t.damaged += state.damaged + file->infinite;
            t.lost += state.lost;
            t.unfinished += state.offset != state.size;
        }
    }
    return t;
}

/* ---- waiting --------------------------------------------------------------------------------------------------- */

int eventlog_reader_descriptor(struct eventlog_reader *r)
{
    if (r->watch.fd < 0) {
        log_watch_open(&r->watch);
        if (r->watch.fd >= 0)
            look(r, 0, NULL); /* watches; what it finds new is read in the next round */
    }
    return r->watch.fd;
}

int eventlog_reader_wait(struct eventlog_reader *r, double seconds, struct eventlog_error *error)
{
    int fresh = r->watch.fd < 0, rc;
    struct pollfd p = { eventlog_reader_descriptor(r), POLLIN, 0 };
    struct error e = { 0 };

    if (fresh && p.fd >= 0)
        return 1; /* what came before the watches must be read first */
    seconds = seconds > 0 ? seconds : 0;
    rc = poll(&p, p.fd >= 0, seconds > 2e6 ? 2000000000 : (int)(seconds * 1000));
    if (rc < 0) {
        error_system(&e, "%s: waiting for changes", r->path);
        return public_error(error, &e);
    }
    return rc > 0 || p.fd < 0;
}

/* ---- what a value holds ---------------------------------------------------------------------------------------- */

static int refuse(struct eventlog_reader *r, int code, const char *what, struct eventlog_error *error)
{
    struct error e = { 0 };

    if (r->value.data)
        error_set(&e, code, "%s:%llu: tag %s: %s", r->event.file, (unsigned long long)r->event.offset,
                  r->value.series->tag, what);
    else
        error_set(&e, ERR_ARG, "%s: there is no current value", r->path);
    return public_error(error, &e);
}

/* The strings of a tensor, as struct eventlog_bytes in r->spans. */
static int gather_strings(struct eventlog_reader *r, const struct tensor_content *t)
{
    struct span text;

    for (size_t at = 0; tensor_content_string(t, &at, &text);) {
        struct eventlog_bytes one = { text.bytes, text.length };

        buffer_append(&r->spans, &one, sizeof one);
    }
    return buffer_ok(&r->spans);
}

int eventlog_reader_tensor(struct eventlog_reader *r, struct eventlog_tensor *out, struct eventlog_error *error)
{
    struct tensor_content t;

    memset(out, 0, sizeof *out);
    buffer_clear(&r->content);
    buffer_clear(&r->spans);
    if (!r->value.data || r->value.stored != EVENTLOG_STORED_TENSOR ||
        !tensor_content_read(&t, r->value.data, r->value.length))
        return refuse(r, ERR_ARG, "not a tensor", error);
    if (t.rank > TENSOR_RANK)
        return refuse(r, ERR_CORRUPT, "a tensor of more than 8 dimensions", error);
    memcpy(r->shape, t.shape, sizeof r->shape);
    out->dtype = t.dtype;
    out->rank = (size_t)t.rank;
    out->shape = r->shape;
    out->elements = (size_t)t.elements;
    if (t.dtype == EVENT_STRING) {
        if (!gather_strings(r, &t))
            return refuse(r, ERR_NOMEM, "no memory for its strings", error);
        out->strings = (const struct eventlog_bytes *)(const void *)r->spans.data;
        out->string_count = r->spans.length / sizeof *out->strings;
        return out->string_count == t.elements
                   ? EVENTLOG_OK
                   : refuse(r, ERR_CORRUPT, "the number of strings does not match its shape", error);
    }
    if (!tensor_content_bytes(&t, CONTENT_MAX, &r->content))
        return buffer_ok(&r->content)
                   ? refuse(r, ERR_CORRUPT,
                            "the number of values does not match its shape, or they take more than 256 MiB", error)
                   : refuse(r, ERR_NOMEM, "no memory for its values", error);
    out->data = buffer_text(&r->content);
    out->bytes = r->content.length;
    return EVENTLOG_OK;
}

int eventlog_reader_histogram(struct eventlog_reader *r, const struct eventlog_bucket **buckets, size_t *count,
                              struct eventlog_error *error)
{
    _Static_assert(sizeof(struct eventlog_bucket) == sizeof(struct histogram_row), "a row is a bucket");

    *buckets = NULL;
    *count = 0;
    buffer_clear(&r->content);
    if (!r->value.data || r->value.kind != EVENTLOG_KIND_HISTOGRAM)
        return refuse(r, ERR_ARG, "not a histogram", error);
    if (!histogram_content_rows(r->value.data, r->value.length, &r->content, count))
        return buffer_ok(&r->content) ? refuse(r, ERR_CORRUPT, "a histogram that is not (buckets, 3) numbers", error)
                                      : refuse(r, ERR_NOMEM, "no memory for its buckets", error);
    *buckets = (const struct eventlog_bucket *)(const void *)r->content.data;
    return EVENTLOG_OK;
}

int eventlog_reader_blobs(struct eventlog_reader *r, struct eventlog_blobs *out, struct eventlog_error *error)
{
    const struct eventlog_value *v = &r->value;
    struct eventlog_bytes *items;
    struct tensor_content t;
    struct span file;

    memset(out, 0, sizeof *out);
    buffer_clear(&r->spans);
    if (v->data && (v->stored == EVENTLOG_STORED_IMAGE
                        ? image_content_read(v->data, v->length, &file)
                        : v->stored == EVENTLOG_STORED_AUDIO && audio_content_read(v->data, v->length, &file))) {
        buffer_append(&r->spans, &(struct eventlog_bytes){ file.bytes, file.length }, sizeof(struct eventlog_bytes));
        if (v->stored == EVENTLOG_STORED_IMAGE)
            image_content_size(v->data, v->length, &out->width, &out->height);
    } else if (v->data && v->stored == EVENTLOG_STORED_TENSOR && v->dtype == EVENT_STRING &&
               tensor_content_read(&t, v->data, v->length)) {
        gather_strings(r, &t);
    } else {
        return refuse(r, ERR_ARG, "not images, audio or texts", error);
    }
    if (!buffer_ok(&r->spans))
        return refuse(r, ERR_NOMEM, "no memory for its parts", error);
    items = (struct eventlog_bytes *)(void *)r->spans.data;
    out->items = items;
    out->count = r->spans.length / sizeof *items;
    if (v->stored != EVENTLOG_STORED_TENSOR)
        return EVENTLOG_OK;
    if (v->kind == EVENTLOG_KIND_IMAGE && out->count >= 2) { /* width, height, then the files */
        image_content_size(v->data, v->length, &out->width, &out->height);
        out->items += 2;
        out->count -= 2;
    } else if (v->kind == EVENTLOG_KIND_AUDIO && t.rank == 2 && t.shape[1] == 2) { /* clips and their labels in turn */
        out->count = (out->count + 1) / 2;
        for (size_t i = 0; i < out->count; i++)
            items[i] = items[2 * i];
    }
    return EVENTLOG_OK;
}
