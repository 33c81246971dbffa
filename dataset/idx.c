#include "dataset/idx.h"

#include "base/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum {
    HEADER_MAX = 4 + 4 * IDX_RANK_MAX,
    DEFLATE_RATIO_MAX = 1032, /* maximum compression of deflate (zlib's technical notes) */
    READ_BYTES = 128 * 1024,  /* stays in the L2 cache between read(2) and inflate */
    HUGE_PAGE = 2 * 1024 * 1024,
};

/*
 * plain:    header, then data
 * gzip:     the same behind inflate; several members one after another count as one stream (RFC 1952, 2.2)
 * The first two bytes tell: 1f 8b is gzip, 00 00 an IDX header, anything else neither.
 */
struct idx_decoder {
    char name[PATH_MAX];
    uint64_t file_bytes, fed; /* length of the input; bytes fed so far */
    uint8_t first[2];
    int gzip, inflating, member_end; /* gzip input; stream is initialised; the last byte read ended a member */
    z_stream stream;
    uint8_t header[HEADER_MAX];
    size_t header_have, header_need; /* need: 4 until the rank is known */
    int header_done;
    size_t filled; /* bytes of x.data read so far */
    struct idx x;
};

void idx_release(struct idx *x)
{
    free(x->data);
    memset(x, 0, sizeof *x);
}

static size_t type_width(int type)
{
    switch (type) {
    case IDX_UINT8:
    case IDX_INT8: return 1;
    case IDX_INT16: return 2;
    case IDX_INT32:
    case IDX_FLOAT: return 4;
    case IDX_DOUBLE: return 8;
    default: return 0;
    }
}

int idx_decoder_new(struct idx_decoder **out, const char *name, uint64_t file_bytes, struct error *e)
{
    struct idx_decoder *d;

    *out = NULL;
    if (strlen(name) >= sizeof d->name)
        return error_set(e, ERR_ARG, "%.100s...: path too long", name);
    if (!(d = calloc(1, sizeof *d)))
        return error_memory(e, name, "for it");
    memcpy(d->name, name, strlen(name) + 1);
    d->file_bytes = file_bytes;
    d->header_need = 4;
    *out = d;
    return OK;
}

void idx_decoder_free(struct idx_decoder *d)
{
    if (!d)
        return;
    if (d->inflating)
        inflateEnd(&d->stream);
    idx_release(&d->x);
    free(d);
}

/* Puts large arrays on huge pages: otherwise the 47 MB of MNIST cost 11,500 page faults before the first step. */
static uint8_t *allocate(size_t bytes)
{
    void *p;

    if (bytes < HUGE_PAGE)
        return malloc(bytes ? bytes : 1);
    if (posix_memalign(&p, HUGE_PAGE, bytes))
        return NULL;
    madvise(p, bytes, MADV_HUGEPAGE); /* only advice: if it is refused, small pages are used */
    return p;
}

/* The header is whole: check it and make room for the data. */
static int header_accept(struct idx_decoder *d, struct error *e)
{
    struct idx *x = &d->x;
    uint64_t limit = d->file_bytes, bytes = type_width(x->type);
    char shape[64];
    int n = 0;

    if (d->gzip && limit < UINT64_MAX / DEFLATE_RATIO_MAX)
        limit *= DEFLATE_RATIO_MAX;
    for (int i = 0; i < IDX_RANK_MAX; i++) {
        x->size[i] = i < x->rank ? get_be32(d->header + 4 + 4 * i) : 1;
        if (i < x->rank)
            n += snprintf(shape + n, sizeof shape - (size_t)n, "%s%u", i ? "x" : "", x->size[i]);
    }
    for (int i = 0; i < x->rank; i++) {
        if (x->size[i] && bytes > limit / x->size[i])
            return error_set(e, ERR_CORRUPT,
                             "%s: byte 4: the header promises %s elements, more than this file of %llu bytes can hold",
                             d->name, shape, (unsigned long long)d->file_bytes);
        bytes *= x->size[i];
    }
    if (bytes > SIZE_MAX - HUGE_PAGE || !(x->data = allocate((size_t)bytes)))
        return error_memory(e, d->name, "for %s elements", shape);
    x->bytes = (size_t)bytes;
    d->header_done = 1;
    return OK;
}

