#include "eventlog/server/data_answer.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "eventlog/format/wire.h"
#include "eventlog/server/blob_key.h"
#include "eventlog/server/store/series_sample.h"
#include "eventlog/server/store/snapshot.h"
#include "eventlog/server/store/utf8_text.h"
#include "eventlog/server/store/value_form.h"
#include "eventlog/server/value_source.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- data request ------------------------------------------------------------------------------------------------ */

#define SERVICE "/tensorboard.data.TensorBoardDataProvider/"

/* fields of the requests of lists and series */
enum { EXPERIMENT = 1, PLUGIN_FILTER, RUN_TAG_FILTER, DOWNSAMPLE, FILTER_RUNS = 1, FILTER_TAGS };

static const char *const methods[DATA_METHODS] = {
    [DATA_GET_EXPERIMENT] = "GetExperiment", [DATA_LIST_PLUGINS] = "ListPlugins",
    [DATA_LIST_RUNS] = "ListRuns",           [DATA_LIST_SCALARS] = "ListScalars",
    [DATA_READ_SCALARS] = "ReadScalars",     [DATA_LIST_TENSORS] = "ListTensors",
    [DATA_READ_TENSORS] = "ReadTensors",     [DATA_LIST_BLOBS] = "ListBlobSequences",
    [DATA_READ_BLOBS] = "ReadBlobSequences", [DATA_READ_BLOB] = "ReadBlob",
};

enum data_method data_request_method(const char *path, size_t n)
{
    const char *end = n ? memchr(path, '?', n) : NULL;
    size_t head = strlen(SERVICE);

    n = end ? (size_t)(end - path) : n;
    if (n > head && !memcmp(path, SERVICE, head))
        for (int i = 0; i < DATA_METHODS; i++)
            if (n - head == strlen(methods[i]) && !memcmp(path + head, methods[i], n - head))
                return (enum data_method)i;
    return DATA_METHODS;
}

static int corrupt(struct error *e, const char *what)
{
    return error_set(e, ERR_CORRUPT, "failed to decode Protobuf message: %s", what);
}

static int set_text(struct span *out, const struct wire_field *f, struct error *e)
{
    if (f->type != WIRE_BYTES)
        return OK;
    if (!utf8_valid(f->bytes, f->length, NULL))
        return corrupt(e, "a string is not UTF-8");
    *out = (struct span){ f->bytes, f->length };
    return OK;
}

/* Calls each() for every field of a message. */
static int fields(void *context, const uint8_t *p, size_t n,
                  int (*each)(void *context, const struct wire_field *f, struct error *e), struct error *e)
{
    const uint8_t *end = p + n;
    struct wire_field f;
    int rc = OK;

    while (rc == OK && p < end)
        rc = wire_take(&p, end, &f) == 1 ? each(context, &f, e) : corrupt(e, "a field is cut off or malformed");
    return rc;
}

static int plugin_field(void *context, const struct wire_field *f, struct error *e)
{
    struct data_request *r = context;

    return f->number == 1 ? set_text(&r->plugin, f, e) : OK;
}

static int name_field(void *context, const struct wire_field *f, struct error *e)
{
    struct data_names *names = context;
    struct span name;
    int rc;

    if (f->number != 1 || f->type != WIRE_BYTES)
        return OK;
    if ((rc = set_text(&name, f, e)) != OK)
        return rc;
    if (!ARRAY_ROOM(names->names, names->capacity, names->count + 1))
        return error_memory(e, NULL, "for %zu names", names->count + 1);
    names->names[names->count++] = name;
    return OK;
}

static int filter_field(void *context, const struct wire_field *f, struct error *e)
{
    struct data_request *r = context;
    struct data_names *names = f->number == FILTER_RUNS ? &r->runs : &r->tags;

    if ((f->number != FILTER_RUNS && f->number != FILTER_TAGS) || f->type != WIRE_BYTES)
        return OK;
    names->given = 1;
    return fields(names, f->bytes, f->length, name_field, e);
}

static int limit_field(void *context, const struct wire_field *f, struct error *e)
{
    struct data_request *r = context;

    (void)e;
    if (f->number == 1 && f->type == WIRE_VARINT)
        r->limit = (int64_t)f->integer;
    return OK;
}

