#include "eventlog/tool/rewrite/archiving.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/human.h"
#include "eventlog/read/log_archive.h"
#include "eventlog/rewrite/log_replace.h"
#include "eventlog/tool/output_stream.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

size_t archiving_name_start(const char *path)
{
    size_t n = strlen(path), from;

    while (n && path[n - 1] == '/')
        n--;
    for (from = n; from && path[from - 1] != '/';)
        from--;
    if (n - from <= 2 && !strncmp(path + from, "..", n - from))
        return n;
    return from;
}

int archiving_add(struct archiving *a, const char *name, const char *path, const struct stat *st, struct error *e)
{
    struct archiving_file *f;

    if (!log_archive_name_allowed(name, strlen(name)))
        return error_set(e, ERR_ARG, "%s: an archive cannot hold this name", path);
    if (!ARRAY_ROOM(a->files, a->capacity, a->count + 1))
        return error_memory(e, path, "while listing");
    f = &a->files[a->count];
    *f = (struct archiving_file){ strdup(name), strdup(path), *st };
    if (!f->name || !f->path) {
        free(f->name);
        free(f->path);
        return error_memory(e, path, "while listing");
    }
    a->count++;
    a->bytes += (uint64_t)st->st_size;
    return OK;
}

static int archiving_by_name(const void *x, const void *y)
{
    const struct archiving_file *a = x, *b = y;

    return strcmp(a->name, b->name);
}

/* ---- packing --------------------------------------------------------------------------------------------------- */

/* Unless forced: the file is as it was, and nobody writes it. */
static int unchanged(const struct archiving *a, int fd, const struct archiving_file *f, struct error *e)
{
    int rc = a->force ? OK : log_replace_unchanged(fd, f->path, &f->before, e);

    return rc != ERR_ARG
               ? rc
               : error_set(
                     e, rc,
                     "%s: is being written; stop its writer first, or 'eventlog archive -f' archives what is there now",
                     f->path);
}

static void archiving_tell(struct archiving *a, const struct archiving_file *f)
{
    char size[HUMAN_TEXT_MAX];

    log_progress_work(a->log, a->began, (double)a->done / (double)(a->bytes ? a->bytes : 1), f->name,
                      "%s in %zu file%s", human_bytes(a->bytes, size), a->count, a->count == 1 ? "" : "s");
}

static int pack_one(struct archiving *a, struct log_archive_writer *w, struct archiving_file *f, struct error *e)
{
    int fd = open(f->path, O_RDONLY | O_CLOEXEC), rc;
    const struct timespec *t = &f->before.st_mtim;

    if (fd < 0)
        return error_system(e, "%s: cannot be opened", f->path);
    archiving_tell(a, f);
    if ((rc = unchanged(a, fd, f, e)) == OK)
        rc = log_archive_writer_add(w, f->name, f->before.st_mode & LOG_ARCHIVE_MODE,
                                    (int64_t)t->tv_sec * 1000000000 + t->tv_nsec, fd, f->path, NULL, e);
    if (rc == OK)
        rc = unchanged(a, fd, f, e);
    a->done += (uint64_t)f->before.st_size;
    close(fd);
    return rc;
}

/* Into fd, which `to` names in errors. */
static int pack_all(struct archiving *a, int fd, const char *to, struct error *e)
{
    struct log_archive_writer *w = NULL;
    struct stat st;
    int rc;

    a->began = clock_monotonic();
    rc = log_archive_writer_new(&w, fd, to, a->level, e);
    for (size_t i = 0; rc == OK && i < a->count; i++)
        rc = pack_one(a, w, &a->files[i], e);
    log_progress_end(a->log);
    if (rc == OK)
        rc = log_archive_writer_finish(w, e);
    if (fstat(fd, &st) == 0)
        a->packed = (uint64_t)st.st_size;
    log_archive_writer_free(w);
    return rc;
}

static int write_stream(struct archiving *a, struct error *e)
{
    int fd, rc = output_stream_open(&fd, e);

    if (rc != OK)
        return rc;
    if ((rc = pack_all(a, fd, "standard output", e)) == OK)
        return output_stream_send(fd, e);
    close(fd);
    return rc;
}

static int write_file(struct archiving *a, struct error *e)
{
    struct log_replace_file f;
    int rc = log_replace_open(&f, &io_real, a->output, e);

    return rc == OK ? log_replace_close(&f, a->output, -1, NULL, pack_all(a, f.fd, f.temporary, e), e) : rc;
}

int archiving_write(struct archiving *a, struct error *e)
{
    const int stream = output_stream_is(a->output);
    struct stat st;

    if (a->count)
        qsort(a->files, a->count, sizeof *a->files, archiving_by_name);
    if (!stream && lstat(a->output, &st) == 0 && !a->force)
        return error_set(e, ERR_ARG, "%s: already exists; choose another name, or use 'eventlog archive -f'",
                         a->output);
    for (size_t i = 1; i < a->count; i++)
        if (!strcmp(a->files[i - 1].name, a->files[i].name))
            return error_set(e, ERR_ARG, "%s and %s would have the same name in the archive", a->files[i - 1].path,
                             a->files[i].path);
    return stream ? write_stream(a, e) : write_file(a, e);
}

/* ---- checking -------------------------------------------------------------------------------------------------- */

struct comparison {
    int fd;
    const char *path;
};

static int compare(void *context, const void *bytes, size_t n, struct error *e)
{
    const struct comparison *c = context;
    const char *p = bytes;
    char mine[16384];

    while (n) {
        ssize_t got = read(c->fd, mine, n < sizeof mine ? n : sizeof mine);

        if (got <= 0 || memcmp(mine, p, (size_t)got) != 0)
            return error_set(e, ERR_CORRUPT, "%s: differs from the archive; nothing was deleted", c->path);
        p += got;
        n -= (size_t)got;
    }
    return OK;
}

/* Every member read back from the disk and compared with its file. */
int archiving_check(struct archiving *a, struct error *e)
{
    struct log_archive archive;
    int rc = log_archive_open(&archive, a->output, e);

    a->done = 0;
    a->began = clock_monotonic();
    if (rc == OK && archive.count != a->count)
        rc = error_set(e, ERR_CORRUPT, "%s: does not hold all files; nothing was deleted", a->output);
    for (size_t i = 0; rc == OK && i < a->count; i++) {
        struct archiving_file *f = &a->files[i];
        struct comparison c = { open(f->path, O_RDONLY | O_CLOEXEC), f->path };

        if (c.fd < 0) {
            rc = error_system(e, "%s: cannot be opened; nothing was deleted", f->path);
            break;
        }
        archiving_tell(a, f);
        a->done += (uint64_t)f->before.st_size;
        rc = log_archive_read(&archive, &archive.entries[i], compare, &c, e);
        if (rc == OK && read(c.fd, (char[1]){ 0 }, 1) != 0)
            rc = error_set(e, ERR_CORRUPT, "%s: is longer than in the archive; nothing was deleted", f->path);
        if (rc == OK)
            rc = log_replace_unchanged(c.fd, f->path, &f->before, e);
        close(c.fd);
    }
    log_progress_end(a->log);
    log_archive_release(&archive);
    return rc;
}

void archiving_release(struct archiving *a)
{
    for (size_t i = 0; i < a->count; i++) {
        free(a->files[i].name);
        free(a->files[i].path);
    }
    free(a->files);
    a->files = NULL;
    a->count = a->capacity = 0;
}
