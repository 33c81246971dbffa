/* Any bytes as a saved run, as they are and with the length and the CRC made right: read, or thrown away. What is read is
 * shown, goes on, and is written so that it comes back the same. */
#include "eventlog/server/run_cache.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/crc32c.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
    const uint8_t *bytes;
    size_t left;
    struct buffer out;
};

static long give(void *context, void *out, size_t n)
{
    struct bytes *b = context;
    size_t some = n < b->left ? n : b->left;

    some = some > 1000 ? 1000 : some;
    if (some)
        memcpy(out, b->bytes, some);
    b->bytes += some;
    b->left -= some;
    return (long)some;
}

static int keep(void *context, const void *bytes, size_t n)
{
    struct bytes *b = context;

    buffer_append(&b->out, bytes, n);
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
    struct bytes b = { .out = BUFFER_EMPTY };

    if (run_cache_write(c->run, c->files, c->count, keep, &b, NULL) != OK)
        abort();
    return b.out;
}

static void try_bytes(const uint8_t *data, size_t size)
{
    struct bytes in = { data, size, BUFFER_EMPTY };
    struct buffer first, second;
    struct run_view *view;
    struct run_cache c;

    if (run_cache_read(&c, "r", 1, give, &in, size, NULL) != OK)
        return;
    if (run_data_view(c.run, &view, NULL) == OK)
        run_view_drop(view);
    first = written(&c);
    run_cache_release(&c);
    in = (struct bytes){ (const uint8_t *)first.data, first.length, BUFFER_EMPTY };
    if (run_cache_read(&c, "r", 1, give, &in, first.length, NULL) != OK)
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