static int request_field(void *context, const struct wire_field *f, struct error *e)
{
    struct data_request *r = context;

    if (f->number == EXPERIMENT)
        return set_text(r->method == DATA_READ_BLOB ? &r->blob_key : &r->experiment, f, e);
    if (f->type != WIRE_BYTES || r->method < DATA_LIST_SCALARS || r->method > DATA_READ_BLOBS)
        return OK;
    switch (f->number) {
    case PLUGIN_FILTER: return fields(r, f->bytes, f->length, plugin_field, e);
    case RUN_TAG_FILTER: return fields(r, f->bytes, f->length, filter_field, e);
    case DOWNSAMPLE: r->has_limit = 1; return fields(r, f->bytes, f->length, limit_field, e);
    default: return OK;
    }
}

static int by_bytes(const void *a, const void *b)
{
    const struct span *x = a, *y = b;

    return bytes_compare(x->bytes, x->length, y->bytes, y->length);
}

static void sort_names(struct data_names *n)
{
    size_t count = 0;

    if (!n->count)
        return;
    qsort(n->names, n->count, sizeof *n->names, by_bytes);
    for (size_t i = 0; i < n->count; i++)
        if (!i || by_bytes(&n->names[i], &n->names[count - 1]) != 0)
            n->names[count++] = n->names[i];
    n->count = count;
}

int data_request_read(struct data_request *r, enum data_method method, const uint8_t *bytes, size_t n, struct error *e)
{
    static const uint8_t none[1];
    int rc;

    *r = (struct data_request){ .method = method };
    r->experiment = r->plugin = r->blob_key = (struct span){ none, 0 };
    rc = fields(r, n ? bytes : none, n, request_field, e);
    if (rc != OK) {
        data_request_release(r);
        return rc;
    }
    sort_names(&r->runs);
    sort_names(&r->tags);
    return OK;
}

void data_request_release(struct data_request *r)
{
    free(r->runs.names);
    free(r->tags.names);
    r->runs = r->tags = (struct data_names){ 0 };
}

/* ---- data answer ------------------------------------------------------------------------------------------------- */

/* ---- data series ------------------------------------------------------------------------------------------------- */

/*
 * One series in an answer: what it is (its last step, its metadata), or its points, thinned if there
 * are more than were asked for. One thread at a time; the views may be those of others, too.
 */

/* Nothing is appended to a longer message. */
enum { DATA_SERIES_FULL = 300 << 20 };

/* the members up to limit are set by the caller; the rest is zero at first */
struct data_series {
    struct value_source *values;
    struct span experiment; /* for the keys of blobs */
    int extremes;           /* as of series_sample.h */
    size_t limit;           /* points */
    size_t longest;         /* out: the most points given of a series; the caller may reset it */
    int failed;             /* out: memory ran out */
    size_t *counts, count;  /* out: of points, one for each series given to data_series_count() */
    /* private */
    struct value_record record;
    struct buffer steps, walls, value;
    size_t count_capacity;
};

/* fields of a TagEntry, of metadata, of data */
enum {
    ENTRY_CONTENT = 2,
    MAX_STEP = 1,
    MAX_WALL_TIME = 2,
    MAX_LENGTH = 3,
    METADATA = 3,
    BLOB_METADATA = 4,
    STEPS = 1,
    WALL_TIMES = 2,
    VALUES = 3,
    BLOB_REFERENCES = 1,
    BLOB_KEY = 1
};

static void data_series_release(struct data_series *d)
{
    value_record_release(&d->record);
    buffer_release(&d->steps);
    buffer_release(&d->walls);
    buffer_release(&d->value);
    free(d->counts);
}

/* 1: the answer is too large already, and will be made again with fewer points. */
static int is_full(const struct wire *w)
{
    return w->bytes.length > DATA_SERIES_FULL;
}

/* Notes how many points the series has; nothing is appended. */
static void data_series_count(struct data_series *d, struct wire *w, const struct run_view *run, struct series_view *v)
{
    (void)w;
    (void)run;
    if (ARRAY_ROOM(d->counts, d->count_capacity, d->count + 1))
        d->counts[d->count++] = v->count;
    else
        d->failed = 1;
}

/* ---- descriptions ---------------------------------------------------------------------------------------------- */

static void describe(struct wire *w, const struct series_view *v, int blobs)
{
    size_t mark = wire_begin(w, ENTRY_CONTENT);

    wire_integer(w, MAX_STEP, v->last_step);
    wire_number(w, MAX_WALL_TIME, v->latest);
    if (blobs)
        wire_integer(w, MAX_LENGTH, (int64_t)v->most_blobs);
    wire_bytes(w, blobs ? BLOB_METADATA : METADATA, v->info->metadata, v->info->metadata_length);
    wire_end(w, mark);
}

