/*
 * file_tree.h - a file, or a directory with all that is in it, at a second place: by hard links or by copying; its size
 * and its removal. A symbolic link to a file counts as that file, and so does one that is given itself; links to
 * directories, sockets and FIFOs in a checkpoint are left out, and directories deeper than FILE_TREE_DEPTH_MAX are an
 * error. No one else may change `to` meanwhile.
 */
#ifndef EVALUATOR_FILES_FILE_TREE_H
#define EVALUATOR_FILES_FILE_TREE_H

#include "base/error.h"

#include <stdint.h>

enum { FILE_TREE_DEPTH_MAX = 32 };
enum file_tree_means {
    FILE_TREE_LINK,
    FILE_TREE_LINK_OR_COPY, /* a file that cannot be linked is copied */
    FILE_TREE_COPY,
};

/* `to` is not there before, and not after an error. A copy is on the disk when this returns; of links, what they stand
 * for was there before. ERR_IO with e->system: ENOENT: `from` is gone. */
int file_tree_make(const char *from, const char *to, enum file_tree_means means, struct error *e);

/* OK when it is not there. A symbolic link is removed itself. */
int file_tree_remove(const char *path, struct error *e);

/* Of all files in it, links not followed; 0 where nothing is. */
uint64_t file_tree_bytes(const char *path);

#endif
