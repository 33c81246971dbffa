/*
 * io.h - the few system calls that write files, behind a table, so that a test can make the n-th of them fail or
 * stop the process there (tests/failing_io.h). Code that must survive failing disks takes a `const struct io *`;
 * io_real is the one that programs use. Each call has the meaning and the errno of the system call of its name.
 */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <stddef.h>
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

/* Writes all n bytes, continuing after short writes and EINTR. 0, or -1 with errno. */
int io_write_full(const struct io *io, int fd, const void *bytes, size_t n);

#endif