/* Each appends the field `metadata` or `data` of a TagEntry. */
static void data_series_describe(struct data_series *d, struct wire *w, const struct run_view *run,
                                 struct series_view *v)
{
    (void)d;
    (void)run;
    describe(w, v, 0);
}

static void data_series_describe_blobs(struct data_series *d, struct wire *w, const struct run_view *run,
                                       struct series_view *v)
{
    (void)d;
    (void)run;
    describe(w, v, 1);
}

/* ---- which points ---------------------------------------------------------------------------------------------- */

/* All points of a series, or a sample of them. */
struct choice {
    const struct series_sample *sample; /* NULL: all, or none */
    size_t count;
};

static struct choice choose(struct data_series *d, struct series_view *v)
{
    struct choice c = { NULL, v->count < d->limit ? v->count : d->limit };

    if (c.count && c.count < v->count && !(c.sample = series_sample_take(v, c.count, d->extremes))) {
        d->failed = 1;
        c.count = 0;
    }
    d->longest = c.count > d->longest ? c.count : d->longest;
    return c;
}

static void choice_drop(struct choice *c, struct series_view *v)
{
    if (c->sample)
        series_sample_drop(v, c->sample);
}

static size_t row_of(const struct choice *c, size_t i)
{
    return c->sample ? c->sample->rows[i] : i;
}

/* ---- scalars --------------------------------------------------------------------------------------------------- */

/* Calls each() with pieces of a column of the chosen rows. */
static void each_piece(const struct choice *c, const struct series_view *v, enum column column, void *context,
                       void (*each)(void *context, const uint64_t *numbers, size_t n))
{
    uint64_t numbers[COLUMN_BLOCK_ROWS];

    for (size_t at = 0; at < c->count;) {
        size_t n = c->count - at < COLUMN_BLOCK_ROWS ? c->count - at : COLUMN_BLOCK_ROWS;

        if (c->sample)
            for (size_t i = 0; i < n; i++)
                numbers[i] = series_view_at(v, c->sample->rows[at + i], column);
        else
            column_block_read(v->blocks[at / COLUMN_BLOCK_ROWS], column, 0, n, numbers);
        each(context, numbers, n);
        at += n;
    }
}

static void append_steps(void *context, const uint64_t *numbers, size_t n)
{
    struct buffer *out = context;
    char *p = buffer_reserve(out, n * VARINT_MAX), *at = p;

    for (size_t i = 0; p && i < n; i++)
        at += put_varint(at, numbers[i]);
    out->length += p ? (size_t)(at - p) : 0;
}

static void append_doubles(void *context, const uint64_t *numbers, size_t n)
{
    struct buffer *out = context;
    char *p = buffer_reserve(out, n * 8);

    for (size_t i = 0; p && i < n; i++)
        put_le64(p + 8 * i, numbers[i]);
    out->length += p ? n * 8 : 0;
}

static void append_floats(void *context, const uint64_t *numbers, size_t n)
{
    struct buffer *out = context;
    char *p = buffer_reserve(out, n * 4);

    for (size_t i = 0; p && i < n; i++)
        put_le32(p + 4 * i, (uint32_t)numbers[i]);
    out->length += p ? n * 4 : 0;
}

static void data_series_scalars(struct data_series *d, struct wire *w, const struct run_view *run,
                                struct series_view *v)
{
    static void (*const pieces[])(void *context, const uint64_t *numbers, size_t n) = {
        [COLUMN_STEP] = append_steps, [COLUMN_WALL] = append_doubles, [COLUMN_VALUE] = append_floats
    };
    struct choice c = choose(d, v);
    size_t data = wire_begin(w, ENTRY_CONTENT);

    (void)run;
    for (int column = COLUMN_STEP; column <= COLUMN_VALUE && c.count && !is_full(w); column++) {
        size_t mark = wire_begin(w, column - COLUMN_STEP + STEPS);

        each_piece(&c, v, (enum column)column, &w->bytes, pieces[column]);
        wire_end(w, mark);
    }
    wire_end(w, data);
    choice_drop(&c, v);
}

/* ---- values in files ------------------------------------------------------------------------------------------- */

