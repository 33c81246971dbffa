/* Any bytes as a gzip or zstd stream: in pieces of any size the same is said of its end, and the same comes out; of one
 * that is damaged, where zstd sees it sooner or later, a beginning of the same. The bytes compressed must come back, and
 * a beginning of them where that is cut. */
#include "eventlog/read/log_unpack.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 20 };

struct output {
    uint8_t bytes[MOST];
    size_t n;
};

static int sink(void *context, const void *bytes, size_t n, struct error *e)
{
    struct output *o = context;

    (void)e;
    if (n > MOST - o->n)
        return ERR_PEER;
    memcpy(o->bytes + o->n, bytes, n);
    o->n += n;
    return OK;
}

/* 1, 0, or an error. */
static int unpack(struct output *o, enum file_kind kind, const uint8_t *bytes, size_t n, size_t piece)
{
    struct log_unpack *u;
    int rc = log_unpack_new(&u, kind, sink, o, NULL);

    o->n = 0;
    for (size_t at = 0; rc == OK && at < n; at += piece)
        rc = log_unpack_feed(u, bytes + at, piece < n - at ? piece : n - at, NULL);
    if (rc == OK)
        rc = log_unpack_whole(u);
    log_unpack_free(u);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct output whole, pieces;
    static uint8_t packed[1 << 17];
    z_stream z = { 0 };
    size_t n, cut;
    int rc, other;

    if (size < 2 || size > sizeof packed / 2)
        return 0;
    rc = unpack(&whole, data[0] & 1 ? FILE_KIND_GZIP : FILE_KIND_ZSTD, data + 2, size - 2, size);
    other = unpack(&pieces, data[0] & 1 ? FILE_KIND_GZIP : FILE_KIND_ZSTD, data + 2, size - 2, 1 + data[1] % 64u);
    if (rc >= 0 && other >= 0)
        if (rc != other || (rc && whole.n != pieces.n) ||
            memcmp(whole.bytes, pieces.bytes, whole.n < pieces.n ? whole.n : pieces.n) != 0)
            abort();

    if (deflateInit2(&z, 1, Z_DEFLATED, MAX_WBITS + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)size;
    z.next_out = packed;
    z.avail_out = sizeof packed;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END)
        abort();
    n = sizeof packed - z.avail_out;
    deflateEnd(&z);
    if (unpack(&whole, FILE_KIND_GZIP, packed, n, 1 + data[1]) != 1 || whole.n != size ||
        memcmp(whole.bytes, data, size) != 0)
        abort();
    cut = 1 + (data[0] * 256u + data[1]) % (n - 1);
    if (unpack(&pieces, FILE_KIND_GZIP, packed, cut, cut) != 0 || pieces.n > size ||
        memcmp(pieces.bytes, data, pieces.n) != 0)
        abort();
    return 0;
}
