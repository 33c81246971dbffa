#include "eventlog/read/log_input.h"

#include "base/file.h"
#include "eventlog/format/log_name.h"
#include "eventlog/read/log_unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 128 * 1024 };

void log_input_release(struct log_input *in)
{
    if (in->has_in)
        spool_close(&in->in);
    for (size_t i = 0; i < in->archive_count; i++)
        log_archive_release(&in->archives[i]);
    free(in->archives);
    *in = (struct log_input){ .standard_input = in->standard_input };
}

/* ---- files and standard input ---------------------------------------------------------------------------------- */

int log_input_is_standard_input(const struct log_input *in, const char *path)
{
    return in->standard_input && !strcmp(path, "-");
}

/* Takes standard input, once: a redirected file as it is, the bytes of a pipe into a spool. */
static int take_standard_input(struct log_input *in, struct error *e)
{
    struct stat st;
    int rc;

    if (in->has_in)
        return OK;
    if (isatty(0))
        return error_set(e, ERR_IO, "standard input is a terminal; pipe a log into it, or name one");
    if (fstat(0, &st) == 0 && S_ISREG(st.st_mode) && lseek(0, 0, SEEK_CUR) == 0) {
        in->in = (struct spool){ .fd = fcntl(0, F_DUPFD_CLOEXEC, 3), .size = (uint64_t)st.st_size };
        rc = in->in.fd < 0 ? error_system(e, "standard input: cannot be opened") : OK;
    } else if ((rc = spool_open(&in->in, e)) == OK) {
        rc = spool_append_from(&in->in, 0, "standard input", e);
    }
    if (rc != OK)
        spool_close(&in->in);
    in->has_in = rc == OK;
    return rc;
}

/* A descriptor for the bytes that the path names, whatever they are. */
static int open_plain(struct log_input *in, const char *path, int *fd, struct error *e)
{
    int rc = log_input_is_standard_input(in, path) ? take_standard_input(in, e) : OK;

    *fd = -1;
    if (rc != OK)
        return rc;
    /* O_NONBLOCK: opening a FIFO must not wait for its writer. */
    *fd = in->has_in && log_input_is_standard_input(in, path) ? fcntl(in->in.fd, F_DUPFD_CLOEXEC, 3)
                                                              : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return *fd < 0 ? error_system(e, "%s: cannot be opened", path) : OK;
}

/* ---- archives -------------------------------------------------------------------------------------------------- */

int log_input_archive(struct log_input *in, const char *path, const struct log_archive **archive, struct error *e)
{
    struct log_archive *bigger, *a;
    int fd, rc;

    for (size_t i = 0; i < in->archive_count; i++)
        if (!strcmp(in->archives[i].path, path))
            return (*archive = &in->archives[i], 1);
    if ((rc = open_plain(in, path, &fd, e)) != OK)
        return rc;
    if (file_kind_of_descriptor(fd) != FILE_KIND_ARCHIVE) {
        close(fd);
        return 0;
    }
    if (!(bigger = realloc(in->archives, (in->archive_count + 1) * sizeof *bigger))) {
        close(fd);
        return error_memory(e, path, "for it");
    }
    in->archives = bigger;
    *archive = a = &bigger[in->archive_count];
    if ((rc = log_archive_take(a, fd, path, e)) != OK) {
        log_archive_release(a);
        return rc;
    }
    in->archive_count++;
    return 1;
}

static int input_by_name(const void *name, const void *entry)
{
    return strcmp(name, ((const struct log_archive_entry *)entry)->name);
}

/* The member that the path names, and its archive; NULL: it names none. */
static const struct log_archive_entry *member_of(const struct log_input *in, const char *path,
                                                 const struct log_archive **archive)
{
    for (size_t i = 0; i < in->archive_count; i++) {
        const struct log_archive *a = *archive = &in->archives[i];
        size_t n = strlen(a->path);

        if (!strncmp(path, a->path, n) && path[n] == '/')
            return bsearch(path + n + 1, a->entries, a->count, sizeof *a->entries, input_by_name);
    }
    return NULL;
}

/* ---- unpacking ------------------------------------------------------------------------------------------------- */

static int append(void *context, const void *bytes, size_t n, struct error *e)
{
    return spool_append(context, bytes, n, e);
}

/* Copies the contents of a member into the spool. *broken: they are damaged or incomplete. */
static int unpack_member(const struct log_archive *a, const struct log_archive_entry *entry, struct spool *to,
                         int *broken, struct error *e)
{
    struct error damage = { 0 };
    int rc = log_archive_read(a, entry, append, to, &damage);

    *broken = rc == ERR_CORRUPT;
    if (rc != OK && !*broken && e)
        *e = damage;
    return *broken ? OK : rc;
}