/* The files of a run, one open at a time. */
struct open_file {
    const struct run_view *run;
    struct value_source *values;
    struct value_source_file *file;
    uint64_t number;
};

static int same_tag(const struct event_value *value, const struct series_info *s)
{
    struct buffer valid = BUFFER_EMPTY;
    int same;

    if (value->tag_length == s->tag_length && (!s->tag_length || !memcmp(value->tag, s->tag, s->tag_length)))
        return 1;
    if (value->is_utf8)
        return 0;
    utf8_text_append(&valid, value->tag, value->tag_length);
    same = valid.length == s->tag_length && !memcmp(buffer_text(&valid), s->tag, s->tag_length);
    buffer_release(&valid);
    return same;
}

/* The value of the series in the event: the last one with its tag. */
static int find_value(const struct event *event, const struct series_info *s, struct event_value *value,
                      struct value_form *form)
{
    struct event_values values;
    const struct event_value *next;

    *form = (struct value_form){ event, NULL };
    if (event->what == EVENT_GRAPH || event->what == EVENT_RUN_METADATA)
        return s->class == SERIES_BLOBS;
    if (event->what != EVENT_SUMMARY)
        return 0;
    event_values_init(&values, event);
    while ((next = event_values_next(&values)))
        if (same_tag(next, s)) {
            *value = *next;
            form->value = value;
        }
    return form->value != NULL;
}

/* Reads the value of a row; 0: it is not there any more. */
static int read_value(struct data_series *d, struct open_file *f, const struct series_view *v, size_t row,
                      struct event_value *value, struct value_form *form)
{
    uint64_t number = series_view_at(v, row, COLUMN_PLACE) >> 32;

    if (number >= f->run->files->count)
        return 0;
    if (!f->file || f->number != number) {
        value_source_done(f->values, f->file);
        f->file = value_source_open(f->values, f->run->files->paths[number]);
        f->number = number;
    }
    return f->file && value_source_read(f->file, series_view_at(v, row, COLUMN_OFFSET), &d->record) &&
           d->record.event.step == (int64_t)series_view_at(v, row, COLUMN_STEP) &&
           find_value(&d->record.event, v->info, value, form);
}

static void append_row(struct data_series *d, const struct series_view *v, size_t row)
{
    uint64_t step = series_view_at(v, row, COLUMN_STEP), wall = series_view_at(v, row, COLUMN_WALL);

    append_steps(&d->steps, &step, 1);
    append_doubles(&d->walls, &wall, 1);
}

/* Steps and times come before the values, but only with the values it is known which points there are. */
static void insert_rows(struct data_series *d, struct wire *w, size_t mark)
{
    struct wire rows = WIRE_EMPTY;
    char *p;

    if (!d->steps.length)
        return;
    wire_bytes(&rows, STEPS, d->steps.data, d->steps.length);
    wire_bytes(&rows, WALL_TIMES, d->walls.data, d->walls.length);
    if (!buffer_ok(&rows.bytes) || !buffer_ok(&d->steps) || !buffer_ok(&d->walls)) {
        d->failed = 1;
    } else if ((p = buffer_reserve(&w->bytes, rows.bytes.length))) {
        p = w->bytes.data + mark;
        memmove(p + rows.bytes.length, p, w->bytes.length - mark);
        memcpy(p, rows.bytes.data, rows.bytes.length);
        w->bytes.length += rows.bytes.length;
    }
    wire_release(&rows);
}

static void data_series_tensors(struct data_series *d, struct wire *w, const struct run_view *run,
                                struct series_view *v)
{
    struct open_file file = { .run = run, .values = d->values };
    struct choice c = choose(d, v);
    size_t data = wire_begin(w, ENTRY_CONTENT);

    buffer_clear(&d->steps);
    buffer_clear(&d->walls);
    for (size_t i = 0; i < c.count && !is_full(w); i++) {
        struct event_value value;
        struct value_form form;

        buffer_clear(&d->value);
        if (!read_value(d, &file, v, row_of(&c, i), &value, &form) || !value_form_tensor(&form, &d->value))
            continue;
        append_row(d, v, row_of(&c, i));
        wire_bytes(w, VALUES, d->value.data, d->value.length);
    }
    insert_rows(d, w, data);
    wire_end(w, data);
    value_source_done(d->values, file.file);
    choice_drop(&c, v);
}

