#include "eventlog/tool/gzip_packing.h"

#include "base/program/ordered_work.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#if DEFLATE
#include <libdeflate.h>
#endif

enum { BLOCK = 1 << 20 };

/* ---- a member -------------------------------------------------------------------------------------------------- */

#if DEFLATE
typedef struct libdeflate_compressor *compressor;

static compressor compressor_new(int level)
{
    return libdeflate_alloc_compressor(level);
}

static void compressor_free(compressor c)
{
    if (c)
        libdeflate_free_compressor(c);
}

static size_t member_bound(size_t n)
{
    return libdeflate_gzip_compress_bound(NULL, n);
}

/* The member's length; 0: it could not be packed. Its header has no name and time 0. */
static size_t pack_member(compressor c, const void *bytes, size_t n, void *out, size_t room)
{
    return libdeflate_gzip_compress(c, bytes, n, out, room);
}
#else
typedef z_stream *compressor;

static compressor compressor_new(int level)
{
    z_stream *z = calloc(1, sizeof *z);

    if (z && deflateInit2(z, level, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) != Z_OK) { /* 31: gzip */
        free(z);
        z = NULL;
    }
    return z;
}

static void compressor_free(compressor z)
{
    if (z)
        deflateEnd(z);
    free(z);
}

static size_t member_bound(size_t n)
{
    return compressBound(n) + 64; /* gzip's head and end are longer than zlib's */
}

static size_t pack_member(compressor z, const void *bytes, size_t n, void *out, size_t room)
{
    deflateReset(z);
    z->next_in = (Bytef *)(uintptr_t)bytes;
    z->avail_in = (uInt)n;
    z->next_out = out;
    z->avail_out = (uInt)room;
    return deflate(z, Z_FINISH) == Z_STREAM_END ? room - z->avail_out : 0;
}
#endif

/* ---- blocks ---------------------------------------------------------------------------------------------------- */

struct gzip_block {
    compressor compressor; /* made when it is first packed */
    char *bytes, *packed;
    size_t n, packed_n; /* packed_n 0: impossible */
};

struct gzip_packing {
    void (*write)(void *context, const void *bytes, size_t n);
    void *context;
    struct ordered_work *work;
    int level, failed, any;
};

static void pack_block(void *context, void *item)
{
    const struct gzip_packing *p = context;
    struct gzip_block *b = item;

    if (!b->compressor)
        b->compressor = compressor_new(p->level);
    if (!b->packed)
        b->packed = malloc(member_bound(BLOCK));
    b->packed_n = b->compressor && b->packed
                      ? pack_member(b->compressor, b->bytes, b->n, b->packed, member_bound(BLOCK))
                      : 0;
}

static void write_block(void *context, void *item)
{
    struct gzip_packing *p = context;
    struct gzip_block *b = item;

    if (b->packed_n)
        p->write(p->context, b->packed, b->packed_n);
    else
        p->failed = 1;
    b->n = 0;
}

static void release_block(void *context, void *item)
{
    struct gzip_block *b = item;

    (void)context;
    compressor_free(b->compressor);
    free(b->bytes);
    free(b->packed);
}

int gzip_packing_open(struct gzip_packing **out, int level, void (*write)(void *context, const void *bytes, size_t n),
                      void *context, struct error *e)
{
    struct gzip_packing *p = calloc(1, sizeof *p);
    const struct ordered_work_calls calls = { sizeof(struct gzip_block), pack_block, write_block, p, NULL };

    *out = NULL;
    if (!p)
        return error_memory(e, NULL, "for compression");
    if (ordered_work_open(&p->work, &calls, e) != OK) {
        free(p);
        return ERR_NOMEM;
    }
    p->write = write;
    p->context = context;
    p->level = level;
    *out = p;
    return OK;
}

void gzip_packing_level(struct gzip_packing *p, int level)
{
    p->level = level;
}

static void give(struct gzip_packing *p)
{
    p->any = 1;
    ordered_work_give(p->work);
}

void gzip_packing_add(struct gzip_packing *p, const void *bytes, size_t n)
{
    const char *from = bytes;

    while (n) {
        struct gzip_block *b = ordered_work_item(p->work);
        size_t piece = BLOCK - b->n < n ? BLOCK - b->n : n;

        if (!b->bytes && !(b->bytes = malloc(BLOCK))) {
            p->failed = 1;
            return;
        }
        memcpy(b->bytes + b->n, from, piece);
        b->n += piece;
        from += piece;
        n -= piece;
        if (b->n == BLOCK)
            give(p);
    }
}

int gzip_packing_finish(struct gzip_packing *p, struct error *e)
{
    const struct gzip_block *b = ordered_work_item(p->work);

    if (b->n || !p->any)
        give(p);
    ordered_work_finish(p->work);
    return p->failed ? error_memory(e, NULL, "for compression") : OK;
}

void gzip_packing_close(struct gzip_packing *p)
{
    if (!p)
        return;
    ordered_work_close(p->work, release_block);
    free(p);
}
