#include "eventlog/rewrite/log_replace.h"

#include "base/buffer.h"
#include "base/file.h"
#include "base/unfinished.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int log_replace_temporary_name(char *out, size_t size, const char *path, struct error *e)
{
    const char *base = file_base_name(path);

    if (snprintf(out, size, "%.*s.eventlog.%ld.tmp", (int)(base - path), path, (long)getpid()) >= (int)size)
        return error_set(e, ERR_ARG, "%s: path too long", path);
    return OK;
}

int log_replace_backup_name(char *out, size_t size, const char *path, struct error *e)
{
    const char *at = file_base_name(path), *hit;
    struct buffer b = BUFFER_EMPTY;
    int rc = OK;

    buffer_append(&b, path, (size_t)(at - path));
    for (; (hit = strstr(at, "tfevents")); at = hit + 8) {
        buffer_append(&b, at, (size_t)(hit - at));
        buffer_append_text(&b, "tf-events");
    }
    buffer_append_text(&b, at);
    buffer_append_text(&b, ".bak");
    if (!buffer_ok(&b))
        rc = error_memory(e, path, "for a name");
    else if (b.length >= size)
        rc = error_set(e, ERR_ARG, "%s: path too long", path);
    else
        memcpy(out, b.data, b.length + 1);
    buffer_release(&b);
    return rc;
}

int log_replace_unchanged(int fd, const char *path, const struct stat *before, struct error *e)
{
    struct stat now;

    if (stat(path, &now) < 0)
        return error_system(e, "%s: is no longer there", path);
    if (file_is_written(fd) || now.st_ino != before->st_ino || now.st_dev != before->st_dev ||
        now.st_size != before->st_size || now.st_mtim.tv_sec != before->st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != before->st_mtim.tv_nsec)
        return error_set(e, ERR_ARG, "%s: is being written; stop its writer first, or write a copy with -o", path);
    return OK;
}

/* As a process that was killed between the two steps below has left it; errno stays. */
static int same_file(const char *path, const char *backup)
{
    const int error = errno;
    struct stat a, b;
    const int same = error == EEXIST && lstat(path, &a) == 0 && lstat(backup, &b) == 0 && a.st_dev == b.st_dev &&
                     a.st_ino == b.st_ino;

    errno = error;
    return same;
}

int log_replace_exchange(const struct io *io, const char *path, const char *temporary, struct error *e)
{
    char backup[PATH_MAX];
    int rc = log_replace_backup_name(backup, sizeof backup, path, e);

    if (rc != OK)
        return rc;
    if (link(path, backup) < 0 && !same_file(path, backup)) {
        if (errno == EEXIST)
            return error_set(e, ERR_ARG, "%s: already exists, as an earlier backup; move it away", backup);
        return error_system(e, "%s: cannot be made a link to the old file", backup);
    }
    if (io->rename(io->context, temporary, path) < 0) {
        rc = error_system(e, "%s: cannot be replaced", path);
        unlink(backup);
    }
    return rc;
}

int log_replace_open(struct log_replace_file *f, const struct io *io, const char *path, struct error *e)
{
    f->io = io;
    if (log_replace_temporary_name(f->temporary, sizeof f->temporary, path, e) != OK)
        return ERR_ARG;
    f->unfinished = unfinished_begin(AT_FDCWD, f->temporary);
    unlink(f->temporary); /* of a killed process with our number */
    if ((f->fd = io->open(io->context, f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) >= 0)
        return OK;
    unfinished_end(f->unfinished);
    return error_system(e, "%s: cannot create", f->temporary);
}

int log_replace_close(struct log_replace_file *f, const char *path, int old_fd, const struct stat *before, int rc,
                      struct error *e)
{
    const struct io *io = f->io;

    if (rc == OK && io->fsync(io->context, f->fd) < 0)
        rc = error_system(e, "%s: cannot sync", f->temporary);
    if (io->close(io->context, f->fd) < 0 && rc == OK)
        rc = error_system(e, "%s: cannot close", f->temporary);
    if (rc == OK && old_fd >= 0 && (rc = log_replace_unchanged(old_fd, path, before, e)) == OK)
        rc = log_replace_exchange(io, path, f->temporary, e);
    else if (rc == OK && io->rename(io->context, f->temporary, path) < 0)
        rc = error_system(e, "%s: cannot rename into place", path);
    if (rc != OK)
        unlink(f->temporary);
    unfinished_end(f->unfinished);
    return rc == OK ? file_sync_parent(io, path, e) : rc;
}