static void data_series_blobs(struct data_series *d, struct wire *w, const struct run_view *run, struct series_view *v)
{
    const struct blob_key key = { .experiment = d->experiment,
                                  .run = { (const uint8_t *)run->name, run->name_length },
                                  .tag = { (const uint8_t *)v->info->tag, v->info->tag_length } };
    struct choice c = choose(d, v);
    size_t data = wire_begin(w, ENTRY_CONTENT);
    struct buffer json = BUFFER_EMPTY;

    blob_key_begin(&json, &key);
    buffer_clear(&d->steps);
    buffer_clear(&d->walls);
    for (size_t i = 0; i < c.count && !is_full(w); i++) {
        const size_t row = row_of(&c, i), sequence = wire_begin(w, VALUES);
        uint64_t blobs = series_view_at(v, row, COLUMN_PLACE) & 0xffffffff;

        append_row(d, v, row);
        for (uint64_t k = 0; k < blobs && buffer_ok(&w->bytes) && !is_full(w); k++) {
            size_t reference = wire_begin(w, BLOB_REFERENCES), text;

            text = wire_begin(w, BLOB_KEY);
            blob_key_append_of(&w->bytes, &json, (int64_t)series_view_at(v, row, COLUMN_STEP), k);
            wire_end(w, text);
            wire_end(w, reference);
        }
        wire_end(w, sequence);
    }
    insert_rows(d, w, data);
    wire_end(w, data);
    buffer_release(&json);
    choice_drop(&c, v);
}

/* 1 and the blob, borrowed until the next call; 0: the point has no such blob, or it cannot be read any more. */
static int data_series_blob(struct data_series *d, const struct run_view *run, struct series_view *v, size_t row,
                            uint64_t index, char digits[VALUE_FORM_DIGITS], struct span *blob)
{
    struct open_file file = { .run = run, .values = d->values };
    struct event_value value;
    struct value_form form;
    int found = index < (series_view_at(v, row, COLUMN_PLACE) & 0xffffffff) &&
                read_value(d, &file, v, row, &value, &form) && value_form_blob(&form, v->info, index, digits, blob);

    value_source_done(d->values, file.file);
    return found;
}

/* ---- data answer ------------------------------------------------------------------------------------------------- */

/* fields of the answers */
enum {
    DATA_LOCATION = 1,
    PLUGINS = 1,
    PLUGIN_NAME = 1,
    RUNS = 1,
    RUN_NAME = 2,
    RUN_START = 3,
    ENTRY_NAME = 1,
    ENTRY_TAGS = 2,
    BLOB_DATA = 1
};

static enum data_code failed(char *message, enum data_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static enum data_code failed(char *message, enum data_code code, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, DATA_ANSWER_MESSAGE, format, arguments);
    va_end(arguments);
    return code;
}

/* Puts the length before the message that begins at `start` in the buffer, after its prefix. */
static void seal(struct buffer *out, size_t start)
{
    uint8_t *prefix;
    size_t n = out->length - start - DATA_PREFIX;

    if (!buffer_ok(out))
        return;
    prefix = (uint8_t *)out->data + start;
    prefix[0] = 0;
    for (int i = 0; i < 4; i++)
        prefix[1 + i] = (uint8_t)(n >> (24 - 8 * i));
}

static void begin_message(struct buffer *out)
{
    buffer_append(out, "\0\0\0\0\0", DATA_PREFIX);
}

/* ---- lists ----------------------------------------------------------------------------------------------------- */

static int same_text(const struct span *a, const char *text, size_t n)
{
    return a->length == n && !memcmp(a->bytes, text, n);
}

static void append_plugins(const struct log_view *v, struct wire *w)
{
    struct span seen[256];
    size_t count = 0;

    for (size_t i = 0; i < v->count; i++)
        for (size_t k = 0; k < v->runs[i]->count; k++) {
            const struct series_info *s = v->runs[i]->series[k]->info;
            size_t at = 0, mark;

            while (at < count && !same_text(&seen[at], s->plugin, s->plugin_length))
                at++;
            if (at < count || !s->plugin_length || count == sizeof seen / sizeof *seen)
                continue;
            seen[count++] = (struct span){ (const uint8_t *)s->plugin, s->plugin_length };
            mark = wire_begin(w, PLUGINS);
            wire_bytes(w, PLUGIN_NAME, s->plugin, s->plugin_length);
            wire_end(w, mark);
        }
}

