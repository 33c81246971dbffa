/*
 * file_tree.h - a file, or a directory with all that is in it, at a second place: by hard links or by copying; and its
 * removal. A symbolic link to a file counts as that file; links to directories, sockets and FIFOs in a checkpoint are
 * left out, and directories deeper than FILE_TREE_DEPTH_MAX are an error. No one else may change `to` meanwhile.
 */
#ifndef EVALUATOR_FILE_TREE_H
#define EVALUATOR_FILE_TREE_H

#include "base/error.h"

enum { FILE_TREE_DEPTH_MAX = 32 };
enum file_tree_means { FILE_TREE_LINK, FILE_TREE_COPY };

/* `to` is not there before, and not after an error. A copy is on the disk when this returns; of links, what they stand
 * for was there before. ERR_IO with e->system: ENOENT: `from` is gone; EXDEV, EPERM, EOPNOTSUPP, EMLINK: no links here,
 * copying may work. */
int file_tree_make(const char *from, const char *to, enum file_tree_means means, struct error *e);

/* OK when it is not there. */
int file_tree_remove(const char *path, struct error *e);

#endif
