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

/* ---- unpacking ------------------------------------------------------------------------------------------------- */

static int append(void *context, const void *bytes, size_t n, struct error *e)
{
    return spool_append(context, bytes, n, e);
}

static int is_compressed(enum file_kind kind)
{
    return kind == FILE_KIND_GZIP || kind == FILE_KIND_ZSTD || kind == FILE_KIND_XZ || kind == FILE_KIND_BZIP2;
}

/* Unpacks the bytes of fd, up to the first damage or until the sink has enough. */
static int unpack(int fd, enum file_kind kind, log_unpack_sink *sink, void *context, int *whole, struct error *e)
{
    uint8_t *block = malloc(BLOCK);
    struct log_unpack *u = NULL;
    uint64_t at = 0;
    ssize_t n = 1;
    int rc = block ? OK : error_memory(e, NULL, "for unpacking");

    *whole = 0;
    if (rc == OK && kind != FILE_KIND_GZIP && kind != FILE_KIND_ZSTD) {
        rc = log_archive_unpack(fd, sink, context, whole, e);
        goto out;
    }
    rc = rc == OK ? log_unpack_new(&u, kind, sink, context, e) : rc;
    while (rc == OK && n) {
        n = file_read_at(fd, block, BLOCK, at);
        rc = n < 0 ? error_system(e, "cannot read") : log_unpack_feed(u, block, (size_t)n, e);
        at += (uint64_t)n;
    }
    *whole = rc == OK && log_unpack_whole(u);
out:
    log_unpack_free(u);
    free(block);
    return rc;
}

/* The first bytes of what is unpacked. */
enum { ENOUGH = 1 };
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
    return b->n < sizeof b->bytes ? OK : ENOUGH;
}

enum file_kind log_input_kind_of_descriptor(int fd)
{
    enum file_kind kind = file_kind_of_descriptor(fd);
    struct beginning b = { .n = 0 };
    int whole, rc;

    if (!is_compressed(kind))
        return kind;
    rc = unpack(fd, kind, keep_beginning, &b, &whole, NULL);
    return rc == ENOUGH || (rc == OK && (b.n || whole)) ? file_kind(b.bytes, b.n, NULL) : FILE_KIND_UNKNOWN;
}

/* ---- archives -------------------------------------------------------------------------------------------------- */

/* Zip files of other programs may be archives as well, if by the name of their first member only. */
static int may_be_archive(enum file_kind kind)
{
    return kind == FILE_KIND_TAR || kind == FILE_KIND_ZIP || kind == FILE_KIND_TORCH || kind == FILE_KIND_KERAS ||
           kind == FILE_KIND_NPZ;
}

int log_input_archive(struct log_input *in, const char *path, const struct log_archive **archive, struct error *e)
{
    struct log_archive *bigger, *a;
    enum file_kind kind;
    int fd, rc;

    for (size_t i = 0; i < in->archive_count; i++)
        if (!strcmp(in->archives[i].path, path))
            return (*archive = &in->archives[i], 1);
    if ((rc = open_plain(in, path, &fd, e)) != OK)
        return rc;
    kind = log_input_kind_of_descriptor(fd);
    if (!may_be_archive(kind)) {
        close(fd);
        return 0;
    }
    if (!(bigger = realloc(in->archives, (in->archive_count + 1) * sizeof *bigger))) {
        close(fd);
        return error_memory(e, path, "for it");
    }
    in->archives = bigger;
    *archive = a = &bigger[in->archive_count];
    rc = log_archive_read(a, fd, path, e);
    close(fd);
    if (kind != FILE_KIND_TAR && kind != FILE_KIND_ZIP && !a->members.count)
        rc = 0;
    else if (rc == OK && (rc = 1))
        in->archive_count++;
    if (rc != 1)
        log_archive_release(a);
    return rc;
}

/* The member that the path names, and its archive; NULL: it names none. */
static const struct log_archive_member *member_of(const struct log_input *in, const char *path,
                                                  const struct log_archive **archive)
{
    for (size_t i = 0; i < in->archive_count; i++) {
        const struct log_archive *a = *archive = &in->archives[i];
        size_t n = strlen(a->path);

        if (!strncmp(path, a->path, n) && path[n] == '/')
            return log_archive_find(a, path + n + 1);
    }
    return NULL;
}

static int copy_member(const struct log_archive *a, const struct log_archive_member *m, struct spool *to,
                       struct error *e)
{
    uint8_t *block = malloc(BLOCK);
    int rc = block ? OK : error_memory(e, NULL, "for a member");

    for (uint64_t done = 0; rc == OK && done < m->size;) {
        size_t n = m->size - done < BLOCK ? (size_t)(m->size - done) : BLOCK;

        if (file_read_at(a->contents.fd, block, n, m->offset + done) != (ssize_t)n)
            rc = error_system(e, "cannot read a temporary file");
        else
            rc = spool_append(to, block, n, e);
        done += n;
    }
    free(block);
    return rc;
}

/* The file as it was stored; for a member, its contents in a spool. */
static int open_stored(struct log_input *in, const char *path, struct record_file *f, struct error *e)
{
    const struct log_archive *archive;
    const struct log_archive_member *member = member_of(in, path, &archive);
    struct spool to;
    int fd, rc;

    *f = (struct record_file){ .fd = -1 };
    if (!member) {
        if ((rc = open_plain(in, path, &fd, e)) == OK)
            rc = record_file_take(f, path, fd, e);
        f->packed = log_input_is_standard_input(in, path);
        return rc;
    }
    if ((rc = spool_open(&to, e)) != OK || (rc = copy_member(archive, member, &to, e)) != OK) {
        spool_close(&to);
        return error_prefix(e, "%s", path), rc;
    }
    rc = record_file_take(f, path, to.fd, e);
    f->packed = 1;
    f->broken = member->broken;
    return rc;
}

int log_input_open(struct log_input *in, const char *path, struct record_file *f, struct error *e)
{
    int rc = open_stored(in, path, f, e), whole;
    enum file_kind kind = rc == OK ? file_kind_of_descriptor(f->fd) : FILE_KIND_UNKNOWN;
    struct spool to;

    if (!is_compressed(kind))
        return rc;
    if ((rc = spool_open(&to, e)) != OK || (rc = unpack(f->fd, kind, append, &to, &whole, e)) != OK) {
        spool_close(&to);
        return error_prefix(e, "%s", path), rc;
    }
    record_file_again(f, to.fd, to.size);
    f->packed = 1;
    f->broken |= !whole;
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
    return is_compressed(kind) || kind == FILE_KIND_TAR || kind == FILE_KIND_ZIP ? file_kind_text(kind) : NULL;
}

int log_input_gone(const char *path, const struct error *e)
{
    static const char *const endings[] = { "", LOG_NAME_ENDINGS };
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
    const struct log_archive_member *member = member_of(in, path, &archive);
    struct stat st;

    if (member)
        return member->size;
    if (log_input_is_standard_input(in, path))
        return in->has_in ? in->in.size : 0;
    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}
