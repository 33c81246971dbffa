#include "eventlog/server/store/run_data.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/server/store/utf8_text.h"
#include "eventlog/server/store/value_form.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- point series ------------------------------------------------------------------------------------------------ */

static int push_block(struct point_series *p, size_t columns)
{
    struct column_block *b;

    if (!ARRAY_ROOM(p->blocks, p->block_capacity, p->block_count + 1) ||
        !(b = column_block_new(p->tail, p->tail_count, columns)))
        return 0;
    p->blocks[p->block_count++] = b;
    p->tail_count = 0;
    return 1;
}

/* The last block becomes the newest rows again. */
static int pop_block(struct point_series *p)
{
    struct column_block *last = p->blocks[p->block_count - 1];

    if (!ARRAY_ROOM(p->tail, p->tail_capacity, column_block_rows(last)))
        return 0;
    column_block_rows_read(last, p->tail);
    p->tail_count = column_block_rows(last);
    column_block_drop(last);
    p->block_count--;
    return 1;
}

static void note_row(struct point_series *p, const struct column_row *row)
{
    double wall = bits_double(row->at[COLUMN_WALL]);
    uint64_t blobs = row->at[COLUMN_PLACE] & 0xffffffff;

    p->latest = wall > p->latest ? wall : p->latest;
    p->most_blobs = blobs > p->most_blobs ? blobs : p->most_blobs;
}

/* Removes all rows at steps >= step. 0: no memory; rows may be missing from the end. */
static int cut_from(struct point_series *p, int64_t step)
{
    while (p->rows) {
        if (!p->tail_count && !pop_block(p))
            return 0;
        p->cut = 1;
        if ((int64_t)p->tail[0].at[COLUMN_STEP] >= step) {
            p->rows -= p->tail_count;
            p->tail_count = 0;
            continue;
        }
        for (; (int64_t)p->tail[p->tail_count - 1].at[COLUMN_STEP] >= step; p->rows--)
            p->tail_count--;
        return 1;
    }
    return 1;
}

int point_series_add(struct point_series *p, const struct column_row *row, size_t columns)
{
    const int64_t step = (int64_t)row->at[COLUMN_STEP];

    if (!p->tail_count && p->block_count && column_block_rows(p->blocks[p->block_count - 1]) < COLUMN_BLOCK_ROWS &&
        !pop_block(p))
        return 0;
    if (p->rows && step <= p->last_step && !cut_from(p, step))
        return 0;
    if (p->tail_count == COLUMN_BLOCK_ROWS && !push_block(p, columns))
        return 0;
    if (!ARRAY_ROOM(p->tail, p->tail_capacity, p->tail_count + 1))
        return 0;
    if (!p->rows++) {
        p->latest = -INFINITY;
        p->most_blobs = 0;
        p->cut = 0;
    }
    p->tail[p->tail_count++] = *row;
    p->last_step = step;
    note_row(p, row);
    return 1;
}

/* Looks at all rows again. */
static void note_all(struct point_series *p)
{
    p->latest = -INFINITY;
    p->most_blobs = 0;
    for (size_t b = 0; b < p->block_count; b++) {
        struct column_row rows[COLUMN_BLOCK_ROWS];

        column_block_rows_read(p->blocks[b], rows);
        for (size_t i = 0; i < column_block_rows(p->blocks[b]); i++)
            note_row(p, &rows[i]);
    }
    p->cut = 0;
}

int point_series_settle(struct point_series *p, size_t columns)
{
    if (p->tail_count && !push_block(p, columns))
        return 0;
    free(p->tail);
    p->tail = NULL;
    p->tail_capacity = 0;
    if (p->cut)
        note_all(p);
    return 1;
}

void point_series_release(struct point_series *p)
{
    for (size_t i = 0; i < p->block_count; i++)
        column_block_drop(p->blocks[i]);
    free(p->blocks);
    free(p->tail);
    memset(p, 0, sizeof *p);
}

/* ---- run data ---------------------------------------------------------------------------------------------------- */

enum { WRITERS_MOST = 256 }; /* files that overlap beyond that many count as one writer's */

struct run_series {
    struct series_info *info;   /* NULL: no value yet */
    struct point_series *parts; /* by writer: part_count of them */
    size_t part_count, columns;
    int changed;
    struct series_view *view;
};

struct run_file {
    char *path;
    int begun;
    size_t writer;
    double first, last; /* wall times */
    double known_last;  /* as of an earlier reading; -INFINITY: unknown */
    double next_began;  /* the first wall time of a file that continues this one; INFINITY: none does */
};

