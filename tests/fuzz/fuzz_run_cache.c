/* Any bytes as a saved run, as they are and with the length and the CRC of the index made right: shown by the index, read,
 * or thrown away. What is read was shown, goes on, and is written so that it comes back the same. The same bytes as the
 * points of a series, whose CRC has been looked at. */
#include "eventlog/server/run_cache.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/crc32c.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int keep(void *context, const void *bytes, size_t n)
{
    buffer_append(context, bytes, n);
    return 0;
}

/* It goes on with an event of an old and one of a new file. */
static void go_on(struct run_data *run, size_t count)
{
    static const uint8_t number[] = { 0x09, 0,    0,    0,    0,   0,    0, 0, 0x40, 0x2a, 0x0a,
                                      0x0a, 0x08, 0x0a, 0x01, 'a', 0x15, 0, 0, 0x80, 0x3f };
    struct run_view *view;
    struct event event;

    if (event_decode(number, sizeof number, &event, NULL) != OK)
        abort();
    for (size_t file = count ? count - 1 : 0; file <= count; file++)
        if (run_data_event(run, file, "/nowhere", &event, 0, NULL) < 0)
            abort();
    if (run_data_view(run, &view, NULL) == OK)
        run_view_drop(view);
}

static struct buffer written(const struct run_cache *c)
{
    struct buffer b = BUFFER_EMPTY;

    if (run_cache_write(c->run, c->files, c->count, keep, &b, NULL) != OK)
        abort();
    return b;
}

/* in_place: the points stay where the bytes are. */
static int read_bytes(struct run_cache *c, const void *data, size_t size, int in_place)
{
    struct shared_bytes *all = shared_bytes_new(size + !size);
    int rc;

    if (!all)
        abort();
    bytes_copy(all->bytes, data, size);
    rc = run_cache_read(c, "r", 1, all->bytes, size, in_place ? all : NULL, NULL);
    shared_bytes_drop(all);
    return rc;
}

/* What the index shows, in new memory. */
static int preview(struct run_cache *c, const uint8_t *data, size_t size)
{
    const uint64_t index = size < RUN_CACHE_END ? 0 : run_cache_index_size(data + size - RUN_CACHE_END, size);
    struct shared_bytes *all = shared_bytes_new(size + !size);
    struct saved_points *points = all ? saved_points_of_bytes(all) : NULL;
    const struct run_cache_place place = { points, 0, size };
    uint8_t *copy = malloc((size_t)index + !index);
    int rc = ERR_CORRUPT;

    if (!points || !copy)
        abort();
    bytes_copy(all->bytes, data, size);
    bytes_copy(copy, data + size - index, (size_t)index);
    *c = (struct run_cache){ .run = NULL };
    if (index)
        rc = run_cache_preview(c, "r", 1, copy, (size_t)index, &place, NULL);
    free(copy);
    saved_points_drop(points);
    shared_bytes_drop(all);
    return rc;
}

/* The same series, with the same points where there are any. */
static void expect_shown(const struct run_view *shown, const struct run_view *read)
{
    if (!shown != !read || (shown && shown->count != read->count))
        abort();
    for (size_t i = 0; shown && i < shown->count; i++) {
        struct series_view *a = shown->series[i], *b = read->series[i];

        if (!series_view_fill(a) || a->count != b->count || (a->count && a->last_step != b->last_step) ||
            double_bits(a->latest) != double_bits(b->latest) || a->most_blobs != b->most_blobs)
            abort();
        for (size_t row = 0; row < a->count; row++)
            if (series_view_at(a, row, COLUMN_WALL) != series_view_at(b, row, COLUMN_WALL))
                abort();
    }
}

static void try_bytes(const uint8_t *data, size_t size)
{
    struct buffer first, second;
    struct run_view *view;
    struct run_cache c, shown;
    const int is_shown = preview(&shown, data, size) == OK;

    for (size_t i = 0; is_shown && shown.view && i < shown.view->count; i++)
        series_view_fill(shown.view->series[i]);
    if (read_bytes(&c, data, size, 1) != OK) {
        run_cache_release(&shown);
        return;
    }
    if (run_data_view(c.run, &view, NULL) == OK) {
        if (is_shown)
            expect_shown(shown.view, view);
        run_view_drop(view);
    }
    run_cache_release(&shown);
    first = written(&c);
    run_cache_release(&c);
    if (read_bytes(&c, first.data, first.length, 0) != OK)
        abort();
    second = written(&c);
    if (first.length != second.length || memcmp(first.data, second.data, first.length) != 0)
        abort();
    go_on(c.run, c.count);
    buffer_release(&first);
    buffer_release(&second);
    run_cache_release(&c);
}

static void try_points(const uint8_t *data, size_t size)
{
    for (size_t columns = COLUMN_VALUE + 1; columns <= COLUMNS_MOST; columns++) {
        struct point_series p = { .rows = 0 }, again;
        struct saved_place place = { .length = size };

        if (point_series_load(&p, data, size, columns, NULL)) {
            place.rows = p.rows;
            place.last_step = p.last_step;
            if (!saved_points_take(&place, data, columns, NULL, &again) || again.block_count != p.block_count)
                abort();
            point_series_release(&again);
            place.rows++;
            if (saved_points_take(&place, data, columns, NULL, &again))
                abort();
        }
        point_series_release(&p);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy;
    size_t index;

    try_bytes(data, size);
    try_points(data, size);
    if (size < RUN_CACHE_END || !(copy = malloc(size)))
        return 0;
    memcpy(copy, data, size);
    if (!(index = (size_t)run_cache_index_size(copy + size - RUN_CACHE_END, size)))
        put_le64(copy + size - RUN_CACHE_END, (index = size) - RUN_CACHE_END);
    put_le32(copy + size - 4, crc32c(copy + size - index, index - 4));
    try_bytes(copy, size);
    free(copy);
    return 0;
}
