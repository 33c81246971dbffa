#include "eventlog/rewrite/log_replace.h"

#include "base/buffer.h"
#include "base/file.h"

#include <errno.h>
#include <limits.h>
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
        return error_system(e, "%s: is gone", path);
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
            return error_set(e, ERR_ARG, "%s: already exists from an earlier time; move it away", backup);
        return error_system(e, "%s: cannot link the old file to this name", backup);
    }
    if (io->rename(io->context, temporary, path) < 0) {
        rc = error_system(e, "%s: cannot be replaced", path);
        unlink(backup);
    }
    return rc;
}
