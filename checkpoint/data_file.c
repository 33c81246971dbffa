#include "checkpoint/data_file.h"

#include "base/crc32c.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    CHUNK =
        1 << 18, /* through the processor's cache: CRC, then write or copy; and what small tensors are collected to */
    DIRECT = 1 << 21, /* a direct write: a huge page, which the kernel pins at once */
};

struct data_file {
    const struct io *io;
    const char *path;
    int fd;
    int64_t offset; /* written; a multiple of CHUNK until the end */
    int64_t direct_from;
    int direct;   /* 1: the descriptor writes past the page cache */
    char *buffer; /* of `room` bytes, of which `held` are to be written at `offset` */
    size_t room, held;
    void *memory;       /* of a buffer that is a huge page within it; NULL: the buffer itself was allocated */
    struct error first; /* why a write failed */
};

/* File systems of disks. Others copy in memory all the same, or send each write over a network and wait. */
static int on_disk(int fd)
{
    static const unsigned long kinds[] = { 0xEF53 /* ext4 */, 0x58465342 /* xfs */, 0x9123683E /* btrfs */,
                                           0xF2F52010 /* f2fs */ };
    struct statfs there;

    if (fstatfs(fd, &there) < 0)
        return 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((unsigned long)there.f_type == kinds[i])
            return 1;
    return 0;
}

int data_file_create(struct data_file **out, const struct io *io, const char *path, struct error *e)
{
    struct data_file *f = calloc(1, sizeof *f);

    *out = NULL;
    if (!f || !(f->buffer = malloc(CHUNK))) {
        free(f);
        return error_memory(e, path, "to write it");
    }
    f->io = io;
    f->path = path;
    f->room = CHUNK;
    unlink(path);
    f->fd = io->open(io->context, path, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (f->fd < 0) {
        const int rc = error_system(e, "%s: cannot create", path);

        data_file_free(f);
        return rc;
    }
    f->direct_from = on_disk(f->fd) ? DATA_FILE_CACHED : -1;
    *out = f;
    return OK;
}

void data_file_direct_from(struct data_file *f, int64_t offset)
{
    f->direct_from = offset;
}

/* 0: done; -1: the descriptor is as it was. */
static int set_direct(struct data_file *f, int direct)
{
    const int flags = fcntl(f->fd, F_GETFL);

    if (flags < 0 || fcntl(f->fd, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) < 0)
        return -1;
    f->direct = direct;
    return 0;
}

/* Without memory or if the file system refuses, goes on through the page cache. The buffer is empty. */
static void go_direct(struct data_file *f)
{
    char *memory = malloc(2 * (size_t)DIRECT);

    if (!memory || set_direct(f, 1) < 0) {
        free(memory);
        return;
    }
    free(f->buffer);
    f->memory = memory;
    f->buffer = memory + (DIRECT - (uintptr_t)memory % DIRECT);
    f->room = DIRECT;
    madvise(f->buffer, DIRECT, MADV_HUGEPAGE); /* only advice */
}

/* Some file systems take O_DIRECT and refuse the writes. All refuse the next one after one that a full disk cut short
 * within a block. */
static int write_out(struct data_file *f, const char *bytes, size_t n)
{
    while (n) {
        const ssize_t done = f->io->write(f->io->context, f->fd, bytes, n);

        if (done < 0 && (errno == EINTR || (errno == EINVAL && f->direct && set_direct(f, 0) == 0)))
            continue;
        if (done <= 0) {
            errno = done < 0 ? errno : ENOSPC;
            return error_system(&f->first, "%s: cannot write", f->path);
        }
        bytes += done;
        n -= (size_t)done;
        f->offset += done;
    }
    if (f->offset == f->direct_from)
        go_direct(f);
    return OK;
}

int data_file_append(struct data_file *f, const void *bytes, size_t n, uint32_t *crc, struct error *e)
{
    const char *from = bytes;

    while (n && f->first.code == OK) {
        const size_t room = f->room - f->held, chunk = n < CHUNK ? n : CHUNK, part = chunk < room ? chunk : room;

        if (crc)
            *crc = crc32c_extend(*crc, from, part);
        if (part == f->room) /* none of it needs to be collected */
            write_out(f, from, part);
        else {
            memcpy(f->buffer + f->held, from, part);
            f->held += part;
        }
        if (f->held == f->room) {
            f->held = 0;
            write_out(f, f->buffer, f->room);
        }
        from += part;
        n -= part;
    }
    return data_file_error(f, e);
}

int data_file_error(const struct data_file *f, struct error *e)
{
    return f->first.code == OK ? OK : error_copy(e, &f->first);
}

int data_file_finish(struct data_file *f, struct error *e)
{
    const int fd = f->fd;

    if (f->first.code == OK && f->held) {
        if (f->direct) /* the end is seldom a whole block */
            set_direct(f, 0);
        write_out(f, f->buffer, f->held);
        f->held = 0;
    }
    if (f->first.code == OK && f->io->fsync(f->io->context, fd) < 0)
        error_system(&f->first, "%s: cannot sync", f->path);
    if (f->first.code != OK)
        return data_file_error(f, e);
    f->fd = -1;
    return f->io->close(f->io->context, fd) < 0 ? error_system(e, "%s: cannot close", f->path) : OK;
}

void data_file_free(struct data_file *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        f->io->close(f->io->context, f->fd);
    free(f->memory ? f->memory : f->buffer);
    free(f);
}
