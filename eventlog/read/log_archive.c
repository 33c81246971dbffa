#include "eventlog/read/log_archive.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { HEAD = 16, ENTRY = 48, BLOCK = 128 * 1024, VERSION = 1 };
static const char magic[8] = { '\x89', 'T', 'F', 'Z', '\r', '\n', '\x1a', '\n' };
static const char end_magic[8] = { 'T', 'F', 'Z', ' ', 'e', 'n', 'd', '\n' };
/* zlib packs at most 1032 bytes into one: reject a size beyond that before unpacking anything. */
enum { PACKED_BEST = 1040 };

int log_archive_name_allowed(const char *name, size_t n)
{
    if (!n || n > LOG_ARCHIVE_NAME_MOST || memchr(name, 0, n))
        return 0;
    for (size_t from = 0; from <= n;) {
        const char *slash = from < n ? memchr(name + from, '/', n - from) : NULL;
        size_t part = (slash ? (size_t)(slash - name) : n) - from;

        if (!part || (part == 1 && name[from] == '.') || (part == 2 && name[from] == '.' && name[from + 1] == '.'))
            return 0;
        from += part + 1;
    }
    return 1;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

struct log_archive_writer {
    int fd, level;
    const char *path;
    uint64_t offset;
    uint32_t crc; /* of the member's stream so far */
    struct buffer directory;
    char *last; /* name */
    uint64_t members;
    uint8_t in[BLOCK], out[BLOCK];
};

static int archive_put(struct log_archive_writer *w, const void *bytes, size_t n, struct error *e)
{
    if (n && io_write_full(&io_real, w->fd, bytes, n) < 0)
        return error_system(e, "%s: cannot write", w->path);
    w->offset += n;
    w->crc = crc32c_extend(w->crc, bytes, n);
    return OK;
}

int log_archive_writer_new(struct log_archive_writer **out, int fd, const char *path, int level, struct error *e)
{
    struct log_archive_writer *w = *out = calloc(1, sizeof *w);
    uint8_t head[HEAD] = { 0 };

    if (!w)
        return error_memory(e, path, "for an archive");
    w->fd = fd;
    w->level = level;
    w->path = path;
    memcpy(head, magic, sizeof magic);
    put_le32(head + 8, VERSION);
    return archive_put(w, head, sizeof head, e);
}

void log_archive_writer_free(struct log_archive_writer *w)
{
    if (!w)
        return;
    buffer_release(&w->directory);
    free(w->last);
    free(w);
}

/* Packs everything in `from`; *crc and *size are of the contents. */
static int pack(struct log_archive_writer *w, int from, const char *from_path, uint32_t *crc, uint64_t *size,
                struct error *e)
{
    z_stream z = { 0 };
    ssize_t got = 1;
    int rc = OK;

    if (deflateInit(&z, w->level) != Z_OK)
        return error_memory(e, w->path, "for compression");
    while (rc == OK && got) {
        got = read(from, w->in, sizeof w->in);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            rc = error_system(e, "%s: cannot read", from_path);
            break;
        }
        *crc = crc32c_extend(*crc, w->in, (size_t)got);
        *size += (uint64_t)got;
        z.next_in = w->in;
        z.avail_in = (uInt)got;
        do {
            z.next_out = w->out;
            z.avail_out = sizeof w->out;
            deflate(&z, got ? Z_NO_FLUSH : Z_FINISH);
            rc = archive_put(w, w->out, sizeof w->out - z.avail_out, e);
        } while (rc == OK && !z.avail_out);
    }
    deflateEnd(&z);
    return rc;
}

int log_archive_writer_add(struct log_archive_writer *w, const char *name, uint32_t mode, int64_t mtime, int from,
                           const char *from_path, uint64_t *size, struct error *e)
{
    size_t n = strlen(name);
    uint64_t offset = w->offset, length = 0;
    uint8_t entry[ENTRY];
    uint32_t crc = 0; /* of no bytes */
    int rc;

    if (!log_archive_name_allowed(name, n))
        return error_set(e, ERR_ARG, "%s: '%.80s' cannot be the name of a member", w->path, name);
    if (w->last && strcmp(w->last, name) >= 0)
        return error_set(e, ERR_ARG, "%s: member '%.80s' does not sort after '%.80s'", w->path, name, w->last);
    free(w->last);
    if (!(w->last = strdup(name)))
        return error_memory(e, w->path, "for a name");
    w->crc = 0;
    if ((rc = pack(w, from, from_path, &crc, &length, e)) != OK)
        return rc;
    put_le32(entry, (uint32_t)n);
    put_le32(entry + 4, mode & LOG_ARCHIVE_MODE);
    put_le64(entry + 8, offset);
    put_le64(entry + 16, w->offset - offset);
    put_le64(entry + 24, length);
    put_le64(entry + 32, (uint64_t)mtime);
    put_le32(entry + 40, crc);
    put_le32(entry + 44, w->crc);
    buffer_append(&w->directory, entry, sizeof entry);
    buffer_append(&w->directory, name, n);
    w->members++;
    if (size)
        *size = length;
    return OK;
}

