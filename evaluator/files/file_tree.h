/*
 * file_tree.h - duplicates a file or a whole directory, by hard links or by copying; measures and removes one. Symbolic
 * links to files are followed, also as the argument; links to directories, sockets and FIFOs are left out; more than
 * FILE_TREE_DEPTH_MAX nested directories are an error. Nobody else may change `to` meanwhile.
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

/* `to` must not exist; it does not exist after an error. On return a copy has been synced; links need no sync, their
 * files existed before. ERR_IO with e->system ENOENT: `from` is gone. */
int file_tree_make(const char *from, const char *to, enum file_tree_means means, struct error *e);

/* OK if it does not exist. Does not follow a symbolic link. */
int file_tree_remove(const char *path, struct error *e);

/* Bytes of all files in it, not following links; 0 if it does not exist. */
uint64_t file_tree_bytes(const char *path);

#endif
