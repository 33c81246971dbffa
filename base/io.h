/*
 * io.h - the few system calls that write files, behind a table, so that a test can make the n-th of them fail or
 * stop the process there. Code that must survive failing disks takes a `const struct io *`; io_real is the one users
 * run. Each call has the meaning and the errno of the system call of its name.
 */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct io {
    int (*open)(void *context, const char *path, int flags, mode_t mode);
    ssize_t (*write)(void *context, int fd, const void *bytes, size_t n);
    int (*fsync)(void *context, int fd);
    int (*ftruncate)(void *context, int fd, off_t length);
    int (*rename)(void *context, const char *from, const char *to);
    int (*unlink)(void *context, const char *path);
    int (*close)(void *context, int fd);
    void *context;
};

extern const struct io io_real;

/* For tests: passes calls on to the system, but call number `fail_at` (from 1; 0: none), and every later one where
 * `stay_failed`, fails with `error_number` - or, with `kill`, ends the process at once with SIGKILL before the call.
 * With `short_writes`, a write that fails writes the first half of its bytes before. `calls` counts. */
struct io_failing {
    long calls, fail_at;
    int error_number, stay_failed, kill, short_writes;
};
struct io io_failing_table(struct io_failing *f); /* f must live as long as the table is used */

/* Writes all n bytes, going on after short writes and EINTR. 0, or -1 with errno. */
int io_write_full(const struct io *io, int fd, const void *bytes, size_t n);

#endif
