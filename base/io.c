#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { OPEN_TRIES = 5 };

static int real_open(void *context, const char *path, int flags, mode_t mode)
{
    int fd, tries = 0;

    (void)context;
    do /* ESTALE: what NFS remembered of the directory is old; the next call looks it up again */
        fd = open(path, flags | O_CLOEXEC, mode);
    while (fd < 0 && (errno == ESTALE || errno == EINTR) && ++tries < OPEN_TRIES);
    return fd;
}

static ssize_t real_write(void *context, int fd, const void *bytes, size_t n)
{
    (void)context;
    return write(fd, bytes, n);
}

static int real_fsync(void *context, int fd)
{
    (void)context;
    return fsync(fd);
}

static int real_ftruncate(void *context, int fd, off_t length)
{
    (void)context;
    return ftruncate(fd, length);
}

static int real_rename(void *context, const char *from, const char *to)
{
    (void)context;
    return rename(from, to);
}

static int real_unlink(void *context, const char *path)
{
    (void)context;
    return unlink(path);
}

static int real_close(void *context, int fd)
{
    (void)context;
    return close(fd);
}

const struct io io_real = { real_open,   real_write,  real_fsync, real_ftruncate,
                            real_rename, real_unlink, real_close, NULL };

int io_write_full(const struct io *io, int fd, const void *bytes, size_t n)
{
    const char *p = bytes;

    while (n) {
        ssize_t done = io->write(io->context, fd, p, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -1;
        if (done == 0) {
            errno = ENOSPC;
            return -1;
        }
        p += done;
        n -= (size_t)done;
    }
    return 0;
}