struct run_data {
    char *name;
    int merge, changed, files_changed;
    double start_time; /* INFINITY: unknown */
    uint64_t points;
    struct tag_index tags; /* items: struct run_series */
    struct run_file *files;
    size_t file_count, file_capacity;
    double *writer_ends; /* of each writer: when its last file ended */
    size_t writer_count, writer_capacity;
    struct file_names *names;
};

struct run_data *run_data_new(const char *name, int merge)
{
    struct run_data *r = calloc(1, sizeof *r);

    if (!r || !(r->name = strdup(name))) {
        free(r);
        return NULL;
    }
    r->merge = merge;
    r->start_time = INFINITY;
    r->tags.item_size = sizeof(struct run_series);
    return r;
}

static void release_series(struct run_data *r)
{
    for (size_t i = 0; i < r->tags.count; i++) {
        struct run_series *s = (struct run_series *)r->tags.items + i;

        for (size_t k = 0; k < s->part_count; k++)
            point_series_release(&s->parts[k]);
        free(s->parts);
        series_info_drop(s->info);
        series_view_drop(s->view);
    }
    tag_index_release(&r->tags);
    r->tags.item_size = sizeof(struct run_series);
}

void run_data_restart(struct run_data *r, int learnt)
{
    release_series(r);
    for (size_t i = 0; i < r->file_count; i++) {
        struct run_file *f = &r->files[i];

        f->known_last = !learnt ? -INFINITY : f->begun && f->last > f->known_last ? f->last : f->known_last;
        f->begun = 0;
    }
    r->writer_count = 0;
    r->start_time = INFINITY;
    r->points = 0;
    r->changed = 1;
}

void run_data_free(struct run_data *r)
{
    if (!r)
        return;
    release_series(r);
    for (size_t i = 0; i < r->file_count; i++)
        free(r->files[i].path);
    free(r->files);
    free(r->writer_ends);
    file_names_drop(r->names);
    free(r->name);
    free(r);
}

int run_data_changed(const struct run_data *r)
{
    return r->changed;
}

uint64_t run_data_points(const struct run_data *r)
{
    return r->points;
}

/* ---- files and writers ----------------------------------------------------------------------------------------- */

static int know_file(struct run_data *r, size_t file, const char *path)
{
    if (!ARRAY_ROOM(r->files, r->file_capacity, file + 1))
        return 0;
    for (; r->file_count <= file; r->file_count++)
        r->files[r->file_count] = (struct run_file){ .known_last = -INFINITY };
    if (!r->files[file].path || strcmp(r->files[file].path, path) != 0) {
        char *copy = strdup(path);

        if (!copy)
            return 0;
        free(r->files[file].path);
        r->files[file].path = copy;
        r->files_changed = 1;
    }
    return 1;
}

/* The writer whose files ended last before `first`; a new one if all ended later. */
static int find_writer(struct run_data *r, double first, size_t *out)
{
    size_t best = r->writer_count;

    for (size_t i = 0; i < r->writer_count; i++)
        if (r->writer_ends[i] <= first && (best == r->writer_count || r->writer_ends[i] > r->writer_ends[best]))
            best = i;
    if (r->writer_count && (!r->merge || best == WRITERS_MOST))
        best = 0;
    if (!ARRAY_ROOM(r->writer_ends, r->writer_capacity, best + 1))
        return 0;
    if (best == r->writer_count)
        r->writer_ends[r->writer_count++] = -INFINITY;
    *out = best;
    return 1;
}

static int begin_file(struct run_data *r, struct run_file *f, double first)
{
    if (!find_writer(r, first, &f->writer))
        return 0;
    for (size_t i = 0; i < r->file_count; i++)
        if (r->files[i].begun && r->files[i].writer == f->writer && r->files[i].next_began > first)
            r->files[i].next_began = first;
    f->begun = 1;
    f->first = f->last = first;
    f->next_began = INFINITY;
    if (f->known_last > r->writer_ends[f->writer])
        r->writer_ends[f->writer] = f->known_last;
    return 1;
}

/* Notes an event of the file at that time. OK, RUN_DATA_AGAIN, ERR_NOMEM. */
static int note_time(struct run_data *r, struct run_file *f, double wall, struct error *e)
{
    if (!f->begun && !begin_file(r, f, wall))
        return error_memory(e, r->name, "for its files");
    if (wall > f->last) {
        f->last = wall;
        if (wall > r->writer_ends[f->writer])
            r->writer_ends[f->writer] = wall;
        if (wall > f->next_began && r->merge && r->writer_count < WRITERS_MOST)
            return RUN_DATA_AGAIN;
    }
    return OK;
}

