/*
 * directory_walk.h - finds the directories of some kind below a directory. Links and directories whose names begin with
 * a dot are skipped, except the top one; at most 16 levels deep.
 */
#ifndef BASE_DIRECTORY_WALK_H
#define BASE_DIRECTORY_WALK_H

/* 1: it is of the kind; do not look below it. 0: it is not. < 0: it is, but something failed. */
typedef int directory_visit(void *context, const char *directory);

/* Visits `top`, then the directories below it, names in natural order. Skips what cannot be listed. OK, or the first
 * error of a visit; the others are still visited. */
int directory_walk(const char *top, directory_visit *visit, void *context);

#endif
