#include "dataset/stream/record_index.h"

#include "base/array.h"
#include "base/file.h"
#include "base/record_frame.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN_MOST = 1024, OPEN_OTHERS = 64, WINDOW = 1 << 16 };

/* A file that is indexed, and a window of it. */
struct indexed_file {
    const char *path;
    int fd;
    uint64_t size, at; /* at: where the window begins */
    size_t have;
    uint8_t window[WINDOW];
};

/* RECORD_HEADER bytes at offset, of which the file has so many; NULL: they cannot be read. */
static const uint8_t *header_at(struct indexed_file *f, uint64_t offset, struct error *e)
{
    ssize_t got;

    if (offset < f->at || offset - f->at > f->have || f->have - (offset - f->at) < RECORD_HEADER) {
        const uint64_t left = f->size - offset;
        /* After a long record little will be wanted of what follows, but its header. */
        const size_t n = offset - f->at < WINDOW && left > WINDOW ? WINDOW : left < 4096 ? (size_t)left : 4096;

        if ((got = file_read_at(f->fd, f->window, n, offset)) < (ssize_t)RECORD_HEADER) {
            if (got < 0)
                error_system(e, "%s: cannot read", f->path);
            else
                error_set(e, ERR_IO, "%s: byte %llu: the file was truncated while it was read", f->path,
                          (unsigned long long)(offset + (uint64_t)got));
            return NULL;
        }
        f->at = offset;
        f->have = (size_t)got;
    }
    return f->window + (offset - f->at);
}

static int fits(const struct indexed_file *f, uint64_t offset, uint64_t length)
{
    return f->size - offset >= RECORD_OVERHEAD && length <= f->size - offset - RECORD_OVERHEAD;
}

/* Lists what begins at *offset, and moves it behind. */
static int list_one(struct record_index *x, struct indexed_file *f, uint32_t file, uint64_t *offset, struct error *e)
{
    struct record_place place = { *offset, RECORD_NONE, file };
    const uint8_t *header;
    uint64_t length;
    int right = 0;

    if (!ARRAY_ROOM(x->places, x->room, x->count + 1))
        return error_memory(e, f->path, "for an index of its records");
    while (!right && f->size - *offset >= RECORD_HEADER) {
        if (!(header = header_at(f, *offset, e)))
            return e && e->code ? e->code : ERR_IO;
        right = record_header_right(header, &length) && fits(f, *offset, length);
        if (!right)
            ++*offset;
    }
    if (right && *offset == place.offset) {
        place.length = (uint32_t)length;
        *offset += RECORD_OVERHEAD + length;
    } else if (!right) {
        *offset = f->size;
    }
    x->places[x->count++] = place;
    return OK;
}

static int list_file(struct record_index *x, uint32_t file, size_t most, struct error *e)
{
    struct indexed_file *f = malloc(sizeof *f);
    uint64_t offset = 0;
    struct stat st;
    int rc = OK;

    if (!f)
        return error_memory(e, x->paths[file], "for reading it");
    f->path = x->paths[file];
    f->at = f->have = 0;
    if ((f->fd = open(f->path, O_RDONLY | O_CLOEXEC)) < 0 || fstat(f->fd, &st) < 0) {
        rc = error_system(e, "%s: cannot open", f->path);
    } else {
        f->size = (uint64_t)st.st_size;
        if (file_read_at(f->fd, f->window, 3, 0) == 3 && !memcmp(f->window, "\x1f\x8b\x08", 3))
            rc = error_set(e, ERR_ARG, "%s: compressed with gzip, so no record can be found in it; unpack it (gunzip)",
                           f->path);
    }
    while (rc == OK && offset < f->size && x->count < most)
        rc = list_one(x, f, file, &offset, e);
    if (x->fds)
        x->fds[file] = f->fd;
    else if (f->fd >= 0)
        close(f->fd);
    free(f);
    return rc;
}

int record_index_make(struct record_index *out, const char *const *paths, size_t files, size_t most, struct error *e)
{
    int rc = OK;

    *out = (struct record_index){ .paths = paths, .files = files };
    if (files <= OPEN_MOST && file_open_room(files + OPEN_OTHERS)) {
        if (!(out->fds = malloc((files ? files : 1) * sizeof *out->fds)))
            return error_memory(e, NULL, "for %zu files", files);
        for (size_t i = 0; i < files; i++)
            out->fds[i] = -1;
    }
    for (size_t i = 0; i < files && rc == OK && out->count < most; i++)
        rc = list_file(out, (uint32_t)i, most, e);
    return rc;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* n bytes of the file at offset. */
static int read_piece(const struct record_index *x, uint32_t file, uint64_t offset, void *out, size_t n,
                      struct error *e)
{
    const char *path = x->paths[file];
    const int own = !x->fds || x->fds[file] < 0, fd = own ? open(path, O_RDONLY | O_CLOEXEC) : x->fds[file];
    ssize_t got = fd < 0 ? -1 : file_read_at(fd, out, n, offset);
    int rc = OK;

    if (fd < 0)
        return error_system(e, "%s: cannot open", path);
    if (got < 0)
        rc = error_system(e, "%s: cannot read", path);
    else if ((size_t)got < n)
        rc = error_set(e, ERR_CORRUPT, "%s: byte %llu: the file ends in a record, but did not when it was listed", path,
                       (unsigned long long)(offset + (uint64_t)got));
    if (own)
        close(fd);
    return rc;
}

static int no_record(const struct record_index *x, const struct record_place *p, struct error *e)
{
    return error_set(e, ERR_CORRUPT, "%s: byte %llu: broken record: its length is damaged, or the file ends in it",
                     x->paths[p->file], (unsigned long long)p->offset);
}

int record_index_part(const struct record_index *x, size_t i, size_t from, uint8_t *out, size_t n, struct error *e)
{
    const struct record_place *p = &x->places[i];

    if (p->length == RECORD_NONE)
        return no_record(x, p, e);
    return read_piece(x, p->file, p->offset + RECORD_HEADER + from, out, n, e);
}

int record_index_read(const struct record_index *x, size_t i, struct buffer *out, struct error *e)
{
    const struct record_place *p = &x->places[i];
    const size_t whole = (size_t)p->length + RECORD_OVERHEAD;
    uint64_t length;
    uint8_t *bytes;
    int rc;

    buffer_clear(out);
    if (p->length == RECORD_NONE)
        return no_record(x, p, e);
    if (!(bytes = (uint8_t *)buffer_reserve(out, whole)))
        return error_memory(e, x->paths[p->file], "for a record of %zu bytes", (size_t)p->length);
    if ((rc = read_piece(x, p->file, p->offset, bytes, whole, e)) < 0)
        return rc;
    if (!record_header_right(bytes, &length) || length != p->length ||
        get_le32(bytes + RECORD_HEADER + p->length) != crc32c_mask(crc32c(bytes + RECORD_HEADER, p->length)))
        return error_set(e, ERR_CORRUPT, "%s: byte %llu: broken record: its CRC is wrong", x->paths[p->file],
                         (unsigned long long)p->offset);
    memmove(bytes, bytes + RECORD_HEADER, p->length);
    out->length = p->length;
    return OK;
}

void record_index_release(struct record_index *x)
{
    for (size_t i = 0; x->fds && i < x->files; i++)
        if (x->fds[i] >= 0)
            close(x->fds[i]);
    free(x->fds);
    free(x->places);
    *x = (struct record_index){ 0 };
}