static void append_runs(const struct log_view *v, struct wire *w)
{
    for (size_t i = 0; i < v->count; i++) {
        size_t mark = wire_begin(w, RUNS);

        wire_bytes(w, RUN_NAME, v->runs[i]->name, v->runs[i]->name_length);
        wire_number(w, RUN_START, v->runs[i]->start_time);
        wire_end(w, mark);
    }
}

/* ---- series ---------------------------------------------------------------------------------------------------- */

/* What a request for series is answered by. */
struct series_answer {
    const struct data_source *source;
    const struct data_request *request;
    const struct data_patience *patience;
    enum series_class class;
    void (*append)(struct data_series *d, struct wire *w, const struct run_view *run, struct series_view *v);
    int lists; /* series without points are left out */
    struct data_series series;
    struct wire *w;
};

static enum data_code patience_over(const struct data_patience *p)
{
    if (p->cancelled && __atomic_load_n(p->cancelled, __ATOMIC_RELAXED))
        return DATA_CANCELLED;
    return p->deadline > 0 && clock_monotonic() > p->deadline ? DATA_DEADLINE_EXCEEDED : DATA_OK;
}

static enum data_code out_of_patience(char *message, enum data_code code)
{
    return failed(message, code, "%s",
                  code == DATA_CANCELLED           ? "cancelled"
                  : code == DATA_DEADLINE_EXCEEDED ? "the deadline has passed"
                                                   : "out of memory");
}

static void add_tag(struct series_answer *a, const struct run_view *run, struct series_view *v)
{
    size_t mark;

    if (v->info->class != a->class || !same_text(&a->request->plugin, v->info->plugin, v->info->plugin_length) ||
        (a->lists && !v->count))
        return;
    mark = wire_begin(a->w, ENTRY_TAGS);
    wire_bytes(a->w, ENTRY_NAME, v->info->tag, v->info->tag_length);
    a->append(&a->series, a->w, run, v);
    wire_end(a->w, mark);
}

static int by_span(const void *a, const void *b)
{
    const struct span *x = a, *y = b;

    return bytes_compare(x->bytes, x->length, y->bytes, y->length);
}

/* A run whose series are all left out is left out itself. */
static void add_run(struct series_answer *a, const struct run_view *run)
{
    const struct data_names *tags = &a->request->tags;
    size_t before = a->w->bytes.length, mark = wire_begin(a->w, RUNS), head;

    wire_bytes(a->w, ENTRY_NAME, run->name, run->name_length);
    head = a->w->bytes.length;
    if (tags->given && tags->count < run->count) {
        for (size_t i = 0; i < tags->count; i++) {
            struct series_view *v = run_view_find(run, (const char *)tags->names[i].bytes, tags->names[i].length);

            if (v)
                add_tag(a, run, v);
        }
    } else {
        for (size_t i = 0; i < run->count; i++) {
            struct span tag = { (const uint8_t *)run->series[i]->info->tag, run->series[i]->info->tag_length };

            if (!tags->given || (tags->count && bsearch(&tag, tags->names, tags->count, sizeof *tags->names, by_span)))
                add_tag(a, run, run->series[i]);
        }
    }
    if (a->w->bytes.length == head)
        a->w->bytes.length = before;
    else
        wire_end(a->w, mark);
}

static int by_number(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return x < y ? -1 : x > y;
}

/* The indices of the wanted runs, rising. NULL: no memory. */
static size_t *wanted_runs(const struct log_view *v, const struct data_names *names, size_t *count)
{
    size_t *wanted = malloc((v->count + names->count + 1) * sizeof *wanted);

    *count = 0;
    for (size_t i = 0; wanted && !names->given && i < v->count; i++)
        wanted[(*count)++] = i;
    for (size_t i = 0; wanted && names->given && i < names->count; i++) {
        size_t found = log_view_find(v, (const char *)names->names[i].bytes, names->names[i].length);

        if (found != (size_t)-1)
            wanted[(*count)++] = found;
    }
    if (wanted && names->given)
        qsort(wanted, *count, sizeof *wanted, by_number);
    return wanted;
}

/* DATA_RESOURCE_EXHAUSTED: the message is too large. */
static enum data_code add_series(struct series_answer *a, const struct log_view *v)
{
    enum data_code code = DATA_OK;
    size_t count, *wanted = wanted_runs(v, &a->request->runs, &count);

