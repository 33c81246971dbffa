/* remove_tree.h - takes away what a test has written. Links are removed, not followed. */
#ifndef TESTS_EVENTLOG_REMOVE_TREE_H
#define TESTS_EVENTLOG_REMOVE_TREE_H

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

static inline int remove_tree_entry(const char *name, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(name);
}

static inline int remove_tree_below(const char *name, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    return ftw->level ? remove(name) : 0;
}

/* The directory with all in it. 0, or not. */
static inline int remove_tree(const char *path)
{
    return nftw(path, remove_tree_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* What is in the directory. */
static inline int empty_tree(const char *path)
{
    return nftw(path, remove_tree_below, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
