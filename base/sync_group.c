#include "base/sync_group.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { THREADS = 32 };

struct work {
    const struct io *io;
    struct sync_group *group;
    atomic_size_t next;
};

static void *sync_items(void *argument)
{
    struct work *w = argument;

    for (size_t i; (i = atomic_fetch_add(&w->next, 1)) < w->group->count;) {
        struct sync_group_item *item = &w->group->items[i];

        if (w->io->fsync(w->io->context, item->fd) < 0)
            item->system = errno;
    }
    return NULL;
}

int sync_group_run(struct sync_group *g, struct error *e)
{
    struct work w = { .io = g->io ? g->io : &io_real, .group = g };
    pthread_t threads[THREADS];
    size_t started = 0;
    int rc = OK;

    while (started < THREADS && started + 1 < g->count && pthread_create(&threads[started], NULL, sync_items, &w) == 0)
        started++;
    sync_items(&w); /* this thread, too; alone if there are no others */
    while (started)
        pthread_join(threads[--started], NULL);
    for (size_t i = 0; i < g->count; i++) {
        struct sync_group_item *item = &g->items[i];

        if (w.io->close(w.io->context, item->fd) < 0 && !item->system)
            item->system = errno;
        /* Some file systems cannot sync a directory and say EINVAL; nothing more can be done there. */
        if (!item->system || (item->directory && item->system == EINVAL) || rc != OK)
            continue;
        errno = item->system;
        rc = error_system(e, "%s: cannot sync%s", item->path, item->directory ? " its directory" : "");
    }
    g->count = 0;
    return rc;
}

static int add(struct sync_group *g, struct sync_group_item item, struct error *e)
{
    g->items[g->count++] = item;
    return g->count < SYNC_GROUP_MOST ? OK : sync_group_run(g, e);
}

int sync_group_file(struct sync_group *g, int fd, const char *path, struct error *e)
{
    return add(g, (struct sync_group_item){ .fd = fd, .path = path }, e);
}

int sync_group_parent(struct sync_group *g, const char *path, struct error *e)
{
    const struct sync_group_item *last = g->count ? &g->items[g->count - 1] : NULL;
    const struct io *io = g->io ? g->io : &io_real;
    size_t n = (size_t)(file_base_name(path) - path);
    char directory[PATH_MAX];
    int fd;

    if (last && last->directory && (size_t)(file_base_name(last->path) - last->path) == n &&
        !memcmp(last->path, path, n))
        return OK;
    if (n >= sizeof directory)
        return error_set(e, ERR_ARG, "%s: path too long", path);
    memcpy(directory, n ? path : ".", n ? n : 1);
    directory[n ? n : 1] = '\0';
    if ((fd = io->open(io->context, directory, O_RDONLY | O_DIRECTORY, 0)) < 0)
        return error_system(e, "%s: cannot open the directory", directory);
    return add(g, (struct sync_group_item){ .fd = fd, .directory = 1, .path = path }, e);
}

void sync_group_release(struct sync_group *g)
{
    const struct io *io = g->io ? g->io : &io_real;

    while (g->count)
        io->close(io->context, g->items[--g->count].fd);
}