int log_archive_writer_finish(struct log_archive_writer *w, struct error *e)
{
    uint8_t footer[LOG_ARCHIVE_FOOTER];
    int rc;

    if (!buffer_ok(&w->directory))
        return error_memory(e, w->path, "for its directory");
    put_le64(footer, w->offset);
    put_le64(footer + 8, w->directory.length);
    put_le64(footer + 16, w->members);
    put_le32(footer + 24, crc32c(buffer_text(&w->directory), w->directory.length));
    put_le32(footer + 28, crc32c(footer, 28));
    memcpy(footer + 32, end_magic, sizeof end_magic);
    rc = archive_put(w, w->directory.data, w->directory.length, e);
    return rc == OK ? archive_put(w, footer, sizeof footer, e) : rc;
}

/* ---- reading: the pure half ------------------------------------------------------------------------------------ */

int log_archive_footer(struct log_archive_place *place, const uint8_t *footer, uint64_t file_size, struct error *e)
{
    uint64_t room = file_size - HEAD - LOG_ARCHIVE_FOOTER;

    if (file_size < HEAD + LOG_ARCHIVE_FOOTER || memcmp(footer + 32, end_magic, sizeof end_magic) != 0)
        return error_set(e, ERR_CORRUPT, "its end is missing: not an archive, or truncated");
    if (get_le32(footer + 28) != crc32c(footer, 28))
        return error_set(e, ERR_CORRUPT, "the last 40 bytes have a wrong CRC");
    place->offset = get_le64(footer);
    place->length = get_le64(footer + 8);
    place->members = get_le64(footer + 16);
    place->crc = get_le32(footer + 24);
    if (place->length > room || place->offset < HEAD || place->offset - HEAD != room - place->length ||
        place->members > place->length / ENTRY)
        return error_set(e, ERR_CORRUPT, "its directory does not fit its size: bytes are missing or extra");
    return OK;
}

/* Reads one entry at the start of n bytes: returns how many it takes, 0 if it is invalid. */
static size_t read_entry(struct log_archive_entry *entry, const uint8_t *p, size_t n)
{
    uint32_t length = n >= ENTRY ? get_le32(p) : 0;

    if (n < ENTRY || length > n - ENTRY || !log_archive_name_allowed((const char *)p + ENTRY, length))
        return 0;
    entry->mode = get_le32(p + 4) & LOG_ARCHIVE_MODE;
    entry->offset = get_le64(p + 8);
    entry->packed = get_le64(p + 16);
    entry->size = get_le64(p + 24);
    entry->mtime = (int64_t)get_le64(p + 32);
    entry->crc = get_le32(p + 40);
    entry->packed_crc = get_le32(p + 44);
    return ENTRY + length;
}

int log_archive_directory(struct log_archive_entry **out, size_t *count, const struct log_archive_place *place,
                          const uint8_t *bytes, struct error *e)
{
    struct log_archive_entry *entries;
    uint64_t next = HEAD;
    size_t at = 0, n = (size_t)place->length;
    int rc = OK;

    *out = NULL;
    *count = 0;
    if (crc32c(bytes, n) != place->crc)
        return error_set(e, ERR_CORRUPT, "its directory has a wrong CRC");
    if (!(entries = calloc((size_t)place->members + 1, sizeof *entries)))
        return error_memory(e, NULL, "for %llu members", (unsigned long long)place->members);
    for (size_t i = 0; rc == OK && i < place->members; i++) {
        struct log_archive_entry *entry = &entries[i];
        size_t took = read_entry(entry, bytes + at, n - at);

        if (!took || entry->offset != next || entry->packed > place->offset - next ||
            entry->size / PACKED_BEST > entry->packed) {
            rc = error_set(e, ERR_CORRUPT, "entry %zu of its directory is invalid", i + 1);
            break;
        }
        if (!(entry->name = strndup((const char *)bytes + at + ENTRY, took - ENTRY)))
            rc = error_memory(e, NULL, "for a name");
        else if (i && strcmp(entries[i - 1].name, entry->name) >= 0)
            rc = error_set(e, ERR_CORRUPT, "entry %zu of its directory is out of order", i + 1);
        at += took;
        next += entry->packed;
        *count = i + 1;
    }
    if (rc == OK && (at != n || next != place->offset))
        rc = error_set(e, ERR_CORRUPT, "its directory does not cover all of its bytes");
    if (rc != OK) {
        log_archive_entries_free(entries, *count);
        *count = 0;
        return rc;
    }
    *out = entries;
    return OK;
}

void log_archive_entries_free(struct log_archive_entry *entries, size_t count)
{
    for (size_t i = 0; entries && i < count; i++)
        free(entries[i].name);
    free(entries);
}

