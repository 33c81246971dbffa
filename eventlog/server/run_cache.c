#include "eventlog/server/run_cache.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "eventlog/server/store/run_state.h"

#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64 * 1024, END = 12 /* length and CRC */ };

static const char magic[8] = { 'E', 'V', 'L', 'O', 'G', 'R', 'U', 'N' };

/* ---- writing --------------------------------------------------------------------------------------------------- */

struct sink {
    run_cache_write_function *write;
    void *context;
    struct buffer bytes;
    uint64_t written;
    uint32_t crc;
    int failed;
};

static void flush(struct sink *s)
{
    if (!s->failed && s->bytes.length && buffer_ok(&s->bytes)) {
        s->crc = crc32c_extend(s->crc, s->bytes.data, s->bytes.length);
        s->failed = s->write(s->context, s->bytes.data, s->bytes.length) != 0;
        s->written += s->bytes.length;
    }
    s->bytes.length = 0;
}

static void put_bytes(struct sink *s, const void *bytes, size_t n)
{
    if (s->bytes.length + n > WINDOW)
        flush(s);
    if (n)
        buffer_append(&s->bytes, bytes, n);
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

static void put_series(struct sink *s, const struct run_series *series)
{
    const struct series_info *info = series->info;

    put_number(s, info->class);
    put_text(s, info->tag, info->tag_length);
    put_text(s, info->plugin, info->plugin_length);
    put_text(s, info->metadata, info->metadata_length);
    put_number(s, series->part_count);
    for (size_t i = 0; i < series->part_count; i++) {
        const struct point_series *p = &series->parts[i];

        put_number(s, double_bits(p->latest));
        put_number(s, p->most_blobs);
        put_number(s, p->block_count);
        for (size_t b = 0; b < p->block_count; b++) {
            uint8_t bytes[2 + COLUMN_BLOCK_BYTES];
            size_t n = column_block_save(p->blocks[b], bytes + 2);

            put_le16(bytes, (uint16_t)n);
            put_bytes(s, bytes, 2 + n);
        }
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

int run_cache_write(struct run_data *run, const struct run_cache_file *files, size_t count,
                    run_cache_write_function *write, void *context, struct error *e)
{
    struct sink s = { .write = write, .context = context, .bytes = BUFFER_EMPTY };
    uint8_t head[8];
    int rc;

    if (run->file_count > count || !settle(run))
        return error_memory(e, run->name, "to save it");
    put_bytes(&s, magic, sizeof magic);
    put_le32(head, RUN_CACHE_VERSION);
    put_le32(head + 4, run->merge != 0);
    put_bytes(&s, head, sizeof head);
    put_text(&s, run->name, strlen(run->name));
    put_number(&s, count);
    for (size_t i = 0; i < count; i++)
        put_file(&s, &files[i], i < run->file_count ? &run->files[i] : NULL);
    put_number(&s, run->writer_count);
    for (size_t i = 0; i < run->writer_count; i++)
        put_number(&s, double_bits(run->writer_ends[i]));
    put_number(&s, double_bits(run->start_time));
    put_number(&s, run->points);
    put_number(&s, run->tags.count);
    for (size_t i = 0; i < run->tags.count; i++) {
        put_text(&s, run->tags.entries[i].text, run->tags.entries[i].length);
        put_series(&s, (const struct run_series *)run->tags.items + i);
    }
    flush(&s);
    put_number(&s, s.written);
    flush(&s);
    put_le32(head, s.crc);
    put_bytes(&s, head, 4);
    flush(&s);
    rc = !buffer_ok(&s.bytes) ? error_memory(e, run->name, "to save it")
         : s.failed           ? error_set(e, ERR_IO, "%s: cannot be saved", run->name)
                              : OK;
    buffer_release(&s.bytes);
    return rc;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

struct source {
    const uint8_t *bytes;
    size_t left;             /* of them, without the end */
    struct shared_bytes *of; /* what they are in, or NULL */
    int rc;                  /* OK, or what failed first: then everything is 0 */
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

/* A copy, with a NUL after it; NULL after a failure. */
static char *cached_text(struct source *s, size_t *n)
{
    const uint8_t *bytes;
    char *copy = NULL;

    *n = take_count(s, SIZE_MAX / 2);
    if (s->rc == OK && (bytes = take(s, *n))) {
        if (!(copy = malloc(*n + 1)))
            take_nothing(s, ERR_NOMEM);
        else
            memcpy(copy, bytes, *n), copy[*n] = '\0';
    }
    return copy;
}

/* The same of a text that holds no NUL. */
static char *take_name(struct source *s)
{
    size_t n;
    char *name = cached_text(s, &n);

    if (name && strlen(name) != n)
        take_nothing(s, ERR_CORRUPT);
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

static void take_part(struct source *s, struct point_series *p, size_t columns)
{
    double latest = take_double(s);
    uint64_t most_blobs = cached_number(s), blocks = cached_number(s);

    for (uint64_t i = 0; i < blocks && s->rc == OK; i++) {
        const uint8_t *bytes = take(s, 2);
        size_t n = bytes ? get_le16(bytes) : 0;
        struct column_block *b = (bytes = take(s, n)) ? column_block_load(bytes, n, columns, s->of) : NULL;

        if (!b || !point_series_add_block(p, b))
            take_nothing(s, ERR_CORRUPT);
    }
    p->latest = latest;
    p->most_blobs = most_blobs;
}

static struct series_info *take_info(struct source *s)
{
    struct series_info parts = { .class = (enum series_class)take_count(s, SERIES_BLOBS) }, *info = NULL;
    char *tag = cached_text(s, &parts.tag_length), *plugin = cached_text(s, &parts.plugin_length);
    char *metadata = cached_text(s, &parts.metadata_length);

    parts.tag = tag;
    parts.plugin = plugin;
    parts.metadata = (const uint8_t *)metadata;
    if (s->rc == OK && !(info = series_info_of_parts(&parts)))
        take_nothing(s, ERR_NOMEM);
    free(tag);
    free(plugin);
    free(metadata);
    return info;
}

static void take_series(struct source *s, struct run_data *run)
{
    const size_t number = run->tags.count;
    struct run_series *series = NULL;
    size_t n;
    char *tag = cached_text(s, &n);

    if (s->rc == OK && !(series = tag_index_item(&run->tags, tag, n)))
        take_nothing(s, ERR_NOMEM);
    free(tag);
    if (run->tags.count != number + 1)
        take_nothing(s, ERR_CORRUPT); /* twice */
    if (s->rc != OK || !(series->info = take_info(s)))
        return;
    series->columns = series->info->class == SERIES_SCALARS ? COLUMN_VALUE + 1 : COLUMNS_MOST;
    series->changed = 1;
    n = take_count(s, run->writer_count);
    if (n && !(series->parts = calloc(n, sizeof *series->parts)))
        take_nothing(s, ERR_NOMEM);
    for (; series->part_count < n && s->rc == OK; series->part_count++)
        take_part(s, &series->parts[series->part_count], series->columns);
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
        take_series(s, c->run);
    c->run->changed = 1;
}

/* Whether the length and the CRC at the end are right. */
static int is_whole(const uint8_t *bytes, size_t size)
{
    return size >= END && get_le64(bytes + size - END) == size - END &&
           get_le32(bytes + size - 4) == crc32c(bytes, size - 4);
}

int run_cache_read(struct run_cache *out, const char *name, int merge, const uint8_t *bytes, size_t size,
                   struct shared_bytes *of, struct error *e)
{
    struct source s = { .bytes = bytes, .left = size - END, .of = of };

    *out = (struct run_cache){ .run = NULL };
    if (!is_whole(bytes, size))
        return error_set(e, ERR_CORRUPT, "%s: no saved run", name ? name : "cache");
    if (!(out->run = run_data_new(name ? name : "", merge)))
        return error_memory(e, name, "for it");
    take_run(&s, out, name, merge);
    if (s.left)
        take_nothing(&s, ERR_CORRUPT);
    if (s.rc == OK)
        return OK;
    run_cache_release(out);
    return error_set(e, s.rc, "%s: no saved run", name ? name : "cache");
}

void run_cache_release(struct run_cache *c)
{
    for (size_t i = 0; i < c->count; i++)
        free(c->files[i].path);
    free(c->files);
    run_data_free(c->run);
    *c = (struct run_cache){ .run = NULL };
}
