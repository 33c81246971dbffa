#include "base/spool.h"

#include "base/human.h"
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { BLOCK = 128 * 1024 };

/* The environment must not choose for a program that has more rights than its user. */
static const char *spool_place(void)
{
    const char *directory = secure_getenv("TMPDIR");

    return directory && *directory ? directory : "/tmp";
}

/* If the file system cannot make an unnamed file: one with a name, which is removed at once. */
static int open_named(struct error *e)
{
    char path[PATH_MAX];
    int fd;

    if (snprintf(path, sizeof path, "%s/eventlog.XXXXXX", spool_place()) >= (int)sizeof path)
        return error_set(e, ERR_ARG, "%s: path too long", spool_place());
    if ((fd = mkostemp(path, O_CLOEXEC)) < 0)
        return error_system(e, "cannot make a temporary file in %s; set TMPDIR to another directory", spool_place());
    unlink(path);
    return fd;
}

int spool_open(struct spool *s, struct error *e)
{
    int fd = open(spool_place(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    struct statvfs room;

    *s = (struct spool)SPOOL_CLOSED;
    if (fd < 0 && (fd = open_named(e)) < 0)
        return fd;
    s->fd = fd;
    s->most = fstatvfs(s->fd, &room) == 0 ? (uint64_t)room.f_bavail * room.f_frsize / 2 : UINT64_MAX;
    return OK;
}

void spool_close(struct spool *s)
{
    if (s->fd >= 0)
        close(s->fd);
    *s = (struct spool)SPOOL_CLOSED;
}

/* bytes NULL: a hole. */
static int add(struct spool *s, const void *bytes, uint64_t n, struct error *e)
{
    char room[HUMAN_TEXT_MAX];

    if (n > s->most - s->size)
        return error_set(e, ERR_IO,
                         "needs more than %s of temporary space, half of what is free in %s; set TMPDIR to a directory "
                         "with more room",
                         human_bytes(s->most, room), spool_place());
    if (bytes ? io_write_full(&io_real, s->fd, bytes, (size_t)n) < 0
              : n && (ftruncate(s->fd, (off_t)(s->size + n)) < 0 || lseek(s->fd, 0, SEEK_END) < 0))
        return error_system(e, "cannot write a temporary file in %s", spool_place());
    s->size += n;
    return OK;
}

int spool_append(struct spool *s, const void *bytes, size_t n, struct error *e)
{
    return add(s, bytes ? bytes : "", n, e);
}

int spool_append_hole(struct spool *s, uint64_t n, struct error *e)
{
    return add(s, NULL, n, e);
}

int spool_append_from(struct spool *s, int fd, const char *from_path, struct error *e)
{
    char *block = malloc(BLOCK);
    ssize_t n = 1;
    int rc = block ? OK : error_memory(e, NULL, "for reading");

    while (rc == OK && n) {
        n = read(fd, block, BLOCK);
        if (n > 0)
            rc = spool_append(s, block, (size_t)n, e);
        else if (n < 0 && errno != EINTR)
            rc = error_system(e, "cannot read");
    }
    free(block);
    return rc == OK ? OK : (error_prefix(e, "%s", from_path), rc);
}
