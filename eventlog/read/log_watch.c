#include "eventlog/read/log_watch.h"

#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/vfs.h>
#include <unistd.h>

#define XFS_MAGIC 0x58465342 /* in no header of the kernel's for programs */
#define ZFS_MAGIC 0x2fc12fc1

void log_watch_open(struct log_watch *w)
{
    w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    w->last = w->number = -1;
    w->missed = 0;
    w->have = w->at = 0;
}

void log_watch_close(struct log_watch *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}

/* Whether only this machine writes to file systems of that kind. */
static int is_local(const struct statfs *s)
{
    static const unsigned long local[] = { EXT4_SUPER_MAGIC,      XFS_MAGIC,   BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC,
                                           OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC, RAMFS_MAGIC,       ZFS_MAGIC,
                                           MSDOS_SUPER_MAGIC };

    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if ((unsigned long)s->f_type == local[i])
            return 1;
    return 0;
}

int log_watch_is_local(int fd)
{
    struct statfs s;

    return fstatfs(fd, &s) == 0 && is_local(&s);
}

/* Watches get ascending numbers; watching a directory again returns its old number. */
int log_watch_directory(struct log_watch *w, const char *path)
{
    struct statfs s;
    int number = inotify_add_watch(w->fd, path,
                                   IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB |
                                       IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);

    w->number = number;
    w->missed |= number < 0 && errno != ENOENT; /* one that is gone by now is not listed the next time */
    if (number <= w->last)
        return 0;
    w->last = number;
    w->missed |= statfs(path, &s) < 0 || !is_local(&s);
    return 1;
}

int log_watch_next(struct log_watch *w, int *number, int *contents)
{
    struct inotify_event event;
    ssize_t n;

    if (w->at == w->have) {
        if (w->fd < 0 || (n = read(w->fd, w->bytes, sizeof w->bytes)) <= 0)
            return 0;
        w->have = (size_t)n;
        w->at = 0;
    }
    memcpy(&event, w->bytes + w->at, sizeof event);
    w->at += sizeof event + event.len;
    *number = event.mask & IN_Q_OVERFLOW ? -1 : event.wd;
    *contents = (event.mask & IN_MODIFY) != 0;
    return 1;
}

void log_watch_drain(struct log_watch *w)
{
    char bytes[4096];

    while (w->fd >= 0 && read(w->fd, bytes, sizeof bytes) > 0)
        ;
}
