/* Any bytes as a saved run, as they are and with the length and the CRC made right: read, or thrown away. What is read is
 * shown, goes on, and is written so that it comes back the same. */
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

static void try_bytes(const uint8_t *data, size_t size)
{
    struct buffer first, second;
    struct run_view *view;
    struct run_cache c;

    if (read_bytes(&c, data, size, 1) != OK)
        return;
    if (run_data_view(c.run, &view, NULL) == OK)
        run_view_drop(view);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy;

    try_bytes(data, size);
    if (size < 12 || !(copy = malloc(size)))
        return 0;
    memcpy(copy, data, size);
    put_le64(copy + size - 12, size - 12);
    put_le32(copy + size - 4, crc32c(copy, size - 4));
    try_bytes(copy, size);
    free(copy);
    return 0;
}
