#include "eventlog/server/run_cache.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "eventlog/server/store/run_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64 * 1024 };

static const char magic[8] = { 'E', 'V', 'L', 'O', 'G', 'R', 'U', 'N' };

/* ---- writing --------------------------------------------------------------------------------------------------- */

struct sink {
    run_cache_write_function *write;
    void *context;
    struct buffer bytes;
    uint64_t written; /* since both were set to 0 */
    uint32_t crc;
    int failed;
};

static void flush(struct sink *s)
{
    if (!s->failed && s->bytes.length && buffer_ok(&s->bytes))
        s->failed = s->write(s->context, s->bytes.data, s->bytes.length) != 0;
    s->bytes.length = 0;
}

static void put_bytes(struct sink *s, const void *bytes, size_t n)
{
    if (s->bytes.length + n > WINDOW)
        flush(s);
    if (!n)
        return;
    buffer_append(&s->bytes, bytes, n);
    s->crc = crc32c_extend(s->crc, bytes, n);
    s->written += n;
}

static void put_number(struct sink *s, uint64_t number)
{
    uint8_t bytes[8];

    put_le64(bytes, number);
    put_bytes(s, bytes, sizeof bytes);
}

static void put_text(struct sink *s, const void *text, size_t n)
{
    put_number(s, n);
    put_bytes(s, text, n);
}

static void put_mark(struct sink *s, const struct event_reader_mark *m)
{
    put_number(s, m->offset);
    put_number(s, m->length);
    put_bytes(s, m->bytes, sizeof m->bytes);
}

static void put_place(struct sink *s, const struct event_reader_place *p)
{
    const uint64_t numbers[] = {
        p->device,
        p->inode,
        p->size,
        (uint64_t)p->modified[0],
        (uint64_t)p->modified[1],
        (uint64_t)p->changed[0],
        (uint64_t)p->changed[1],
        p->offset,
        p->records,
        p->lost,
        p->damaged,
        double_bits(p->first_wall_time),
        double_bits(p->last_wall_time),
    };

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put_number(s, numbers[i]);
    put_mark(s, &p->first);
    put_mark(s, &p->last);
    put_number(s, (uint64_t)p->seen);
}

static void put_file(struct sink *s, const struct run_cache_file *file, const struct run_file *f)
{
    put_text(s, file->path, strlen(file->path));
    put_place(s, &file->place);
    put_number(s, file->note);
    put_number(s, f && f->path);
    put_number(s, f && f->begun);
    put_number(s, f ? f->writer : 0);
    put_number(s, f ? double_bits(f->first) : 0);
    put_number(s, f ? double_bits(f->last) : 0);
    put_number(s, f ? double_bits(f->known_last) : 0);
    put_number(s, f ? double_bits(f->next_began) : 0);
}

/* Where the points of a part are. */
struct saved_part {
    uint64_t length;
    uint32_t crc;
};

static struct saved_part put_points(struct sink *s, const struct point_series *p)
{
    s->written = 0;
    s->crc = 0;
    for (size_t b = 0; b < p->block_count; b++) {
        uint8_t bytes[POINT_SERIES_BLOCK_BYTES];

        put_bytes(s, bytes, point_series_save_block(p, b, bytes));
    }
    return (struct saved_part){ s->written, s->crc };
}

static void put_series(struct sink *s, const struct run_series *series, const struct saved_part *parts)
{
    const struct series_info *info = series->info;

    put_number(s, info->class);
    put_text(s, info->tag, info->tag_length);
    put_text(s, info->plugin, info->plugin_length);
    put_text(s, info->metadata, info->metadata_length);
    put_number(s, series->part_count);
    for (size_t i = 0; i < series->part_count; i++) {
        const struct point_series *p = &series->parts[i];

        put_number(s, p->rows);
        put_number(s, (uint64_t)p->last_step);
        put_number(s, double_bits(p->latest));
        put_number(s, p->most_blobs);
        put_number(s, parts[i].length);
        put_number(s, parts[i].crc);
    }
}

