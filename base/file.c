#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Closes fd. */
static int read_all(int fd, const char *path, size_t limit, struct buffer *out, struct error *e)
{
    int rc = OK;

    for (;;) {
        struct stat st;
        size_t ask = 65536;
        char *room;
        ssize_t n;

        if (out->length == 0 && fstat(fd, &st) == 0 && st.st_size > 0 && (uintmax_t)st.st_size <= limit)
            ask = (size_t)st.st_size + 1;
        if (!(room = buffer_reserve(out, ask))) {
            rc = error_memory(e, path, "while reading");
            break;
        }
        n = read(fd, room, ask);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            rc = error_system(e, "%s: cannot read", path);
            break;
        }
        if ((size_t)n > limit || out->length > limit - (size_t)n) {
            rc = error_set(e, ERR_NOMEM, "%s: larger than the limit of %zu bytes", path, limit);
            break;
        }
        room[n] = '\0';
        out->length += (size_t)n;
        if (n == 0)
            break;
    }
    close(fd);
    return rc;
}

int file_read(const char *path, size_t limit, struct buffer *out, struct error *e)
{
    /* O_NONBLOCK: a FIFO in place of a file reads as empty instead of blocking for ever. */
    const int fd = io_real.open(io_real.context, path, O_RDONLY | O_NONBLOCK, 0);

    return fd < 0 ? error_system(e, "%s: cannot open", path) : read_all(fd, path, limit, out, e);
}

int file_read_plain(const char *path, size_t limit, struct buffer *out, struct error *e)
{
    int fd, rc = file_open_plain(NULL, path, O_RDONLY, &fd, e);

    return rc == OK ? read_all(fd, path, limit, out, e) : rc;
}

int file_open_named(const char *path, int flags, int *fd, struct error *e)
{
    const int systems = !strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6);

    if ((*fd = open(path, flags | O_CLOEXEC | (systems ? 0 : O_NOFOLLOW), 0666)) >= 0)
        return OK;
    return errno == ELOOP
               ? error_set(e, ERR_ARG, "%s: is a symbolic link, which is not followed; name the file itself", path)
               : error_system(e, "%s: cannot open", path);
}

int file_open_plain(const struct io *io, const char *path, int flags, int *fd, struct error *e)
{
    struct stat st;

    if (!io)
        io = &io_real;
    if ((*fd = io->open(io->context, path, flags | O_NOFOLLOW | O_NONBLOCK, 0666)) < 0 && errno == ELOOP)
        return error_set(e, ERR_ARG, "%s: is a symbolic link, which is not followed; move it elsewhere", path);
    if (*fd < 0 && errno != ENXIO && errno != EISDIR)
        return error_system(e, "%s: cannot open", path);
    if (*fd >= 0 && fstat(*fd, &st) == 0 && S_ISREG(st.st_mode))
        return OK;
    if (*fd >= 0)
        io->close(io->context, *fd);
    *fd = -1;
    return error_set(e, ERR_ARG, "%s: is not a regular file; move it elsewhere", path);
}

int file_begins(const char *text, size_t n, const char *head)
{
    const size_t length = strlen(head);
    size_t zeros = 0;

    while (zeros < n && !text[zeros])
        zeros++;
    return zeros == n || !memcmp(text, head, n < length ? n : length);
}