    a->series.longest = 0;
    for (size_t i = 0; wanted && i < count && code == DATA_OK; i++) {
        add_run(a, v->runs[wanted[i]]);
        code = a->w->bytes.length > DATA_ANSWER_MOST ? DATA_RESOURCE_EXHAUSTED : patience_over(a->patience);
    }
    free(wanted);
    if (!wanted || !buffer_ok(&a->w->bytes) || a->series.failed)
        return DATA_INTERNAL;
    return code;
}

static const struct {
    enum series_class class;
    int lists;
    void (*append)(struct data_series *d, struct wire *w, const struct run_view *run, struct series_view *v);
} kinds[DATA_METHODS] = {
    [DATA_LIST_SCALARS] = { SERIES_SCALARS, 1, data_series_describe },
    [DATA_READ_SCALARS] = { SERIES_SCALARS, 0, data_series_scalars },
    [DATA_LIST_TENSORS] = { SERIES_TENSORS, 1, data_series_describe },
    [DATA_READ_TENSORS] = { SERIES_TENSORS, 0, data_series_tensors },
    [DATA_LIST_BLOBS] = { SERIES_BLOBS, 1, data_series_describe_blobs },
    [DATA_READ_BLOBS] = { SERIES_BLOBS, 0, data_series_blobs },
};

static size_t sum_up_to(const struct data_series *d, size_t limit)
{
    size_t sum = 0;

    for (size_t i = 0; i < d->count; i++)
        sum += d->counts[i] < limit ? d->counts[i] : limit;
    return sum;
}

/* Lowers the limit of a curve so far that all of them together have no more points than there may be. */
static enum data_code limit_points(struct series_answer *a, const struct log_view *v)
{
    size_t least = DATA_CURVE_LEAST, most = a->series.limit;
    enum data_code code;

    if (a->request->method != DATA_READ_SCALARS || !a->source->most || most <= least)
        return DATA_OK;
    a->append = data_series_count;
    code = add_series(a, v);
    a->append = kinds[a->request->method].append;
    a->w->bytes.length = DATA_PREFIX;
    while (least < most) { /* the highest that is not too much */
        const size_t middle = most - (most - least) / 2;

        if (sum_up_to(&a->series, middle) <= a->source->most)
            least = middle;
        else
            most = middle - 1;
    }
    a->series.limit = least;
    return code;
}

/* Points are thinned further until the message is small enough. */
static enum data_code answer_series(const struct data_source *s, const struct data_request *r,
                                    const struct data_patience *p, const struct log_view *v, struct wire *w,
                                    char *message)
{
    struct series_answer a = { s,     r, p, kinds[r->method].class, kinds[r->method].append, kinds[r->method].lists,
                               { 0 }, w };
    uint64_t hint = sample_hints_most(&s->hints, (const char *)r->plugin.bytes, r->plugin.length);
    enum data_code code;

    if (!r->plugin.length)
        return failed(message, DATA_INVALID_ARGUMENT, "must specify non-empty plugin name");
    if (!a.lists && !r->has_limit)
        return failed(message, DATA_INVALID_ARGUMENT, "must specify downsample");
    if (!a.lists && r->limit < 0)
        return failed(message, DATA_INVALID_ARGUMENT, "num_points must be non-negative; got %" PRId64, r->limit);
    a.series = (struct data_series){ .values = s->values, .experiment = r->experiment, .extremes = s->extremes };
    a.series.limit = hint < (uint64_t)r->limit ? (size_t)hint : (size_t)r->limit;
    code = limit_points(&a, v);
    while (code == DATA_OK && (code = add_series(&a, v)) == DATA_RESOURCE_EXHAUSTED && !a.lists &&
           a.series.longest > 1) {
        w->bytes.length = DATA_PREFIX;
        a.series.limit = a.series.longest / 2;
        code = DATA_OK;
    }
    data_series_release(&a.series);
    if (code == DATA_RESOURCE_EXHAUSTED)
        return failed(message, code, "the answer would be larger than %d MiB", DATA_ANSWER_MOST >> 20);
    return code == DATA_OK ? code : out_of_patience(message, code);
}

/* ---- blobs ----------------------------------------------------------------------------------------------------- */

/* The blob in messages of at most DATA_BLOB_PART bytes. */
static void append_blob(struct buffer *out, struct span blob)
{
    for (size_t at = 0; at < blob.length;) {
        size_t n = blob.length - at < DATA_BLOB_PART ? blob.length - at : DATA_BLOB_PART, start = out->length;
        struct wire w = { *out, NULL, 0 };

        begin_message(&w.bytes);
        wire_bytes(&w, BLOB_DATA, blob.bytes + at, n);
        *out = w.bytes;
        seal(out, start);
        at += n;
    }
}

