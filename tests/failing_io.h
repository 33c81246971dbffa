/* failing_io.h - a table of io.h whose n-th call fails, or is the last thing that the process does. */
#ifndef TESTS_FAILING_IO_H
#define TESTS_FAILING_IO_H

#include "base/io.h"

#include <errno.h>
#include <signal.h>

/* Passes calls on to the system, but call number `fail_at` (from 1; 0: none), and every later one where
 * `stay_failed`, fails with `error_number` - or, with `kill`, ends the process at once with SIGKILL before the call.
 * With `short_writes`, a write that fails writes the first half of its bytes before. `calls` counts. */
struct io_failing {
    long calls, fail_at;
    int error_number, stay_failed, kill, short_writes;
};

/* 1: this call is to fail (errno is set). */
static int io_fails(struct io_failing *f)
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
    return io_fails(f) ? -1 : io_real.open(NULL, path, flags, mode);
}

static ssize_t failing_write(void *context, int fd, const void *bytes, size_t n)
{
    struct io_failing *f = context;

    if (!io_fails(f))
        return io_real.write(NULL, fd, bytes, n);
    if (f->short_writes && n > 1)
        return io_real.write(NULL, fd, bytes, n / 2);
    return -1;
}

static int failing_fsync(void *f, int fd)
{
    return io_fails(f) ? -1 : io_real.fsync(NULL, fd);
}

static int failing_ftruncate(void *f, int fd, off_t length)
{
    return io_fails(f) ? -1 : io_real.ftruncate(NULL, fd, length);
}

static int failing_rename(void *f, const char *from, const char *to)
{
    return io_fails(f) ? -1 : io_real.rename(NULL, from, to);
}

static int failing_unlink(void *f, const char *path)
{
    return io_fails(f) ? -1 : io_real.unlink(NULL, path);
}

static int failing_close(void *f, int fd)
{
    int failed = io_fails(f), system = errno;

    io_real.close(NULL, fd); /* the descriptor is gone either way, as after a real failing close */
    errno = system;
    return failed ? -1 : 0;
}

/* f must live as long as the table is used. */
static struct io io_failing_table(struct io_failing *f)
{
    return (struct io){ failing_open,   failing_write,  failing_fsync, failing_ftruncate,
                        failing_rename, failing_unlink, failing_close, f };
}

#endif
