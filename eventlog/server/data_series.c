#include "eventlog/server/data_series.h"

#include "base/array.h"
#include "base/bytes.h"
#include "eventlog/server/blob_key.h"
#include "eventlog/server/store/series_sample.h"
#include "eventlog/server/store/utf8_text.h"

#include <stdlib.h>
#include <string.h>

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

void data_series_release(struct data_series *d)
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

void data_series_count(struct data_series *d, struct wire *w, const struct run_view *run, struct series_view *v)
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

void data_series_describe(struct data_series *d, struct wire *w, const struct run_view *run, struct series_view *v)
{
    (void)d;
    (void)run;
    describe(w, v, 0);
}

void data_series_describe_blobs(struct data_series *d, struct wire *w, const struct run_view *run,
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

void data_series_scalars(struct data_series *d, struct wire *w, const struct run_view *run, struct series_view *v)
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

void data_series_tensors(struct data_series *d, struct wire *w, const struct run_view *run, struct series_view *v)
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

void data_series_blobs(struct data_series *d, struct wire *w, const struct run_view *run, struct series_view *v)
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

int data_series_blob(struct data_series *d, const struct run_view *run, struct series_view *v, size_t row,
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