/* ---- events ---------------------------------------------------------------------------------------------------- */

/* The series of a tag, with its info once that is known; NULL: no memory. */
static struct run_series *series_of(struct run_data *r, const char *tag, size_t n, const struct value_form *v)
{
    struct run_series *s = tag_index_item(&r->tags, tag, n);
    struct buffer valid = BUFFER_EMPTY;

    if (!s || s->info)
        return s;
    utf8_text_append(&valid, tag, n);
    if (buffer_ok(&valid))
        s->info = v->value                        ? series_info_of_value(buffer_text(&valid), valid.length, v->value)
                  : v->event->what == EVENT_GRAPH ? series_info_of_graph()
                                                  : series_info_of_run_metadata(buffer_text(&valid), valid.length);
    buffer_release(&valid);
    if (!s->info)
        return NULL;
    s->columns = s->info->class == SERIES_SCALARS ? COLUMN_VALUE + 1 : COLUMNS_MOST;
    s->changed = r->changed = 1;
    return s;
}

static struct point_series *part_of(struct run_series *s, size_t writer)
{
    if (writer >= s->part_count) {
        struct point_series *parts = realloc(s->parts, (writer + 1) * sizeof *parts);

        if (!parts)
            return NULL;
        memset(parts + s->part_count, 0, (writer + 1 - s->part_count) * sizeof *parts);
        s->parts = parts;
        s->part_count = writer + 1;
    }
    return &s->parts[writer];
}

static int add_value(struct run_data *r, size_t file, const char *tag, size_t n, const struct value_form *v,
                     uint64_t offset, struct error *e)
{
    struct run_series *s = series_of(r, tag, n, v);
    struct column_row row = { { (uint64_t)v->event->step, double_bits(v->event->wall_time) } };
    struct point_series *part;
    uint64_t blobs;

    if (!s)
        return error_memory(e, r->name, "for a series");
    if (!value_form_fits(v, s->info, &blobs))
        return OK;
    if (s->info->class == SERIES_SCALARS) {
        row.at[COLUMN_VALUE] = float_bits((float)v->value->number);
        r->points++;
    } else {
        row.at[COLUMN_OFFSET] = offset;
        row.at[COLUMN_PLACE] = (uint64_t)file << 32 | (blobs < UINT32_MAX ? blobs : UINT32_MAX);
    }
    if (!(part = part_of(s, r->files[file].writer)) || !point_series_add(part, &row, s->columns))
        return error_memory(e, r->name, "for its points");
    s->changed = r->changed = 1;
    return OK;
}

size_t run_data_series(struct run_data *r, const char *tag, size_t n, int *numbers)
{
    size_t number = tag_index_find(&r->tags, tag, n);
    const struct run_series *s = number != TAG_INDEX_NONE ? (const struct run_series *)r->tags.items + number : NULL;

    if (!s || !s->info)
        return (size_t)-1;
    *numbers = s->info->class == SERIES_SCALARS;
    return number;
}

int run_data_row(struct run_data *r, size_t file, size_t series, int64_t step, double wall, float number,
                 struct error *e)
{
    struct run_series *s = (struct run_series *)r->tags.items + series;
    const struct column_row row = { { (uint64_t)step, double_bits(wall), float_bits(number) } };
    struct point_series *part;
    int rc = note_time(r, &r->files[file], wall, e);

    if (rc != OK)
        return rc;
    if (wall < r->start_time)
        r->start_time = wall;
    r->points++;
    if (!(part = part_of(s, r->files[file].writer)) || !point_series_add(part, &row, s->columns))
        return error_memory(e, r->name, "for its points");
    s->changed = r->changed = 1;
    return OK;
}

int run_data_event(struct run_data *r, size_t file, const char *path, const struct event *event, uint64_t offset,
                   struct error *e)
{
    struct value_form form = { event, NULL };
    struct event_values values;
    struct span tag;
    int rc;

    if (!isfinite(event->wall_time))
        return OK;
    if ((file >= r->file_count || !r->files[file].begun) && !know_file(r, file, path))
        return error_memory(e, r->name, "for its files");
    if ((rc = note_time(r, &r->files[file], event->wall_time, e)) != OK)
        return rc;
    if (event->wall_time < r->start_time) {
        r->start_time = event->wall_time;
        r->changed = 1;
    }
    switch (event->what) {
    case EVENT_SUMMARY:
        event_values_init(&values, event);
        while (rc == OK && (form.value = event_values_next(&values)))
            rc = add_value(r, file, form.value->tag, form.value->tag_length, &form, offset, e);
        return rc;
    case EVENT_GRAPH: return add_value(r, file, SERIES_GRAPH_TAG, strlen(SERIES_GRAPH_TAG), &form, offset, e);
    case EVENT_RUN_METADATA:
        if (!value_form_run_metadata_tag(event, &tag))
            return OK;
        return add_value(r, file, (const char *)tag.bytes, tag.length, &form, offset, e);
    default: return OK;
    }
}