ssize_t file_read_at(int fd, void *out, size_t n, uint64_t offset)
{
    size_t done = 0;

    while (done < n) {
        ssize_t got = pread(fd, (char *)out + done, n - done, (off_t)(offset + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

int file_write_at(int fd, const void *bytes, size_t n, uint64_t offset)
{
    for (size_t done = 0; done < n;) {
        ssize_t put = pwrite(fd, (const char *)bytes + done, n - done, (off_t)(offset + done));

        if (put < 0 && errno == EINTR)
            continue;
        if (put == 0)
            errno = ENOSPC;
        if (put <= 0)
            return -1;
        done += (size_t)put;
    }
    return 0;
}

int file_sync_parent(const struct io *io, const char *path, struct error *e)
{
    const char *slash = strrchr(path, '/');
    char directory[PATH_MAX] = ".";
    int fd, rc = OK;

    if (!io)
        io = &io_real;
    if (slash && (size_t)(slash - path) >= sizeof directory)
        return error_set(e, ERR_ARG, "%s: path too long", path);
    if (slash) {
        size_t n = slash == path ? 1 : (size_t)(slash - path);

        memcpy(directory, path, n);
        directory[n] = '\0';
    }
    if ((fd = io->open(io->context, directory, O_RDONLY | O_DIRECTORY, 0)) < 0)
        return error_system(e, "%s: cannot open the directory", directory);
    /* Some file systems cannot sync a directory and say EINVAL; nothing more can be done there. */
    if (io->fsync(io->context, fd) < 0 && errno != EINVAL)
        rc = error_system(e, "%s: cannot sync the directory", directory);
    io->close(io->context, fd);
    return rc;
}

/* 0: the path is too long. */
static int name_temporary(char out[PATH_MAX], const char *path, int64_t pid)
{
    return snprintf(out, PATH_MAX, "%s.tmp.%" PRId64, path, pid) < PATH_MAX;
}

int file_replace(const struct io *io, const char *path, const void *bytes, size_t n, struct error *e)
{
    char temporary[PATH_MAX];
    int fd, rc = OK;

    if (!io)
        io = &io_real;
    if (!name_temporary(temporary, path, getpid()))
        return error_set(e, ERR_ARG, "%s: path too long", path);
    /* A leftover of a killed process with our process number would make O_EXCL fail for ever. */
    unlink(temporary);
    if ((fd = io->open(io->context, temporary, O_WRONLY | O_CREAT | O_EXCL, 0666)) < 0)
        return error_system(e, "%s: cannot create", temporary);
    if (io_write_full(io, fd, bytes, n) < 0)
        rc = error_system(e, "%s: cannot write", temporary);
    else if (io->fsync(io->context, fd) < 0)
        rc = error_system(e, "%s: cannot sync", temporary);
    if (io->close(io->context, fd) < 0 && rc == OK)
        rc = error_system(e, "%s: cannot close", temporary);
    if (rc == OK && io->rename(io->context, temporary, path) < 0)
        rc = error_system(e, "%s: cannot rename to %s", temporary, path);
    if (rc == OK)
        return file_sync_parent(io, path, e);
    unlink(temporary);
    return rc;
}

void file_replace_tidy(const char *path, int64_t pid)
{
    char temporary[PATH_MAX];

    if (name_temporary(temporary, path, pid))
        unlink(temporary);
}

int file_replace_leaves(const char *name, const char *of)
{
    const size_t n = strlen(of), end = strlen(".tmp.");
    const char *number = name + n + end;

    return !strncmp(name, of, n) && !strncmp(name + n, ".tmp.", end) && *number &&
           !number[strspn(number, "0123456789")];
}

int file_make_directories(const char *path, struct error *e)
{
    char partial[PATH_MAX];
    size_t n = strlen(path);
    struct stat st;

    if (n >= sizeof partial)
        return error_set(e, ERR_ARG, "%s: path too long", path);
    memcpy(partial, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (partial[i] != '/' && partial[i] != '\0')
            continue;
        partial[i] = '\0';
        if (mkdir(partial, 0777) < 0 && errno != EEXIST) {
            int system = errno;

            /* mkdir of an existing directory on a read-only file system says EROFS, not EEXIST. */
            if (stat(partial, &st) < 0 || !S_ISDIR(st.st_mode)) {
                errno = system;
                return error_system(e, "%s: cannot make the directory", partial);
            }
        }
        if (i < n)
            partial[i] = '/';
    }
    if (stat(path, &st) < 0)
        return error_system(e, "%s: cannot make the directory", path);
    if (!S_ISDIR(st.st_mode))
        return error_set(e, ERR_IO, "%s: exists, but is not a directory", path);
    return OK;
}

int file_join(char *out, size_t size, const char *directory, const char *name, struct error *e)
{
    size_t n = strlen(directory);
    const char *slash = n && directory[n - 1] == '/' ? "" : "/";

    if ((size_t)snprintf(out, size, "%s%s%s", directory, slash, name) >= size)
        return error_set(e, ERR_ARG, "%s/%s: path too long", directory, name);
    return OK;
}

const char *file_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

int file_is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

int file_find_program(const char *name, char *out)
{
    const char *path = getenv("PATH");

    while (path && *path) {
        const size_t n = strcspn(path, ":");

        if (snprintf(out, PATH_MAX, "%.*s/%s", n ? (int)n : 1, n ? path : ".", name) < PATH_MAX && file_is_program(out))
            return 1;
        path += n + (path[n] == ':');
    }
    return 0;
}

/* Uses a read lease, which the kernel grants only if nobody has the file open for writing. */
enum file_writer file_writer(int fd)
{
    /* From linux/magic.h: file systems whose leases say nothing about other writers. */
    static const unsigned long remote[] = { 0x6969, 0x517b, 0xff534d42, 0xfe534d42 }; /* NFS, SMB, CIFS, SMB2 */
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0)
        return FILE_WRITER_UNKNOWN;
    for (size_t i = 0; i < sizeof remote / sizeof *remote; i++)
        if (((unsigned long)fs.f_type & 0xffffffffu) == remote[i])
            return FILE_WRITER_UNKNOWN;
    /* If it is opened at this moment, the kernel signals us: with a harmless signal, not SIGIO, which is fatal. */
    if (fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETLEASE, F_RDLCK) == 0) {
        fcntl(fd, F_SETLEASE, F_UNLCK);
        return FILE_NOT_WRITTEN;
    }
    return errno == EAGAIN ? FILE_WRITTEN : FILE_WRITER_UNKNOWN;
}

int file_is_written(int fd)
{
    return file_writer(fd) == FILE_WRITTEN;
}

size_t file_open_limit(size_t most)
{
    struct rlimit limit;
    rlim_t wanted;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 64;                                          /* what everybody has */
    wanted = limit.rlim_max < most ? limit.rlim_max : most; /* RLIM_INFINITY is above all numbers */
    if (limit.rlim_cur < wanted) {
        rlim_t before = limit.rlim_cur;

        limit.rlim_cur = wanted;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
            limit.rlim_cur = before;
    }
    return limit.rlim_cur < most ? (size_t)limit.rlim_cur : most;
}

int file_open_room(size_t wanted)
{
    const int lowest = open("/", O_PATH | O_CLOEXEC); /* the kernel gives the lowest free one */
    struct rlimit limit;

    if (lowest < 0 && errno != EMFILE)
        return errno != ENFILE;
    if (lowest >= 0)
        close(lowest);
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || (lowest >= 0 && (rlim_t)lowest + wanted <= limit.rlim_cur))
        return 1;
    return limit.rlim_cur < limit.rlim_max && file_open_limit(2 * (size_t)limit.rlim_cur + wanted) > limit.rlim_cur &&
           file_open_room(wanted);
}
