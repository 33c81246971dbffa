/*
 * sync_group.h - syncs many files and directories, several at a time: a journaling file system then writes its journal
 * once for all of them, instead of once for each fsync. One thread at a time.
 */
#ifndef BASE_SYNC_GROUP_H
#define BASE_SYNC_GROUP_H

#include "base/error.h"
#include "base/io.h"

#include <stddef.h>

enum { SYNC_GROUP_MOST = 256 }; /* waiting descriptors */

struct sync_group {
    const struct io *io; /* NULL: io_real */
    size_t count;
    struct sync_group_item {
        int fd, directory, system; /* system: errno, or 0 */
        const char *path;
    } items[SYNC_GROUP_MOST];
};

/* Takes over fd, which sync_group_run() syncs and closes, or a later call of these two when the group is full. path is
 * borrowed until then. An error may be about another file, which it names. */
int sync_group_file(struct sync_group *g, int fd, const char *path, struct error *e);
/* The same for the directory that holds path; consecutive paths in one directory count once. */
int sync_group_parent(struct sync_group *g, const char *path, struct error *e);

/* Syncs and closes all that wait. ERR_IO: a sync failed; all are closed even then. */
int sync_group_run(struct sync_group *g, struct error *e);
/* Closes all that wait, without syncing. */
void sync_group_release(struct sync_group *g);

#endif
