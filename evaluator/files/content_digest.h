/*
 * content_digest.h - identifies the contents of checkpoints of unknown formats: a digest over the names, sizes and
 * bytes of a file or of all files below a directory. It does not depend on place or time, so moving or copying a
 * checkpoint keeps it and overwriting changes it. Of a file larger than CONTENT_WHOLE bytes only CONTENT_PIECES evenly
 * spread pieces are read, including the first and the last bytes: every training step changes nearly every byte of the
 * weights.
 *
 * Symbolic links to files are followed, links to directories are not; FIFOs, sockets and devices are skipped.
 */
#ifndef EVALUATOR_FILES_CONTENT_DIGEST_H
#define EVALUATOR_FILES_CONTENT_DIGEST_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* ---- file stamp -------------------------------------------------------------------------------------------------- */

/*
 * Detects changes of a file without reading it: a number that differs once the file was written,
 * replaced, renamed or linked, and the times of its changes. Pure.
 */

/* Mixes x into h. Digests in ledgers are made with it, so it must never change. */
uint64_t file_stamp_mix(uint64_t h, uint64_t x);

/* Made of device, inode, size and both times. Valid on this machine until it reboots. */
uint64_t file_stamp(const struct stat *st);

/* Wall seconds. changed: of the inode, also when an older file is renamed into place; modified: of the content. */
double file_stamp_changed(const struct stat *st);
double file_stamp_modified(const struct stat *st);

/* ---- content digest ---------------------------------------------------------------------------------------------- */

enum { CONTENT_WHOLE = 1 << 20, CONTENT_PIECES = 16, CONTENT_FILES_MAX = 10000, CONTENT_DEPTH_MAX = 16 };

struct content_file {
    char *name; /* relative to the directory; "": path is the file */
    uint64_t digest;
};

/* all zero is empty */
struct content {
    struct content_file *files; /* ascending by name */
    size_t count, capacity;
};

/* Reads path, a file or a directory. ERR_IO: something cannot be read, or was deleted meanwhile; ERR_ARG: too many
 * files, or nested too deeply; ERR_NOMEM. On OK content_release() it. */
int content_read(const char *path, struct content *out, struct error *e);
void content_release(struct content *c); /* and empties c */

uint64_t content_digest(const struct content *c);
/* 1 if every file of `before` is unchanged in `after`: only new files were added. */
int content_only_grew(const struct content *before, const struct content *after);

/* 1 if `after` is what is left of `before`: files are missing, and all others are unchanged. */
int content_shrank(const struct content *before, const struct content *after);
/* *out, which is empty, becomes a copy. ERR_NOMEM: it stays empty. */
int content_copy(const struct content *c, struct content *out, struct error *e);

/* Says that the contents of path changed while they were read, which another look may not meet: error_is_lack(). */
int content_changed(struct error *e, const char *path);

/* *modified becomes the wall time when the file, or the newest file below the directory, was modified. 0: none. */
int content_modified(int directory_fd, const char *name, double *modified);

/* The wall times when the newest file in a directory was modified (0: it has none), and the newest directory, itself
 * included: when a file in it was last made, renamed or deleted. 0: it is no directory. */
int content_times(int directory_fd, const char *name, double *file, double *directory);

/* 1: a process on this machine has the file, or a file below the directory, open for writing (file_is_written()). */
int content_is_written(const char *path);

/* *stamp is made of the sizes and times of the file or of all files below the directory. *changed becomes the wall time
 * of the last change. 0, with errno: nothing is at that path, or it cannot be looked at. */
int content_stamp(int directory_fd, const char *name, uint64_t *stamp, double *changed);

#endif
