#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static int real_open(void *context, const char *path, int flags, mode_t mode)
{
    (void)context;
    return open(path, flags | O_CLOEXEC, mode);
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

const struct io io_real = { real_open, real_write, real_fsync, real_ftruncate, real_rename, real_unlink, real_close,
                            NULL };

/* 1: this call is to fail (errno is set). */
static int fails(struct io_failing *f)
{
    f->calls++;
    if (!f->fail_at || (f->stay_failed ? f->calls < f->fail_at : f->calls != f->fail_at))
        return 0;
    if (f->kill)
        raise(SIGKILL);
    errno = f->error_number;
    return 1;
}

static int failing_open(void *f, const char *path, int flags, mode_t mode)
{
    return fails(f) ? -1 : real_open(NULL, path, flags, mode);
}

static ssize_t failing_write(void *context, int fd, const void *bytes, size_t n)
{
    struct io_failing *f = context;

    if (!fails(f))
        return real_write(NULL, fd, bytes, n);
    if (f->short_writes && n > 1)
        return real_write(NULL, fd, bytes, n / 2);
    return -1;
}

static int failing_fsync(void *f, int fd)
{
    return fails(f) ? -1 : real_fsync(NULL, fd);
}

static int failing_ftruncate(void *f, int fd, off_t length)
{
    return fails(f) ? -1 : real_ftruncate(NULL, fd, length);
}

static int failing_rename(void *f, const char *from, const char *to)
{
    return fails(f) ? -1 : real_rename(NULL, from, to);
}

static int failing_unlink(void *f, const char *path)
{
    return fails(f) ? -1 : real_unlink(NULL, path);
}

static int failing_close(void *f, int fd)
{
    int failed = fails(f), system = errno;

    real_close(NULL, fd); /* the descriptor is gone either way, as after a real failing close */
    errno = system;
    return failed ? -1 : 0;
}

struct io io_failing_table(struct io_failing *f)
{
    return (struct io){ failing_open,   failing_write,  failing_fsync, failing_ftruncate,
                        failing_rename, failing_unlink, failing_close, f };
}

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