/* 1 if all rows are in blocks, and all that is known can be written. */
static int settle(struct run_data *run)
{
    for (size_t i = 0; i < run->tags.count; i++) {
        struct run_series *s = (struct run_series *)run->tags.items + i;

        if (!s->info)
            return 0;
        for (size_t k = 0; k < s->part_count; k++)
            if (!point_series_settle(&s->parts[k], s->columns))
                return 0;
    }
    return 1;
}

static const struct run_series *series_number(const struct run_data *run, size_t i)
{
    return (const struct run_series *)run->tags.items + i;
}

/* The points of all parts of all series, in their order; where they are: free() it. NULL: no memory. */
static struct saved_part *put_all_points(struct sink *s, const struct run_data *run)
{
    struct saved_part *parts;
    size_t count = 0;

    for (size_t i = 0; i < run->tags.count; i++)
        count += series_number(run, i)->part_count;
    if (!(parts = malloc((count + 1) * sizeof *parts)))
        return NULL;
    count = 0;
    for (size_t i = 0; i < run->tags.count; i++)
        for (size_t k = 0; k < series_number(run, i)->part_count; k++)
            parts[count++] = put_points(s, &series_number(run, i)->parts[k]);
    return parts;
}

static void put_index(struct sink *s, const struct run_data *run, const struct run_cache_file *files, size_t count,
                      const struct saved_part *parts)
{
    uint8_t head[8];

    put_bytes(s, &magic, sizeof magic);
    put_le32(head, RUN_CACHE_VERSION);
    put_le32(head + 4, run->merge != 0);
    put_bytes(s, &head, sizeof head);
    put_text(s, run->name, strlen(run->name));
    put_number(s, count);
    for (size_t i = 0; i < count; i++)
        put_file(s, &files[i], i < run->file_count ? &run->files[i] : NULL);
    put_number(s, run->writer_count);
    for (size_t i = 0; i < run->writer_count; i++)
        put_number(s, double_bits(run->writer_ends[i]));
    put_number(s, double_bits(run->start_time));
    put_number(s, run->points);
    put_number(s, run->tags.count);
    for (size_t i = 0; i < run->tags.count; parts += series_number(run, i++)->part_count) {
        put_text(s, run->tags.entries[i].text, run->tags.entries[i].length);
        put_series(s, series_number(run, i), parts);
    }
}