/* Takes header bytes from the unpacked stream; *used: how many of the n it took. */
static int header_feed(struct idx_decoder *d, const uint8_t *bytes, size_t n, size_t *used, struct error *e)
{
    int rc;

    *used = 0;
    while (!d->header_done && *used < n) {
        d->header[d->header_have++] = bytes[(*used)++];
        if (d->header_have == 4) {
            const uint8_t *h = d->header;

            if (h[0] || h[1] || !type_width(h[2]) || h[3] < 1 || h[3] > IDX_RANK_MAX)
                return error_set(e, ERR_CORRUPT,
                                 "%s: byte 0: %02x %02x %02x %02x is not an IDX header; need 00 00, a type (08 for "
                                 "bytes) and a rank of 1 to %d",
                                 d->name, h[0], h[1], h[2], h[3], IDX_RANK_MAX);
            d->x.type = h[2];
            d->x.rank = h[3];
            d->header_need = 4 + 4 * (size_t)h[3];
        }
        if (d->header_have == d->header_need && (rc = header_accept(d, e)) < 0)
            return rc;
    }
    return OK;
}

static int too_long(const struct idx_decoder *d, uint64_t at, struct error *e)
{
    return error_set(e, ERR_CORRUPT,
                     "%s: byte %llu: the file continues after the %zu bytes of data that its header promises", d->name,
                     (unsigned long long)at, d->x.bytes);
}

static int plain_feed(struct idx_decoder *d, const uint8_t *bytes, size_t n, uint64_t at, struct error *e)
{
    size_t used;
    int rc;

    if ((rc = header_feed(d, bytes, n, &used, e)) < 0)
        return rc;
    if (n - used > d->x.bytes - d->filled)
        return too_long(d, at + used + (d->x.bytes - d->filled), e);
    if (n > used)
        memcpy(d->x.data + d->filled, bytes + used, n - used);
    d->filled += n - used;
    return OK;
}

static int gzip_start(struct idx_decoder *d, struct error *e)
{
    int rc = d->inflating ? inflateReset(&d->stream) : inflateInit2(&d->stream, 15 + 16); /* 16: gzip frame and CRC */

    if (rc != Z_OK)
        return error_memory(e, d->name, "for gunzip");
    d->inflating = 1;
    d->member_end = 0;
    return OK;
}

static int gzip_feed(struct idx_decoder *d, const uint8_t *bytes, size_t n, uint64_t at, struct error *e)
{
    z_stream *s = &d->stream;
    uint8_t small[HEADER_MAX];
    unsigned long long where;
    size_t used;
    int rc = Z_OK, header_rc;

    s->next_in = (z_const Bytef *)(uintptr_t)bytes; /* zlib only reads, but declares that only with ZLIB_CONST */
    s->avail_in = (uInt)n;
    while (s->avail_in || rc == Z_OK) {
        uint8_t *to = d->header_done && d->filled < d->x.bytes ? d->x.data + d->filled : small;
        size_t room = to == small ? (d->header_done ? 1 : d->header_need - d->header_have) : d->x.bytes - d->filled;

        if (d->member_end) {
            if (!s->avail_in)
                break;
            if (gzip_start(d, e) < 0)
                return ERR_NOMEM;
        }
        room = room > INT_MAX ? INT_MAX : room;
        s->next_out = to;
        s->avail_out = (uInt)room;
        rc = inflate(s, Z_NO_FLUSH);
        where = at + (n - s->avail_in);
        if (rc == Z_BUF_ERROR) /* needs more input; not an error */
            return OK;
        if (rc == Z_MEM_ERROR)
            return error_memory(e, d->name, "for gunzip");
        if (rc != Z_OK && rc != Z_STREAM_END)
            return error_set(e, ERR_CORRUPT, "%s: byte %llu: the gzip stream is damaged (%s)", d->name, where,
                             s->msg ? s->msg : "it needs a dictionary");
        d->member_end = rc == Z_STREAM_END;
        room -= s->avail_out;
        if (to != small)
            d->filled += room;
        else if (d->header_done && room)
            return too_long(d, where, e);
        else if ((header_rc = header_feed(d, small, room, &used, e)) < 0)
            return header_rc;
    }
    return OK;
}

