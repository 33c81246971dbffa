/*
 * content_digest.h - tells the contents of checkpoints of unknown formats apart: a digest over the names, sizes and
 * bytes of a file or of all files under a directory. It does not depend on where they lie or when they were written, so
 * a moved or copied checkpoint keeps it and an overwritten one does not. Of a file of more than CONTENT_WHOLE bytes
 * CONTENT_PIECES evenly spread pieces are read, the first and the last bytes among them: every training step changes
 * nearly every byte of the weights.
 *
 * Symbolic links to files are followed, to directories not; what is no file (FIFOs, sockets) is passed over.
 */
#ifndef EVALUATOR_FILES_CONTENT_DIGEST_H
#define EVALUATOR_FILES_CONTENT_DIGEST_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { CONTENT_WHOLE = 1 << 20, CONTENT_PIECES = 16, CONTENT_FILES_MAX = 10000, CONTENT_DEPTH_MAX = 16 };

struct content_file {
    char *name; /* below the directory; "" for the file itself */
    uint64_t digest;
};

struct content { /* all zero is empty */
    struct content_file *files; /* ascending by name */
    size_t count, capacity;
};

/* Reads path, a file or a directory. ERR_IO: something cannot be read, or went meanwhile; ERR_ARG: too many files, too
 * deep; ERR_NOMEM. On OK content_release() it. */
int content_read(const char *path, struct content *out, struct error *e);
void content_release(struct content *c); /* c is empty again */

uint64_t content_digest(const struct content *c);
/* 1 if every file of `before` is still in `after`, unchanged: nothing but new files came. */
int content_only_grew(const struct content *before, const struct content *after);

/* Wall seconds: when the file, or the newest of the files below the directory, was modified. 0: there is none. */
int content_modified(int directory_fd, const char *name, double *modified);

/* 1: somebody on this machine has the file, or a file below the directory, open for writing (file_is_written()). */
int content_is_written(const char *path);

/* What the files look like from outside: their sizes and times. Of a directory, all that is below it. *changed becomes
 * the wall time of the last change. 0: there is nothing at that path. */
int content_stamp(int directory_fd, const char *name, uint64_t *stamp, double *changed);

#endif
