#include "eventlog/tool/record_source.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Windows take 64 MiB together, but for long records; a file whose turn comes while too many are open costs the others
 * theirs, so as many are kept open as the system allows. */
enum { WINDOW_MOST = 64 * 1024, WINDOW_LEAST = 4096, WINDOWS = 64 << 20, FILES_MOST = 16384, FILES_SPARE = 64 };

struct source {
    int fd; /* -1: not open */
    uint8_t *window;
    size_t capacity, have;
    uint64_t base;
};

struct record_source {
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

int record_source_open(struct record_source **out, const char *const *paths, size_t count, struct error *e)
{
    struct record_source *s = calloc(1, sizeof *s);

    *out = NULL;
    if (!s || !(s->sources = calloc(count + 1, sizeof *s->sources))) {
        free(s);
        return error_set(e, ERR_NOMEM, "out of memory for %zu files", count);
    }
    for (size_t i = 0; i < count; i++)
        s->sources[i].fd = -1;
    s->paths = paths;
    s->count = count;
    s->window = WINDOWS / (count + 1) / WINDOW_LEAST * WINDOW_LEAST;
    s->window = s->window < WINDOW_LEAST ? WINDOW_LEAST : s->window > WINDOW_MOST ? WINDOW_MOST : s->window;
    s->open_most = files_allowed();
    *out = s;
    return OK;
}

static void close_all(struct record_source *s)
{
    for (size_t i = 0; i < s->count; i++) {
        if (s->sources[i].fd >= 0)
            close(s->sources[i].fd);
        free(s->sources[i].window);
        s->sources[i] = (struct source){ .fd = -1 };
    }
    s->open = 0;
}

void record_source_close(struct record_source *s)
{
    if (!s)
        return;
    close_all(s);
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
            error_set(e, ERR_NOMEM, "%s: out of memory for %zu bytes", s->paths[file], capacity);
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
        ssize_t got = pread(f->fd, f->window + f->have, f->capacity - f->have, (off_t)(f->base + f->have));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            error_system(e, "%s: cannot read", s->paths[file]);
        else if (!got)
            error_set(e, ERR_CORRUPT, "%s: was cut while it was read", s->paths[file]);
        if (got <= 0)
            return NULL;
        f->have += (size_t)got;
    }
    return f->window;
}

int record_source_at(struct record_source *s, size_t file, uint64_t offset, struct record *r, struct error *e)
{
    struct source *f = &s->sources[file];
    const uint8_t *p;
    uint64_t length;

    if (f->fd < 0) {
        if (s->open >= s->open_most)
            close_all(s);
        if ((f->fd = open(s->paths[file], O_RDONLY | O_CLOEXEC)) < 0)
            return error_system(e, "%s: cannot be opened", s->paths[file]);
        s->open++;
    }
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
