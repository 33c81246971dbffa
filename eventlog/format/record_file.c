#include "eventlog/format/record_file.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/file_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WINDOW = 256 * 1024, BLOCK = 64 * 1024 };

int record_file_open(struct record_file *f, const char *path, struct error *e)
{
    /* O_NONBLOCK: opening a FIFO must not wait for its writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    *f = (struct record_file){ .fd = -1 };
    return fd < 0 ? error_system(e, "%s: cannot be opened", path) : record_file_take(f, path, fd, e);
}

int record_file_take(struct record_file *f, const char *path, int fd, struct error *e)
{
    struct stat st;

    *f = (struct record_file){ .fd = fd, .path = path };
    record_parser_init(&f->parser, 0, 0);
    if (fstat(f->fd, &st) < 0)
        return error_system(e, "%s: cannot stat", path);
    if (!S_ISREG(st.st_mode))
        return error_set(e, ERR_IO, "%s: not a regular file", path);
    f->size = (uint64_t)st.st_size;
    if (!(f->window = malloc(WINDOW)))
        return error_memory(e, path, "for a window of the file");
    f->capacity = WINDOW;
    return OK;
}

void record_file_trim(struct record_file *f)
{
    free(f->window);
    f->window = NULL;
    f->have = f->capacity = 0;
}

void record_file_close(struct record_file *f)
{
    record_file_trim(f);
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

void record_file_again(struct record_file *f, int fd, uint64_t size)
{
    if (f->fd >= 0 && f->fd != fd)
        close(f->fd);
    f->fd = fd;
    f->size = size;
    f->have = 0;
}

/* Makes the window begin at the parser's position and hold need bytes. OK with fewer if the file was truncated. */
static int fill(struct record_file *f, size_t need, struct error *e)
{
    uint64_t position = f->parser.position;

    if (position >= f->base && position <= f->base + f->have) {
        size_t used = (size_t)(position - f->base);

        if (f->have > used)
            memmove(f->window, f->window + used, f->have - used);
        f->have -= used;
    } else {
        f->have = 0;
    }
    f->base = position;
    if (need > f->capacity) {
        size_t capacity = need > WINDOW ? need : WINDOW;
        uint8_t *window = realloc(f->window, capacity);

        if (!window)
            return error_memory(e, f->path, "for a record of %zu bytes at %llu", need, (unsigned long long)position);
        f->window = window;
        f->capacity = capacity;
    }
    while (f->have < need) {
        uint64_t at = f->base + f->have, left = f->size - at;
        size_t room = f->capacity - f->have;
        ssize_t n = pread(f->fd, f->window + f->have, left < room ? (size_t)left : room, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_system(e, "%s: cannot read at %llu", f->path, (unsigned long long)at);
        if (n == 0) {
            f->size = at;
            break;
        }
        f->have += (size_t)n;
    }
    return OK;
}

/* The end. An unpacked file does not grow, so its last record will not be completed. */
static int end(struct record_file *f, struct record *r)
{
    if (!f->broken)
        return RECORD_MORE;
    f->broken = 0;
    r->damage = RECORD_BAD_STREAM;
    r->offset = f->size;
    r->data = NULL;
    r->length = 0;
    r->found = r->wanted = 0;
    return RECORD_DAMAGE;
}

int record_file_next(struct record_file *f, struct record *r, struct error *e)
{
    for (;;) {
        uint64_t position = f->parser.position;
        int inside = position >= f->base && position - f->base <= f->have, rc;
        size_t used = inside ? (size_t)(position - f->base) : f->have;
        const uint8_t *bytes = f->have ? f->window + used : NULL;
        enum record_result result = record_next(&f->parser, bytes, f->have - used, f->size, r);

        if (result != RECORD_MORE)
            return (int)result;
        if (f->parser.position > f->size || r->need > f->size - f->parser.position)
            return end(f, r);
        if ((rc = fill(f, r->need, e)) != OK)
            return rc;
    }
}

const uint8_t *record_file_ahead(const struct record_file *f, size_t *n)
{
    const uint64_t position = f->parser.position;
    const int inside = f->have && position >= f->base && position - f->base <= f->have;

    *n = inside ? f->have - (size_t)(position - f->base) : 0;
    return inside ? f->window + (position - f->base) : NULL;
}

/* ---- whole records, wherever they are ------------------------------------------------------------------------- */

/* Reads n bytes at that offset: 1, or 0 if the file does not have them; -1 and errno. */
static int read_at(int fd, void *out, size_t n, uint64_t offset)
{
    const ssize_t got = file_read_at(fd, out, n, offset);

    return got < 0 ? -1 : got == (ssize_t)n;
}

int record_file_holds(const struct record_file *f, uint64_t offset)
{
    uint8_t bytes[4096];
    uint64_t length, done = 0;
    uint32_t crc = 0; /* of no bytes */
    int rc;

    if (f->size - offset < RECORD_OVERHEAD)
        return 0;
    if ((rc = read_at(f->fd, bytes, RECORD_HEADER, offset)) <= 0)
        return rc;
    if (!record_header_right(bytes, &length) || length > f->size - offset - RECORD_OVERHEAD)
        return 0;
    while (done < length) {
        size_t n = length - done < sizeof bytes ? (size_t)(length - done) : sizeof bytes;

        if ((rc = read_at(f->fd, bytes, n, offset + RECORD_HEADER + done)) <= 0)
            return rc;
        crc = crc32c_extend(crc, bytes, n);
        done += n;
    }
    rc = read_at(f->fd, bytes, RECORD_FOOTER, offset + RECORD_HEADER + length);
    return rc <= 0 ? rc : get_le32(bytes) == crc32c_mask(crc);
}

int record_file_find(const struct record_file *f, uint64_t from, uint64_t to, uint64_t *place)
{
    uint8_t *block = malloc(BLOCK);
    uint64_t length;
    int found = block ? 0 : -1;

    while (!found && from < to && f->size - from >= RECORD_OVERHEAD) {
        size_t n = f->size - from < BLOCK ? (size_t)(f->size - from) : BLOCK, i;
        int got = read_at(f->fd, block, n, from);

        if (got <= 0) {
            found = got;
            break;
        }
        for (i = 0; i + RECORD_HEADER <= n && from + i < to && !found; i++)
            if (record_header_right(block + i, &length) && (found = record_file_holds(f, from + i)) > 0)
                *place = from + i;
        from += i;
    }
    free(block);
    return found;
}

/* What to do with it instead. */
static const char *advice(enum file_kind kind)
{
    switch (kind) {
    case FILE_KIND_SAFETENSORS:
    case FILE_KIND_TABLE: return "; 'checkpoint inspect' reads it";
    case FILE_KIND_JSON:
    case FILE_KIND_TEXT: return "; 'eventlog write --input' makes a log of CSV and JSON lines";
    default: return "";
    }
}

enum { NOT_EVENTS = 2 };

int record_file_check(const struct record_file *f, struct error *e)
{
    static const uint8_t zeros[RECORD_HEADER];
    uint8_t head[RECORD_HEADER];
    uint64_t place;
    enum file_kind kind = FILE_KIND_UNKNOWN;
    int rc = read_at(f->fd, head, sizeof head, 0);

    if (rc > 0 && memcmp(head, zeros, sizeof head) != 0 &&
        (kind = file_kind_of_descriptor(f->fd)) != FILE_KIND_EVENT_LOG) {
        if (!(rc = record_file_find(f, 0, f->size, &place)))
            rc = NOT_EVENTS;
    }
    if (rc < 0)
        return error_system(e, "%s: cannot be read", f->path);
    if (rc != NOT_EVENTS)
        return OK;
    if (kind == FILE_KIND_UNKNOWN)
        return error_set(e, ERR_IO, "%s: not an event file: it holds no complete record", f->path);
    return error_set(e, ERR_IO, "%s: not an event file, but %s%s", f->path, file_kind_text(kind), advice(kind));
}