/* Unpacks the bytes of fd, up to the first damage. */
static int unpack_stream(int fd, enum file_kind kind, struct spool *to, int *broken, struct error *e)
{
    uint8_t *block = malloc(BLOCK);
    struct log_unpack *u = NULL;
    uint64_t at = 0;
    ssize_t n = 1;
    int rc = block ? log_unpack_new(&u, kind, append, to, e) : error_memory(e, NULL, "for unpacking");

    while (rc == OK && n) {
        n = file_read_at(fd, block, BLOCK, at);
        rc = n < 0 ? error_system(e, "cannot read") : log_unpack_feed(u, block, (size_t)n, e);
        at += (uint64_t)n;
    }
    *broken = rc == OK && !log_unpack_whole(u);
    log_unpack_free(u);
    free(block);
    return rc;
}

/* The file as it was stored; for a member, its contents in a spool. */
static int open_stored(struct log_input *in, const char *path, struct record_file *f, struct error *e)
{
    const struct log_archive *archive;
    const struct log_archive_entry *entry = member_of(in, path, &archive);
    int broken = 0, fd, rc;
    struct spool to;

    *f = (struct record_file){ .fd = -1 };
    if (!entry) {
        if ((rc = open_plain(in, path, &fd, e)) == OK)
            rc = record_file_take(f, path, fd, e);
        f->packed = log_input_is_standard_input(in, path);
        return rc;
    }
    if ((rc = spool_open(&to, e)) != OK || (rc = unpack_member(archive, entry, &to, &broken, e)) != OK) {
        spool_close(&to);
        return error_prefix(e, "%s", path), rc;
    }
    rc = record_file_take(f, path, to.fd, e);
    f->packed = 1;
    f->broken = broken;
    return rc;
}

int log_input_open(struct log_input *in, const char *path, struct record_file *f, struct error *e)
{
    int rc = open_stored(in, path, f, e), broken = 0;
    enum file_kind kind = rc == OK ? file_kind_of_descriptor(f->fd) : FILE_KIND_UNKNOWN;
    struct spool to;

    if (kind != FILE_KIND_GZIP && kind != FILE_KIND_ZSTD)
        return rc;
    if ((rc = spool_open(&to, e)) != OK || (rc = unpack_stream(f->fd, kind, &to, &broken, e)) != OK) {
        spool_close(&to);
        return error_prefix(e, "%s", path), rc;
    }
    record_file_again(f, to.fd, to.size);
    f->packed = 1;
    f->broken |= broken;
    return OK;
}

/* ---- what is known without it ---------------------------------------------------------------------------------- */

const char *log_input_packed(const struct log_input *in, const char *path)
{
    const struct log_archive *archive;
    enum file_kind kind;

    if (log_input_is_standard_input(in, path))
        return "standard input";
    if (member_of(in, path, &archive))
        return "a member of an archive";
    kind = file_kind_of(path);
    return kind == FILE_KIND_GZIP || kind == FILE_KIND_ZSTD || kind == FILE_KIND_ARCHIVE ? file_kind_text(kind) : NULL;
}

struct beginning {
    uint8_t bytes[FILE_KIND_HEAD];
    size_t n;
};

static int keep_beginning(void *context, const void *bytes, size_t n, struct error *e)
{
    struct beginning *b = context;
    size_t room = sizeof b->bytes - b->n;

    (void)e;
    memcpy(b->bytes + b->n, bytes, n < room ? n : room);
    b->n += n < room ? n : room;
    return OK;
}

enum file_kind log_input_kind_of_descriptor(int fd)
{
    enum file_kind kind = file_kind_of_descriptor(fd);
    struct beginning b = { .n = 0 };
    struct log_unpack *u = NULL;
    uint8_t block[4096];
    uint64_t at = 0;
    ssize_t n = 1;

    if (kind != FILE_KIND_GZIP && kind != FILE_KIND_ZSTD)
        return kind;
    if (log_unpack_new(&u, kind, keep_beginning, &b, NULL) != OK)
        return FILE_KIND_UNKNOWN;
    while (b.n < sizeof b.bytes && (n = file_read_at(fd, block, sizeof block, at)) > 0 &&
           log_unpack_feed(u, block, (size_t)n, NULL) == OK)
        at += (uint64_t)n;
    kind = b.n || (!n && log_unpack_whole(u)) ? file_kind(b.bytes, b.n, NULL) : FILE_KIND_UNKNOWN;
    log_unpack_free(u);
    return kind;
}

int log_input_gone(const char *path, const struct error *e)
{
    static const char *const endings[] = { "", ".gz", ".zst" };
    int gone = e->code == ERR_IO && e->system == ENOENT;

    for (size_t i = 0; gone && i < sizeof endings / sizeof *endings; i++) {
        char form[PATH_MAX];

        snprintf(form, sizeof form, "%.*s%s", (int)log_name_length(path), path, endings[i]);
        gone = access(form, F_OK) < 0;
    }
    return gone;
}

uint64_t log_input_bytes(const struct log_input *in, const char *path)
{
    const struct log_archive *archive;
    const struct log_archive_entry *entry = member_of(in, path, &archive);
    struct stat st;

    if (entry)
        return entry->size;
    if (log_input_is_standard_input(in, path))
        return in->has_in ? in->in.size : 0;
    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}
