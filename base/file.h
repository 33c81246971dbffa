/*
 * file.h - whole files and directories: read, replace atomically, make. Paths are NUL-terminated byte strings.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/io.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Appends the whole file to `out`; ERR_IO: it cannot be read, ERR_NOMEM: it is larger than `limit` bytes. */
int file_read(const char *path, size_t limit, struct buffer *out, struct error *e);

/* The same, but ERR_ARG if it is a symbolic link or not a regular file. */
int file_read_plain(const char *path, size_t limit, struct buffer *out, struct error *e);

/* Opens a file that a user named, to write to it: ERR_ARG if it is a symbolic link, so that nothing is written
 * elsewhere; those below /dev and /proc, which the system made, are followed. flags: as of open(); on OK *fd is yours.
 * ERR_IO. */
int file_open_named(const char *path, int flags, int *fd, struct error *e);

/* Opens a program's own file of a fixed name: ERR_ARG if it is a symbolic link or not a regular file, so that nothing
 * is written elsewhere. Never blocks. flags: as of open(); io may be NULL for io_real; on OK *fd is yours. ERR_IO:
 * e->system says why. */
int file_open_plain(const struct io *io, const char *path, int flags, int *fd, struct error *e);

/* 1: the n bytes may be left by a crash while writing a text that begins with `head`: all or part of it, nothing, or
 * zeros. */
int file_begins(const char *text, size_t n, const char *head);

/* Reads n bytes at offset, continuing after short reads and EINTR. Returns how many; fewer than n only at the end of
 * the file; -1 with errno. */
ssize_t file_read_at(int fd, void *out, size_t n, uint64_t offset);
/* Writes all n bytes at offset, continuing after short writes and EINTR. 0, or -1 with errno. */
int file_write_at(int fd, const void *bytes, size_t n, uint64_t offset);

/* Makes `path` hold exactly these bytes: temporary file beside it, fsync, rename, fsync of the directory. After any
 * crash path holds the old bytes or the new ones, never a mix. io may be NULL for io_real. */
int file_replace(const struct io *io, const char *path, const void *bytes, size_t n, struct error *e);

/* 1: file_replace() uses `name` as the temporary name for a file `of`; a killed process leaves it behind. */
int file_replace_leaves(const char *name, const char *of);
/* Removes what the process of that number left for `path`, if it was killed in file_replace(). */
void file_replace_tidy(const char *path, int64_t pid);

/* fsync of the directory that holds `path`, without which a power cut can undo a rename in it. */
int file_sync_parent(const struct io *io, const char *path, struct error *e);

/* mkdir -p. OK if it exists already. */
int file_make_directories(const char *path, struct error *e);

/* Sets out (size bytes) to "directory/name"; ERR_ARG if it does not fit. */
int file_join(char *out, size_t size, const char *directory, const char *name, struct error *e);

/* The part after the last '/'. Borrowed from path. */
const char *file_base_name(const char *path);

/* 1: the path leads to a regular file that may be run. */
int file_is_program(const char *path);
/* Sets out (PATH_MAX bytes) to the first program of that name in the directories of PATH, as execvp() does. 0: none. */
int file_find_program(const char *name, char *out);

/* Whether a process on this machine has the file, open for reading as fd, open for writing. The kernel does not tell on
 * NFS and SMB, nor for other users' files; there only a lock or growth shows it. */
enum file_writer { FILE_NOT_WRITTEN, FILE_WRITTEN, FILE_WRITER_UNKNOWN };
enum file_writer file_writer(int fd);
int file_is_written(int fd); /* 1 if it is known to be written */

/* How many files may be open at once, after raising that limit as far as allowed, up to `most`. */
size_t file_open_limit(size_t most);
/* 1: `wanted` more files can be opened now, after raising that limit if necessary. */
int file_open_room(size_t wanted);

#endif