/* How many bytes of a name a message has, no part of a character: a client takes 8 KiB, and three bytes may stand for
 * one. */
static int shown(struct span name)
{
    size_t n = name.length < 400 ? name.length : 400;

    while (n < name.length && n && (name.bytes[n] & 0xc0) == 0x80)
        n--;
    return (int)n;
}

static enum data_code answer_blob(const struct data_source *s, const struct log_view *v, const struct blob_key *key,
                                  struct buffer *out, char *message)
{
    const struct span run_name = key->run, tag = key->tag;
    size_t run = log_view_find(v, (const char *)run_name.bytes, run_name.length), row;
    struct data_series series = { .values = s->values };
    struct series_view *found;
    char digits[VALUE_FORM_DIGITS];
    enum data_code code = DATA_OK;
    struct span blob;

    if (run == (size_t)-1)
        return failed(message, DATA_NOT_FOUND, "no such run: \"%.*s\"", shown(run_name), run_name.bytes);
    found = run_view_find(v->runs[run], (const char *)tag.bytes, tag.length);
    if (!found || found->info->class != SERIES_BLOBS)
        return failed(message, DATA_NOT_FOUND, "run \"%.*s\" has no such tag: \"%.*s\"", shown(run_name),
                      run_name.bytes, shown(tag), tag.bytes);
    if ((row = series_view_find(found, key->step)) == (size_t)-1)
        return failed(message, DATA_NOT_FOUND, "run \"%.*s\", tag \"%.*s\" has no step %" PRId64, shown(run_name),
                      run_name.bytes, shown(tag), tag.bytes, key->step);
    if (!data_series_blob(&series, v->runs[run], found, row, key->index, digits, &blob))
        code = failed(message, DATA_NOT_FOUND,
                      "run \"%.*s\", tag \"%.*s\", step %" PRId64 ": there is no blob %" PRIu64, shown(run_name),
                      run_name.bytes, shown(tag), tag.bytes, key->step, key->index);
    else
        append_blob(out, blob);
    data_series_release(&series);
    return code;
}

static enum data_code read_blob(const struct data_source *s, const struct data_request *r, const struct log_view *v,
                                struct buffer *out, char *message)
{
    struct error e = { 0 };
    struct blob_key key;
    enum data_code code;
    int rc = blob_key_read(&key, r->blob_key.bytes, r->blob_key.length, &e);

    if (rc != OK)
        return failed(message, rc == ERR_ARG ? DATA_INVALID_ARGUMENT : DATA_INTERNAL, "%s", e.message);
    code = answer_blob(s, v, &key, out, message);
    blob_key_release(&key);
    return code;
}

/* From one view of the log. */
static enum data_code answer_from(const struct log_view *v, const struct data_source *s, const struct data_request *r,
                                  const struct data_patience *p, struct buffer *out, char *message)
{
    struct wire w = WIRE_EMPTY;
    enum data_code code = DATA_OK;

    buffer_clear(out);
    if (r->method == DATA_READ_BLOB)
        return read_blob(s, r, v, out, message);
    w.bytes = *out;
    begin_message(&w.bytes);
    switch (r->method) {
    case DATA_GET_EXPERIMENT: wire_bytes(&w, DATA_LOCATION, s->location, strlen(s->location)); break;
    case DATA_LIST_PLUGINS: append_plugins(v, &w); break;
    case DATA_LIST_RUNS: append_runs(v, &w); break;
    default: code = answer_series(s, r, p, v, &w, message);
    }
    *out = w.bytes;
    seal(out, 0);
    return code;
}

enum data_code data_answer(const struct data_source *s, const struct data_request *r, const struct data_patience *p,
                           struct buffer *out, char message[DATA_ANSWER_MESSAGE])
{
    enum data_code code = patience_over(p);

    message[0] = 0;
    if (code != DATA_OK) {
        out_of_patience(message, code);
    } else {
        struct log_view *v = snapshot_take(s->snapshot);

        code = answer_from(v, s, r, p, out, message);
        log_view_drop(v);
    }
    if (code == DATA_OK && !buffer_ok(out))
        code = failed(message, DATA_INTERNAL, "out of memory");
    if (code != DATA_OK)
        buffer_clear(out);
    return code;
}
