/*
 * sync_group.h - fsync of many files and directories, several at a time: a file system with a journal then writes it
 * once for all of them, where one fsync after the other makes it write it each time. One thread at a time.
 */
#ifndef BASE_SYNC_GROUP_H
#define BASE_SYNC_GROUP_H

#include "base/error.h"
#include "base/io.h"

#include <stddef.h>

enum { SYNC_GROUP_MOST = 256 }; /* descriptors that wait */

struct sync_group {
    const struct io *io; /* NULL: io_real */
    size_t count;
    struct sync_group_item {
        int fd, directory, system; /* system: errno, or 0 */
        const char *path;
    } items[SYNC_GROUP_MOST];
};

/* Takes fd over, which is synced and closed by sync_group_run() or, when so many wait, by a later call of these two.
 * path is borrowed until then. An error may be that of another file, which it names. */
int sync_group_file(struct sync_group *g, int fd, const char *path, struct error *e);
/* The same for the directory that holds path; not twice for paths of one directory that come one after the other. */
int sync_group_parent(struct sync_group *g, const char *path, struct error *e);

/* All that wait are on the disk and closed, or ERR_IO; then they are closed, too. */
int sync_group_run(struct sync_group *g, struct error *e);
/* Closes what waits. */
void sync_group_release(struct sync_group *g);

#endif
