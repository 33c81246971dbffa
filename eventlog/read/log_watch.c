#include "eventlog/read/log_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

void log_watch_open(struct log_watch *w)
{
    w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    w->last = -1;
}

void log_watch_close(struct log_watch *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}

/* Watches get ascending numbers; watching a directory again returns its old number. */
int log_watch_directory(struct log_watch *w, const char *path)
{
    int number = inotify_add_watch(w->fd, path,
                                   IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB |
                                       IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);

    if (number <= w->last)
        return 0;
    w->last = number;
    return 1;
}

void log_watch_drain(struct log_watch *w)
{
    char bytes[4096];

    while (w->fd >= 0 && read(w->fd, bytes, sizeof bytes) > 0)
        ;
}
