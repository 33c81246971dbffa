#include "eventlog/rewrite/record_source.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Windows take 64 MiB together, except for long records; opening a file when too many are open closes the others, so as
 * many as the system allows stay open. */
enum { WINDOW_MOST = 64 * 1024, WINDOW_LEAST = 4096, WINDOWS = 64 << 20, FILES_MOST = 16384, FILES_SPARE = 64 };

struct source {
    int fd; /* -1: not open */
    int packed;
    uint64_t origin; /* packed: where its bytes begin in the spool, which is fd then */
    uint8_t *window;
    size_t capacity, have;
    uint64_t base;
};

struct record_source {
    struct log_input *in;
    struct spool spool;
    const char *const *paths;
    struct source *sources;
    size_t count, open, open_most, window;
};

/* How many files may be open here. */
static size_t files_allowed(void)
{
    size_t most = file_open_limit(FILES_MOST);

    return most > 2 * FILES_SPARE ? most - FILES_SPARE : FILES_SPARE;
}

int record_source_open(struct record_source **out, struct log_input *in, const char *const *paths, size_t count,
                       struct error *e)
{
    struct record_source *s = calloc(1, sizeof *s);

    *out = NULL;
    if (!s || !(s->sources = calloc(count + 1, sizeof *s->sources))) {
        free(s);
        return error_memory(e, NULL, "for %zu files", count);
    }
    for (size_t i = 0; i < count; i++)
        s->sources[i].fd = -1;
    s->in = in;
    s->spool = (struct spool)SPOOL_CLOSED;
    s->paths = paths;
    s->count = count;
    s->window = WINDOWS / (count + 1) / WINDOW_LEAST * WINDOW_LEAST;
    s->window = s->window < WINDOW_LEAST ? WINDOW_LEAST : s->window > WINDOW_MOST ? WINDOW_MOST : s->window;
    s->open_most = files_allowed();
    *out = s;
    return OK;
}

/* All descriptors and windows; where what was unpacked stands is still known. */
static void close_all(struct record_source *s)
{
    for (size_t i = 0; i < s->count; i++) {
        struct source *f = &s->sources[i];

        if (f->fd >= 0 && !f->packed)
            close(f->fd);
        free(f->window);
        *f = (struct source){ .fd = -1, .packed = f->packed, .origin = f->origin };
    }
    s->open = 0;
}

void record_source_close(struct record_source *s)
{
    if (!s)
        return;
    close_all(s);
    spool_close(&s->spool);
    free(s->sources);
    free(s);
}

/* n bytes of the file from offset on, or NULL with the error. */
static const uint8_t *bytes_at(struct record_source *s, size_t file, uint64_t offset, size_t n, struct error *e)
{
    struct source *f = &s->sources[file];
    size_t keep = 0;

    if (offset >= f->base && offset - f->base <= f->have && f->have - (size_t)(offset - f->base) >= n)
        return f->window + (offset - f->base);
    if (f->capacity < n || !f->window) {
        size_t capacity = n > s->window ? n : s->window;
        uint8_t *bigger = realloc(f->window, capacity);

        if (!bigger) {
            error_memory(e, s->paths[file], "for %zu bytes", capacity);
            return NULL;
        }
        f->window = bigger;
        f->capacity = capacity;
    }
    if (offset >= f->base && offset - f->base < f->have) { /* what is there of it already */
        keep = f->have - (size_t)(offset - f->base);
        memmove(f->window, f->window + (offset - f->base), keep);
    }
    f->base = offset;
    f->have = keep;
    while (f->have < n) {
        ssize_t got = pread(f->fd, f->window + f->have, f->capacity - f->have, (off_t)(f->origin + f->base + f->have));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            error_system(e, "%s: cannot read", s->paths[file]);
        else if (!got)
            error_set(e, ERR_CORRUPT, "%s: was truncated while it was read", s->paths[file]);
        if (got <= 0)
            return NULL;
        f->have += (size_t)got;
    }
    return f->window;
}

/* The bytes of one that is not there as they are: at the end of the spool. */
static int unpack(struct record_source *s, struct source *f, struct record_file *unpacked, const char *path,
                  struct error *e)
{
    int rc = s->spool.fd < 0 ? spool_open(&s->spool, e) : OK;

    f->origin = s->spool.size;
    if (rc == OK && lseek(unpacked->fd, 0, SEEK_SET) < 0)
        rc = error_system(e, "%s: cannot be read", path);
    if (rc == OK)
        rc = spool_append_from(&s->spool, unpacked->fd, path, e);
    f->packed = rc == OK;
    return rc;
}

static int open_source(struct record_source *s, struct source *f, const char *path, struct error *e)
{
    struct record_file file = { .fd = -1 };
    int rc = OK;

    if (!f->packed) {
        if (s->open >= s->open_most)
            close_all(s);
        if ((rc = log_input_open(s->in, path, &file, e)) == OK && file.packed) {
            rc = unpack(s, f, &file, path, e);
        } else if (rc == OK) {
            f->fd = file.fd;
            file.fd = -1; /* it goes on in f */
            s->open++;
        }
        record_file_close(&file);
    }
    if (f->packed)
        f->fd = s->spool.fd;
    return rc;
}

int record_source_at(struct record_source *s, size_t file, uint64_t offset, struct record *r, struct error *e)
{
    struct source *f = &s->sources[file];
    const uint8_t *p;
    uint64_t length;

    if (f->fd < 0 && open_source(s, f, s->paths[file], e) != OK)
        return e ? e->code : ERR_IO;
    if (!(p = bytes_at(s, file, offset, RECORD_HEADER, e)))
        return e ? e->code : ERR_IO;
    if (!record_header_right(p, &length))
        return error_set(e, ERR_CORRUPT, "%s: changed while it was read", s->paths[file]);
    if (!(p = bytes_at(s, file, offset, (size_t)length + RECORD_OVERHEAD, e)))
        return e ? e->code : ERR_IO;
    if (get_le32(p + RECORD_HEADER + length) != crc32c_mask(crc32c(p + RECORD_HEADER, (size_t)length)))
        return error_set(e, ERR_CORRUPT, "%s: changed while it was read", s->paths[file]);
    r->offset = offset;
    r->data = p + RECORD_HEADER;
    r->length = (size_t)length;
    return OK;
}