/* ---- reading: the file ----------------------------------------------------------------------------------------- */

static int read_at(const struct log_archive *a, void *out, size_t n, uint64_t offset, struct error *e)
{
    ssize_t got = file_read_at(a->fd, out, n, offset);

    if (got < 0)
        return error_system(e, "%s: cannot read", a->path);
    if ((size_t)got < n)
        return error_set(e, ERR_CORRUPT, "%s: was truncated while it was read", a->path);
    return OK;
}

int log_archive_open(struct log_archive *a, const char *path, struct error *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    *a = (struct log_archive){ .fd = -1 };
    return fd < 0 ? error_system(e, "%s: cannot be opened", path) : log_archive_take(a, fd, path, e);
}

int log_archive_take(struct log_archive *a, int fd, const char *path, struct error *e)
{
    uint8_t head[HEAD], footer[LOG_ARCHIVE_FOOTER], *directory = NULL;
    struct log_archive_place place;
    struct stat st;
    int rc;

    *a = (struct log_archive){ .fd = fd };
    if (!(a->path = strdup(path)))
        return error_memory(e, path, "for it");
    if (fstat(a->fd, &st) < 0)
        return error_system(e, "%s: cannot be opened", path);
    if (!S_ISREG(st.st_mode))
        return error_set(e, ERR_ARG, "%s: not a regular file", path);
    if (st.st_size < HEAD + LOG_ARCHIVE_FOOTER)
        return error_set(e, ERR_CORRUPT, "%s: too short for an archive", path);
    if ((rc = read_at(a, head, sizeof head, 0, e)) != OK)
        return rc;
    if (memcmp(head, magic, sizeof magic) != 0 || get_le32(head + 8) != VERSION || get_le32(head + 12))
        return error_set(e, ERR_CORRUPT, "%s: not an archive of logs, or one of a later version", path);
    if ((rc = read_at(a, footer, sizeof footer, (uint64_t)st.st_size - sizeof footer, e)) != OK)
        return rc;
    if ((rc = log_archive_footer(&place, footer, (uint64_t)st.st_size, e)) == OK &&
        !(directory = malloc((size_t)place.length + 1)))
        rc = error_memory(e, NULL, "for %llu members", (unsigned long long)place.members);
    if (rc == OK && (rc = read_at(a, directory, (size_t)place.length, place.offset, e)) != OK) {
        free(directory);
        return rc;
    }
    if (rc == OK)
        rc = log_archive_directory(&a->entries, &a->count, &place, directory, e);
    free(directory);
    if (rc != OK)
        error_prefix(e, "%s", path);
    return rc;
}

void log_archive_release(struct log_archive *a)
{
    log_archive_entries_free(a->entries, a->count);
    if (a->fd >= 0)
        close(a->fd);
    free(a->path);
    *a = (struct log_archive){ .fd = -1 };
}

struct unpacking {
    z_stream z;
    uint8_t in[BLOCK], out[BLOCK];
};

static int unpack(const struct log_archive *a, const struct log_archive_entry *entry, struct unpacking *u,
                  log_archive_sink *sink, void *context, struct error *e)
{
    uint64_t left = entry->packed, size = 0;
    uint32_t crc = 0, packed_crc = 0;
    int rc = OK, z = Z_OK;

    while (rc == OK && z == Z_OK) {
        size_t n;

        if (!u->z.avail_in && left) {
            n = left < sizeof u->in ? (size_t)left : sizeof u->in;
            if ((rc = read_at(a, u->in, n, entry->offset + entry->packed - left, e)) != OK)
                return rc;
            left -= n;
            packed_crc = crc32c_extend(packed_crc, u->in, n);
            u->z.next_in = u->in;
            u->z.avail_in = (uInt)n;
        }
        u->z.next_out = u->out;
        u->z.avail_out = sizeof u->out;
        z = inflate(&u->z, Z_NO_FLUSH);
        n = sizeof u->out - u->z.avail_out;
        if (n > entry->size - size)
            z = Z_DATA_ERROR;
        else if (n) {
            size += n;
            crc = crc32c_extend(crc, u->out, n);
            rc = sink(context, u->out, n, e);
        }
    }
    if (rc == OK && (z != Z_STREAM_END || left || u->z.avail_in || size != entry->size || crc != entry->crc ||
                     packed_crc != entry->packed_crc))
        rc = error_set(e, ERR_CORRUPT, "%s: member '%.120s' is damaged", a->path, entry->name);
    return rc;
}

int log_archive_read(const struct log_archive *a, const struct log_archive_entry *entry, log_archive_sink *sink,
                     void *context, struct error *e)
{
    struct unpacking *u = calloc(1, sizeof *u);
    int rc;

    if (!u || inflateInit(&u->z) != Z_OK) {
        free(u);
        return error_memory(e, a->path, "for unpacking");
    }
    rc = unpack(a, entry, u, sink, context, e);
    inflateEnd(&u->z);
    free(u);
    return rc;
}