/* ---- views ----------------------------------------------------------------------------------------------------- */

static int by_step(const void *a, const void *b)
{
    const struct column_row *x = a, *y = b;
    int64_t s = (int64_t)x->at[COLUMN_STEP], t = (int64_t)y->at[COLUMN_STEP];
    double v = bits_double(x->at[COLUMN_WALL]), w = bits_double(y->at[COLUMN_WALL]);

    return s != t ? (s < t ? -1 : 1) : v < w ? -1 : v > w;
}

/* All rows of the parts by step, of equal steps the newest, as one part. 0: no memory. */
static int merge_parts(const struct run_series *s, struct point_series *out)
{
    struct column_row *rows;
    size_t count = 0, at = 0;
    int good = 1;

    for (size_t i = 0; i < s->part_count; i++)
        count += s->parts[i].rows;
    if (!(rows = malloc((count + 1) * sizeof *rows)))
        return 0;
    for (size_t i = 0; i < s->part_count; i++)
        for (size_t b = 0; b < s->parts[i].block_count; b++) {
            column_block_rows_read(s->parts[i].blocks[b], rows + at);
            at += column_block_rows(s->parts[i].blocks[b]);
        }
    qsort(rows, count, sizeof *rows, by_step);
    for (size_t i = 0; good && i < count; i++)
        good = point_series_add(out, &rows[i], s->columns);
    free(rows);
    return good && point_series_settle(out, s->columns);
}

static int series_changed_view(struct run_series *s)
{
    struct point_series merged = { 0 };
    const struct point_series *from = s->parts;
    struct series_view *view = NULL;
    size_t filled = 0;
    int good = 1;

    for (size_t i = 0; i < s->part_count; i++) {
        good = good && point_series_settle(&s->parts[i], s->columns);
        if (s->parts[i].rows && filled++ == 0)
            from = &s->parts[i];
    }
    if (good && filled > 1) {
        good = merge_parts(s, &merged);
        from = &merged;
    }
    if (good)
        view = series_view_new(s->info, from ? from->blocks : NULL, from ? from->block_count : 0);
    if (view && from) {
        view->latest = from->latest;
        view->most_blobs = from->most_blobs;
    }
    point_series_release(&merged);
    if (!view)
        return 0;
    series_view_drop(s->view);
    s->view = view;
    s->changed = 0;
    return 1;
}

/* Sets names to those of the files as of now; 0: no memory. */
static int name_files(struct run_data *r)
{
    struct file_names *names = NULL;
    char none[] = "", **paths;

    if (r->names && !r->files_changed)
        return 1;
    paths = malloc((r->file_count + 1) * sizeof *paths);
    for (size_t i = 0; paths && i < r->file_count; i++)
        paths[i] = r->files[i].path ? r->files[i].path : none;
    if (paths)
        names = file_names_new(paths, r->file_count);
    free(paths);
    if (!names)
        return 0;
    file_names_drop(r->names);
    r->names = names;
    r->files_changed = 0;
    return 1;
}

int run_data_view(struct run_data *r, struct run_view **out, struct error *e)
{
    struct series_view **series;
    size_t count = 0;

    *out = NULL;
    if (isinf(r->start_time)) {
        r->changed = 0;
        return OK;
    }
    if (!(series = malloc((r->tags.count + 1) * sizeof *series)))
        return error_memory(e, r->name, "for a view");
    for (size_t i = 0; i < r->tags.count; i++) {
        struct run_series *s = (struct run_series *)r->tags.items + i;

        if (!s->info || s->info->class == SERIES_UNKNOWN)
            continue;
        if (s->changed && !series_changed_view(s)) {
            free(series);
            return error_memory(e, r->name, "for a view");
        }
        series[count++] = s->view;
    }
    series_views_sort(series, count);
    if (!name_files(r)) {
        free(series);
        return error_memory(e, r->name, "for a view");
    }
    *out = run_view_new(r->name, r->start_time, r->names, series, count);
    free(series);
    if (!*out)
        return error_memory(e, r->name, "for a view");
    r->changed = 0;
    return OK;
}