int run_cache_write(struct run_data *run, const struct run_cache_file *files, size_t count,
                    run_cache_write_function *write, void *context, struct error *e)
{
    struct sink s = { .write = write, .context = context, .bytes = BUFFER_EMPTY };
    struct saved_part *parts = NULL;
    uint8_t crc[4];
    int rc;

    if (run->file_count > count || !settle(run) || !(parts = put_all_points(&s, run))) {
        buffer_release(&s.bytes);
        return error_memory(e, run->name, "to save it");
    }
    s.written = 0;
    s.crc = 0;
    put_index(&s, run, files, count, parts);
    free(parts);
    put_number(&s, s.written);
    put_le32(crc, s.crc);
    put_bytes(&s, crc, sizeof crc);
    flush(&s);
    rc = !buffer_ok(&s.bytes) ? error_memory(e, run->name, "to save it")
         : s.failed           ? error_set(e, ERR_IO, "%s: cannot be saved", run->name)
                              : OK;
    buffer_release(&s.bytes);
    return rc;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

struct source {
    const uint8_t *bytes; /* of the index */
    size_t left;
    const uint8_t *points;   /* of the next part; NULL: only its place is wanted */
    uint64_t at, points_end; /* where that is, and where the index begins */
    struct shared_bytes *of; /* what points are in, or NULL */
    int rc;                  /* OK, or what failed first: then everything is 0 */
    /* of a preview */
    struct saved_points *saved;
    struct series_view **views;
    size_t view_count, view_capacity;
};

static void take_nothing(struct source *s, int rc)
{
    s->rc = s->rc == OK ? rc : s->rc;
}

/* The next n bytes; NULL after a failure. */
static const uint8_t *take(struct source *s, uint64_t n)
{
    const uint8_t *bytes = s->bytes;

    if (n > s->left)
        take_nothing(s, ERR_CORRUPT);
    if (s->rc != OK)
        return NULL;
    s->bytes += n;
    s->left -= (size_t)n;
    return bytes;
}

static uint64_t cached_number(struct source *s)
{
    const uint8_t *bytes = take(s, 8);

    return bytes ? get_le64(bytes) : 0;
}

static double take_double(struct source *s)
{
    return bits_double(cached_number(s));
}

/* At most `most`. */
static size_t take_count(struct source *s, uint64_t most)
{
    uint64_t n = cached_number(s);

    if (n > most)
        take_nothing(s, ERR_CORRUPT);
    return s->rc == OK ? (size_t)n : 0;
}

/* *n bytes, in the index; NULL after a failure. */
static const char *cached_text(struct source *s, size_t *n)
{
    *n = take_count(s, SIZE_MAX / 2);
    return (const char *)take(s, *n);
}

/* A copy of a text that holds no NUL. */
static char *take_name(struct source *s)
{
    size_t n;
    const char *text = cached_text(s, &n);
    char *name = NULL;

    if (text && memchr(text, '\0', n))
        take_nothing(s, ERR_CORRUPT);
    else if (text && !(name = strndup(text, n)))
        take_nothing(s, ERR_NOMEM);
    return name;
}

static void take_mark(struct source *s, struct event_reader_mark *m)
{
    const uint8_t *bytes;

    m->offset = cached_number(s);
    m->length = cached_number(s);
    if ((bytes = take(s, sizeof m->bytes)))
        memcpy(m->bytes, bytes, sizeof m->bytes);
}

static void take_place(struct source *s, struct event_reader_place *p)
{
    p->device = cached_number(s);
    p->inode = cached_number(s);
    p->size = cached_number(s);
    for (int i = 0; i < 2; i++)
        p->modified[i] = (int64_t)cached_number(s);
    for (int i = 0; i < 2; i++)
        p->changed[i] = (int64_t)cached_number(s);
    p->offset = cached_number(s);
    p->records = cached_number(s);
    p->lost = cached_number(s);
    p->damaged = cached_number(s);
    p->first_wall_time = take_double(s);
    p->last_wall_time = take_double(s);
    take_mark(s, &p->first);
    take_mark(s, &p->last);
    p->seen = (int64_t)cached_number(s);
}

static void take_file(struct source *s, struct run_cache *c)
{
    struct run_data *run = c->run;
    struct run_cache_file *file = &c->files[c->count++];
    struct run_file *f = &run->files[c->count - 1];

    *file = (struct run_cache_file){ .path = take_name(s) };
    take_place(s, &file->place);
    file->note = cached_number(s);
    *f = (struct run_file){ .path = NULL };
    if (take_count(s, 1) && s->rc == OK && !(f->path = strdup(file->path)))
        take_nothing(s, ERR_NOMEM);
    f->begun = (int)take_count(s, 1);
    f->writer = take_count(s, SIZE_MAX);
    f->first = take_double(s);
    f->last = take_double(s);
    f->known_last = take_double(s);
    f->next_began = take_double(s);
    if (f->path)
        run->file_count = c->count; /* and those before it */
    if (f->begun && !f->path)
        take_nothing(s, ERR_CORRUPT);
}

static void take_files(struct source *s, struct run_cache *c)
{
    size_t wanted = take_count(s, UINT32_MAX), capacity = 0;

    for (size_t i = 0; i < wanted && s->rc == OK; i++)
        if (ARRAY_ROOM(c->files, capacity, i + 1) && ARRAY_ROOM(c->run->files, c->run->file_capacity, i + 1))
            take_file(s, c);
        else
            take_nothing(s, ERR_NOMEM);
}

static void take_writers(struct source *s, struct run_data *run)
{
    size_t wanted = take_count(s, UINT32_MAX);

    for (size_t i = 0; i < wanted && s->rc == OK; i++)
        if (ARRAY_ROOM(run->writer_ends, run->writer_capacity, i + 1))
            run->writer_ends[run->writer_count++] = take_double(s);
        else
            take_nothing(s, ERR_NOMEM);
    for (size_t i = 0; i < run->file_count; i++)
        if (run->files[i].begun && run->files[i].writer >= run->writer_count)
            take_nothing(s, ERR_CORRUPT);
    run->start_time = take_double(s);
    run->points = cached_number(s);
}

/* Where the next part is, and all that is known of it. */
static struct saved_place take_place_of_part(struct source *s, size_t columns)
{
    const size_t least = COLUMN_BLOCK_LEAST(columns) + 2;
    struct saved_place p = { .rows = cached_number(s) };
    uint64_t crc;

    p.last_step = (int64_t)cached_number(s);
    p.latest = take_double(s);
    p.most_blobs = cached_number(s);
    p.length = cached_number(s);
    crc = cached_number(s);
    p.crc = (uint32_t)crc;
    p.offset = s->at;
    if (p.length > s->points_end - s->at || p.rows / COLUMN_BLOCK_ROWS > p.length / least || !p.rows != !p.length ||
        crc > UINT32_MAX)
        take_nothing(s, ERR_CORRUPT);
    else
        s->at += p.length;
    return p;
}

static void take_part(struct source *s, struct point_series *p, size_t columns)
{
    struct saved_place place = take_place_of_part(s, columns);

    if (s->rc != OK)
        return;
    if (crc32c(s->points, (size_t)place.length) != place.crc ||
        !saved_points_take(&place, s->points, columns, s->of, p))
        take_nothing(s, ERR_CORRUPT);
    s->points += place.length;
}

static struct series_info *take_info(struct source *s)
{
    struct series_info parts = { .class = (enum series_class)take_count(s, SERIES_BLOBS) }, *info = NULL;

    parts.tag = cached_text(s, &parts.tag_length);
    parts.plugin = cached_text(s, &parts.plugin_length);
    parts.metadata = (const uint8_t *)cached_text(s, &parts.metadata_length);
    if (s->rc == OK && !(info = series_info_of_parts(&parts)))
        take_nothing(s, ERR_NOMEM);
    return info;
}

static size_t columns_of_info(const struct series_info *info)
{
    return info->class == SERIES_SCALARS ? COLUMN_VALUE + 1 : COLUMNS_MOST;
}

static void take_series(struct source *s, struct run_data *run)
{
    const size_t number = run->tags.count;
    struct run_series *series = NULL;
    size_t n;
    const char *tag = cached_text(s, &n);

    if (s->rc == OK && !(series = tag_index_item(&run->tags, tag, n)))
        take_nothing(s, ERR_NOMEM);
    if (run->tags.count != number + 1)
        take_nothing(s, ERR_CORRUPT); /* twice */
    if (s->rc != OK || !(series->info = take_info(s)))
        return;
    series->columns = columns_of_info(series->info);
    series->changed = 1;
    n = take_count(s, run->writer_count);
    if (n && !(series->parts = calloc(n, sizeof *series->parts)))
        take_nothing(s, ERR_NOMEM);
    for (; series->part_count < n && s->rc == OK; series->part_count++)
        take_part(s, &series->parts[series->part_count], series->columns);
}

static void add_view(struct source *s, struct series_info *info, const struct saved_place *place)
{
    struct series_view *view = NULL;

    if (!ARRAY_ROOM(s->views, s->view_capacity, s->view_count + 1) ||
        !(view = series_view_of_saved(info, s->saved, place)))
        take_nothing(s, ERR_NOMEM);
    else
        s->views[s->view_count++] = view;
}

/* A view of the next series, as run_data_view() makes it. */
static void take_view(struct source *s, const struct run_data *run)
{
    struct saved_place place = { .rows = 0 };
    struct series_info *info = NULL;
    size_t n, parts = 0, filled = 0;

    cached_text(s, &n);
    info = take_info(s);
    if (info)
        parts = take_count(s, run->writer_count);
    for (size_t i = 0; i < parts && s->rc == OK; i++) {
        const struct saved_place next = take_place_of_part(s, columns_of_info(info));

        if ((next.rows || !i) && filled < 2)
            place = next;
        filled += next.rows != 0;
    }
    if (filled > 1)
        take_nothing(s, ERR_CORRUPT); /* they must be merged */
    if (s->rc == OK && info->class != SERIES_UNKNOWN)
        add_view(s, info, &place);
    series_info_drop(info);
}

static void take_run(struct source *s, struct run_cache *c, const char *name, int merge)
{
    const uint8_t *bytes = take(s, sizeof magic + 8);
    char *stored;
    size_t tags;

    if (bytes && (memcmp(bytes, magic, sizeof magic) != 0 || get_le32(bytes + 8) != RUN_CACHE_VERSION ||
                  get_le32(bytes + 12) != (uint32_t)(merge != 0)))
        take_nothing(s, ERR_CORRUPT);
    stored = take_name(s);
    if (stored && name && strcmp(stored, name) != 0)
        take_nothing(s, ERR_CORRUPT);
    if (stored && !name) {
        free(c->run->name);
        c->run->name = stored;
    } else {
        free(stored);
    }
    take_files(s, c);
    take_writers(s, c->run);
    tags = take_count(s, UINT32_MAX);
    for (size_t i = 0; i < tags && s->rc == OK; i++)
        if (s->saved)
            take_view(s, c->run);
        else
            take_series(s, c->run);
    if (s->left || s->at != s->points_end)
        take_nothing(s, ERR_CORRUPT);
    c->run->changed = 1;
}

uint64_t run_cache_index_size(const uint8_t end[RUN_CACHE_END], uint64_t size)
{
    const uint64_t index = get_le64(end);

    return size >= RUN_CACHE_END && index <= size - RUN_CACHE_END ? index + RUN_CACHE_END : 0;
}

/* Reads the run whose index, with its end, is these bytes. */
static int read_index(struct source *s, struct run_cache *out, const char *name, int merge, const uint8_t *index,
                      size_t size, struct error *e)
{
    *out = (struct run_cache){ .run = NULL };
    if (get_le32(index + size - 4) != crc32c(index, size - 4))
        return error_set(e, ERR_CORRUPT, "%s: no saved run", name ? name : "cache");
    if (!(out->run = run_data_new(name ? name : "", merge)))
        return error_memory(e, name, "for it");
    s->bytes = index;
    s->left = size - RUN_CACHE_END;
    take_run(s, out, name, merge);
    if (s->rc == OK)
        return OK;
    run_cache_release(out);
    return error_set(e, s->rc, "%s: no saved run", name ? name : "cache");
}

int run_cache_read(struct run_cache *out, const char *name, int merge, const uint8_t *bytes, size_t size,
                   struct shared_bytes *of, struct error *e)
{
    const uint64_t index = size < RUN_CACHE_END ? 0 : run_cache_index_size(bytes + size - RUN_CACHE_END, size);
    struct source s = { .points = bytes, .points_end = size - index, .of = of };

    *out = (struct run_cache){ .run = NULL };
    if (!index)
        return error_set(e, ERR_CORRUPT, "%s: no saved run", name ? name : "cache");
    return read_index(&s, out, name, merge, bytes + size - index, (size_t)index, e);
}

int run_cache_preview(struct run_cache *out, const char *name, int merge, const uint8_t *index, size_t index_size,
                      const struct run_cache_place *place, struct error *e)
{
    struct source s = { .at = place->offset,
                        .points_end = place->offset + place->size - index_size,
                        .saved = place->points };
    int rc;

    *out = (struct run_cache){ .run = NULL };
    if (index_size < RUN_CACHE_END ||
        run_cache_index_size(index + index_size - RUN_CACHE_END, index_size) != index_size)
        return error_set(e, ERR_CORRUPT, "%s: no saved run", name ? name : "cache");
    rc = read_index(&s, out, name, merge, index, index_size, e);
    if (rc == OK && !isinf(out->run->start_time)) {
        series_views_sort(s.views, s.view_count);
        if (!run_data_names(out->run) ||
            !(out->view = run_view_new(out->run->name, out->run->start_time, out->run->names, s.views, s.view_count))) {
            run_cache_release(out);
            rc = error_memory(e, name, "for a view");
        }
    }
    for (size_t i = 0; i < s.view_count; i++)
        series_view_drop(s.views[i]);
    free(s.views);
    return rc;
}

void run_cache_release(struct run_cache *c)
{
    for (size_t i = 0; i < c->count; i++)
        free(c->files[i].path);
    free(c->files);
    run_data_free(c->run);
    run_view_drop(c->view);
    *c = (struct run_cache){ .run = NULL };
}
