/*
 * checkpoint_remains.h - tells whether a directory is what is left of a checkpoint that is being deleted, for one that
 * was never seen whole. Reads names and times only. Thread-safe.
 */
#ifndef EVALUATOR_WATCH_CHECKPOINT_REMAINS_H
#define EVALUATOR_WATCH_CHECKPOINT_REMAINS_H

#include <stddef.h>

/* 1: the directory's own index of parts (NAME.index.json with a weight_map) names a file that is missing, or at least
 * two later checkpoints, brothers (count), all have a file in them that this one lacks; `lacks` becomes its name. 0: it
 * does not, is no directory, or cannot be listed. Names are relative to directory_fd. */
int checkpoint_remains_lacks(int directory_fd, const char *name, const char *const *brothers, size_t count, char *lacks,
                             size_t size);

/* 1: a directory in it lost a file, or another name, after the newest file in it was written. */
int checkpoint_remains_trace(int directory_fd, const char *name);
/* 1: nothing in it was written after `wall`. */
int checkpoint_remains_older(int directory_fd, const char *name, double wall);

#endif