int idx_decoder_feed(struct idx_decoder *d, const uint8_t *bytes, size_t n, struct error *e)
{
    uint64_t at;
    int rc;

    /* Two bytes decide the kind; they are kept and passed on once both have come. */
    while (n && d->fed < 2) {
        d->first[d->fed++] = *bytes++;
        n--;
        if (d->fed < 2)
            continue;
        d->gzip = d->first[0] == 0x1f && d->first[1] == 0x8b;
        if (d->gzip && gzip_start(d, e) < 0)
            return ERR_NOMEM;
        if ((rc = (d->gzip ? gzip_feed : plain_feed)(d, d->first, 2, 0, e)) < 0)
            return rc;
    }
    while (n) {
        size_t piece = n > INT_MAX ? INT_MAX : n;

        at = d->fed;
        d->fed += piece;
        if ((rc = (d->gzip ? gzip_feed : plain_feed)(d, bytes, piece, at, e)) < 0)
            return rc;
        bytes += piece;
        n -= piece;
    }
    return OK;
}

int idx_decoder_finish(struct idx_decoder *d, struct idx *out, struct error *e)
{
    unsigned long long end = d->fed;

    memset(out, 0, sizeof *out);
    if (d->gzip && !d->member_end)
        return error_set(
            e, ERR_CORRUPT,
            "%s: byte %llu: the gzip stream is truncated: the file ends after %zu bytes of data%s; get the file again",
            d->name, end, d->filled, d->header_done ? "" : " (inside the header)");
    if (!d->header_done)
        return error_set(e, ERR_CORRUPT, "%s: byte %llu: the file ends inside the IDX header", d->name, end);
    if (d->filled < d->x.bytes)
        return error_set(e, ERR_CORRUPT,
                         "%s: byte %llu: the file ends after %zu of the %zu bytes of data that its header promises; "
                         "get the file again",
                         d->name, end, d->filled, d->x.bytes);
    *out = d->x;
    memset(&d->x, 0, sizeof d->x);
    return OK;
}

int idx_read(struct idx *out, const char *path, struct error *e)
{
    struct idx_decoder *d = NULL;
    uint8_t *piece = NULL;
    struct stat st;
    ssize_t n;
    int rc, fd = open(path, O_RDONLY | O_CLOEXEC);

    memset(out, 0, sizeof *out);
    if (fd < 0)
        return error_system(e, "%s: cannot open", path);
    if (fstat(fd, &st) < 0) {
        rc = error_system(e, "%s: cannot read its length", path);
        goto done;
    }
    if (!(piece = malloc(READ_BYTES))) {
        rc = error_memory(e, path, "for it");
        goto done;
    }
    if ((rc = idx_decoder_new(&d, path, (uint64_t)st.st_size, e)) < 0)
        goto done;
    while ((n = read(fd, piece, READ_BYTES)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            rc = error_system(e, "%s: cannot read", path);
            goto done;
        }
        if ((rc = idx_decoder_feed(d, piece, (size_t)n, e)) < 0)
            goto done;
    }
    rc = idx_decoder_finish(d, out, e);
done:
    idx_decoder_free(d);
    free(piece);
    close(fd);
    return rc;
}
