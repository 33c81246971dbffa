#define ZLIB_CONST /* what is read stays as it is */
#include "eventlog/read/log_unpack.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#if ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif

enum { OUT = 256 * 1024, GZIP_ONLY = 16 }; /* zlib.h of inflateInit2(): "add 16 to decode only the gzip format" */

struct log_unpack {
    enum file_kind kind;
    log_unpack_sink *sink;
    void *context;
    z_stream z;
    struct ZSTD_DCtx_s *zstd;
    size_t want, want_first; /* bytes that zstd wants: now, and at the start of a frame */
    int at_end;              /* of a member or frame */
    int damaged;
    uint8_t out[OUT];
};

static int unpack_no_memory(struct error *e)
{
    return error_memory(e, NULL, "for unpacking");
}

/* ---- gzip ------------------------------------------------------------------------------------------------------ */

static int gzip_new(struct log_unpack *u, struct error *e)
{
    return inflateInit2(&u->z, MAX_WBITS + GZIP_ONLY) == Z_OK ? OK : unpack_no_memory(e);
}

static int gzip_feed(struct log_unpack *u, const uint8_t *bytes, size_t n, struct error *e)
{
    z_stream *z = &u->z;
    int rc = OK, status;

    z->next_in = bytes;
    z->avail_in = (uInt)n;
    z->avail_out = 1;
    while (rc == OK && !u->damaged && (z->avail_in || !z->avail_out)) {
        while (u->at_end && z->avail_in && !*z->next_in) {
            z->next_in++;
            z->avail_in--;
        }
        if (u->at_end && !z->avail_in)
            break;
        if (u->at_end)
            inflateReset(z);
        u->at_end = 0;
        z->next_out = u->out;
        z->avail_out = OUT;
        status = inflate(z, Z_NO_FLUSH);
        if (status == Z_MEM_ERROR)
            return unpack_no_memory(e);
        u->at_end = status == Z_STREAM_END;
        u->damaged = !u->at_end && status != Z_OK && status != Z_BUF_ERROR;
        rc = u->sink(u->context, u->out, OUT - z->avail_out, e);
    }
    return rc;
}

/* ---- zstd ------------------------------------------------------------------------------------------------------ */

#if ZSTD
static int zstd_new(struct log_unpack *u, struct error *e)
{
    if (!(u->zstd = ZSTD_createDStream()))
        return unpack_no_memory(e);
    u->want = u->want_first = ZSTD_initDStream(u->zstd);
    return OK;
}

static void zstd_free(struct log_unpack *u)
{
    ZSTD_freeDStream(u->zstd);
}

/* A call that finds damage returns nothing of what it unpacked before the damage. So each call gets only what zstd asks
 * for, which is at most one block. */
static int zstd_feed(struct log_unpack *u, const uint8_t *bytes, size_t n, struct error *e)
{
    ZSTD_inBuffer in = { bytes, 0, 0 };
    int rc = OK, full = 0;

    while (rc == OK && !u->damaged && (in.pos < n || full)) {
        ZSTD_outBuffer out = { u->out, OUT, 0 };
        ZSTD_ErrorCode code;
        size_t left;

        in.size = in.pos + (u->want < n - in.pos ? u->want : n - in.pos);
        left = ZSTD_decompressStream(u->zstd, &out, &in);
        code = ZSTD_getErrorCode(left);
        if (code == ZSTD_error_memory_allocation)
            return unpack_no_memory(e);
        if (code == ZSTD_error_frameParameter_windowTooLarge)
            return error_set(e, ERR_IO, "needs a window of more than 128 MiB; 'zstd -d --long=31' unpacks it");
        u->damaged = code != ZSTD_error_no_error;
        u->at_end = !left;
        u->want = left ? left : u->want_first;
        full = left && out.pos == OUT; /* after the end of a frame an empty call would begin another one */
        rc = u->sink(u->context, u->out, out.pos, e);
    }
    return rc;
}
#else
static int zstd_new(struct log_unpack *u, struct error *e)
{
    (void)u;
    return error_set(e, ERR_IO, "a zstd file, and this program was built without libzstd; 'zstd -d' unpacks it");
}

static void zstd_free(struct log_unpack *u)
{
    (void)u;
}

static int zstd_feed(struct log_unpack *u, const uint8_t *bytes, size_t n, struct error *e)
{
    (void)bytes;
    (void)n;
    return zstd_new(u, e);
}
#endif

/* ---- either ---------------------------------------------------------------------------------------------------- */

int log_unpack_new(struct log_unpack **out, enum file_kind kind, log_unpack_sink *sink, void *context, struct error *e)
{
    struct log_unpack *u = calloc(1, sizeof *u);
    int rc;

    *out = NULL;
    if (!u)
        return unpack_no_memory(e);
    u->kind = kind;
    u->sink = sink;
    u->context = context;
    if ((rc = kind == FILE_KIND_ZSTD ? zstd_new(u, e) : gzip_new(u, e)) != OK) {
        free(u);
        return rc;
    }
    *out = u;
    return OK;
}

void log_unpack_free(struct log_unpack *u)
{
    if (!u)
        return;
    u->kind == FILE_KIND_ZSTD ? zstd_free(u) : (void)inflateEnd(&u->z);
    free(u);
}

int log_unpack_feed(struct log_unpack *u, const void *bytes, size_t n, struct error *e)
{
    const uint8_t *p = bytes;
    int rc = OK;

    while (rc == OK && n && !u->damaged) {
        size_t piece = n < INT_MAX ? n : INT_MAX; /* zlib counts in unsigned ints */

        rc = u->kind == FILE_KIND_ZSTD ? zstd_feed(u, p, piece, e) : gzip_feed(u, p, piece, e);
        p += piece;
        n -= piece;
    }
    return rc;
}

int log_unpack_whole(const struct log_unpack *u)
{
    return u->at_end && !u->damaged;
}
