/*
 * failing_calls.h - for tests that let each allocation and each system call of an operation fail, one in each run. The
 * linker puts the functions below in the place of the system's (WRAP_CALLS in the Makefile), for all calls of the program
 * but those of libraries.
 */
#ifndef TESTS_FAILING_CALLS_H
#define TESTS_FAILING_CALLS_H

#include "base/error.h"
#include "tests/check.h"
#include "tests/failing_allocation.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

/* System call number call_fail_at since call_count was set to 0 fails with call_error, and every later one, too, if
 * call_stays; 0: none. With EINTR only calls count that may be interrupted. */
static atomic_long call_fail_at, call_count;
static int call_error = EIO, call_stays;

static inline int call_fails(int interruptible)
{
    long at = atomic_load(&call_fail_at), count;

    if (!at || (call_error == EINTR && !interruptible))
        return 0;
    count = atomic_fetch_add(&call_count, 1) + 1;
    if (call_stays ? count < at : count != at)
        return 0;
    errno = call_error;
    return 1;
}

#define FAILING_CALL(type, failed, interruptible, name, parameters, arguments) \
    type __real_##name parameters; \
    type __wrap_##name parameters; \
    type __wrap_##name parameters \
    { \
        return call_fails(interruptible) ? (failed) : __real_##name arguments; \
    }

FAILING_CALL(int, -1, 0, open, (const char *path, int flags, mode_t mode), (path, flags, mode))
FAILING_CALL(int, -1, 0, openat, (int at, const char *path, int flags, mode_t mode), (at, path, flags, mode))
FAILING_CALL(int, -1, 0, fcntl, (int fd, int command, long argument), (fd, command, argument))
FAILING_CALL(int, -1, 0, stat, (const char *path, struct stat *st), (path, st))
FAILING_CALL(int, -1, 0, lstat, (const char *path, struct stat *st), (path, st))
FAILING_CALL(int, -1, 0, fstat, (int fd, struct stat *st), (fd, st))
FAILING_CALL(int, -1, 0, fstatat, (int at, const char *path, struct stat *st, int flags), (at, path, st, flags))
FAILING_CALL(int, -1, 0, statfs, (const char *path, struct statfs *st), (path, st))
FAILING_CALL(int, -1, 0, fstatfs, (int fd, struct statfs *st), (fd, st))
FAILING_CALL(int, -1, 0, access, (const char *path, int mode), (path, mode))
FAILING_CALL(off_t, -1, 0, lseek, (int fd, off_t offset, int whence), (fd, offset, whence))
FAILING_CALL(ssize_t, -1, 1, read, (int fd, void *out, size_t n), (fd, out, n))
FAILING_CALL(ssize_t, -1, 1, pread, (int fd, void *out, size_t n, off_t offset), (fd, out, n, offset))
FAILING_CALL(ssize_t, -1, 1, write, (int fd, const void *bytes, size_t n), (fd, bytes, n))
FAILING_CALL(char *, NULL, 0, realpath, (const char *path, char *out), (path, out))
FAILING_CALL(DIR *, NULL, 0, opendir, (const char *path), (path))
FAILING_CALL(struct dirent *, NULL, 0, readdir, (DIR * d), (d))
FAILING_CALL(int, -1, 0, unlink, (const char *path), (path))
FAILING_CALL(int, -1, 0, rename, (const char *from, const char *to), (from, to))
FAILING_CALL(int, -1, 0, fsync, (int fd), (fd))
FAILING_CALL(int, -1, 0, memfd_create, (const char *name, unsigned flags), (name, flags))
FAILING_CALL(int, -1, 0, inotify_init1, (int flags), (flags))
FAILING_CALL(int, -1, 0, inotify_add_watch, (int fd, const char *path, uint32_t mask), (fd, path, mask))
FAILING_CALL(int, errno, 0, pthread_create,
             (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context),
             (thread, attributes, run, context))
FAILING_CALL(void *, MAP_FAILED, 0, mmap, (void *at, size_t n, int protection, int flags, int fd, off_t offset),
             (at, n, protection, flags, fd, offset))
FAILING_CALL(void *, MAP_FAILED, 0, mremap, (void *old, size_t n, size_t wanted, int flags), (old, n, wanted, flags))

/* Runs it with allocation 1, 2, ... failing until none does, then so with system calls: first each alone, then all from
 * the n-th on, then interrupting each. What fails says why; want of memory is never taken for anything else, and an
 * interruption does no harm. */
static inline void with_each_failure(int (*operation)(struct error *e))
{
    struct error e = { 0 };
    int rc = operation(&e);

    if (rc < 0)
        fail_msg("without a failure: %s", e.message);
    for (long n = 1, more = 1; more; n++) {
        e = (struct error){ 0 };
        calls = 0;
        fail_at = n;
        rc = operation(&e);
        fail_at = 0;
        more = calls >= n;
        if (rc < 0 && (rc != ERR_NOMEM || !*e.message))
            fail_msg("allocation %ld: code %d \"%s\"", n, rc, e.message);
    }
    for (int way = 0; way < 3; way++) {
        call_error = way == 2 ? EINTR : EIO;
        call_stays = way == 1;
        for (long n = 1, more = 1; more; n++) {
            e = (struct error){ 0 };
            call_count = 0;
            call_fail_at = n;
            rc = operation(&e);
            call_fail_at = 0;
            more = call_count >= n;
            if (rc < 0 && (!*e.message || call_error == EINTR))
                fail_msg("system call %ld, way %d: code %d \"%s\"", n, way, rc, e.message);
        }
    }
}

#endif
