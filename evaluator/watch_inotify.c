#include "evaluator/watch_inotify.h"

#include <errno.h>
#include <inotifytools/inotify.h>
#include <inotifytools/inotifytools.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct watch_inotify {
    char *directory;
    double retry_seconds;
    int news_fd;
    atomic_uint news;
    atomic_int stopping;
    int stop_fd, wake_fd; /* wake the thread where it sleeps, and where the library waits for events */
    pthread_t thread;
    int watching; /* the thread's, once it runs */
    struct stat watched;
};

enum { MASK = IN_MOVED_TO | IN_MOVED_FROM | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF,
       LOST = IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED };

static void tell(struct watch_inotify *w, unsigned news)
{
    uint64_t one = 1;
    ssize_t ignored;

    atomic_fetch_or(&w->news, news);
    ignored = write(w->news_fd, &one, sizeof one); /* fails only when full, and then it is readable anyway */
    (void)ignored;
}

/* The library waits for events and nothing else, so stopping makes one: the thread also watches a file in memory that
 * nobody else can see, and is woken by a write to it. Where that cannot be had, stopping takes a second longer. */
static void watch_wake(const struct watch_inotify *w)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", w->wake_fd);
    if (w->wake_fd >= 0)
        inotifytools_watch_file(path, IN_MODIFY);
}

/* 1 the watch stands, 0 the directory is not there, -1 inotify does not work (errno). The library starts afresh each
 * time: taking single watches back makes it complain on standard error when the kernel was faster. */
static int try_watch(struct watch_inotify *w)
{
    if (stat(w->directory, &w->watched) < 0 || !S_ISDIR(w->watched.st_mode))
        return 0;
    inotifytools_cleanup();
    if (!inotifytools_initialize()) {
        errno = inotifytools_error();
        return -1;
    }
    if (!inotifytools_watch_file(w->directory, MASK)) {
        errno = inotifytools_error();
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -1;
    }
    watch_wake(w);
    return 1;
}

/* Temporary names are written before every checkpoint file and never matter by themselves. */
static int matters(const struct inotify_event *event)
{
    return !event->len || !(strstr(event->name, ".tempstate") || strstr(event->name, ".tmp"));
}

/* 1 if the path still leads to the directory that is watched: a parent may have been moved, of which inotify says
 * nothing. */
static int still_there(const struct watch_inotify *w)
{
    struct stat now;

    return stat(w->directory, &now) == 0 && now.st_dev == w->watched.st_dev && now.st_ino == w->watched.st_ino;
}

static void sleep_retry(const struct watch_inotify *w)
{
    struct pollfd stop = { .fd = w->stop_fd, .events = POLLIN };

    poll(&stop, 1, (int)(w->retry_seconds * 1000));
}

static void *run(void *argument)
{
    struct watch_inotify *w = argument;
    long seconds = w->retry_seconds < 1 ? 1 : (long)w->retry_seconds;

    while (!atomic_load(&w->stopping)) {
        struct inotify_event *event;

        if (!w->watching) {
            if (try_watch(w) == 1) {
                w->watching = 1;
                tell(w, WATCH_STANDS | WATCH_CHANGED);
            } else {
                sleep_retry(w);
            }
            continue;
        }
        event = inotifytools_next_event(seconds);
        if (event ? (event->mask & IN_MODIFY) != 0 : !inotifytools_error() && still_there(w))
            continue; /* woken to stop, or nothing happened */
        if (event && event->mask & IN_Q_OVERFLOW) {
            tell(w, WATCH_OVERFLOW | WATCH_CHANGED);
        } else if (!event || event->mask & LOST) {
            /* Also after an error of the library: a watch that is made anew is never worse than a broken one. */
            if (!event && still_there(w))
                sleep_retry(w);
            w->watching = 0;
            tell(w, still_there(w) ? WATCH_CHANGED : WATCH_GONE | WATCH_CHANGED);
        } else if (matters(event)) {
            tell(w, WATCH_CHANGED);
        }
    }
    return NULL;
}

static void release(struct watch_inotify *w)
{
    inotifytools_cleanup();
    if (w->news_fd >= 0)
        close(w->news_fd);
    if (w->stop_fd >= 0)
        close(w->stop_fd);
    if (w->wake_fd >= 0)
        close(w->wake_fd);
    free(w->directory);
    free(w);
}

int watch_inotify_start(struct watch_inotify **out, const char *directory, double retry_seconds, int *standing,
                        struct error *e)
{
    struct watch_inotify *w = calloc(1, sizeof *w);
    int rc = OK, found;

    *out = NULL;
    if (!w || !(w->directory = strdup(directory))) {
        free(w);
        return error_set(e, ERR_NOMEM, "%s: no memory to watch it", directory);
    }
    w->retry_seconds = retry_seconds;
    w->news_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    w->stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    w->wake_fd = memfd_create("evaluator", MFD_CLOEXEC);
    if (w->news_fd < 0 || w->stop_fd < 0) {
        rc = error_system(e, "%s: cannot watch: eventfd", directory);
        goto fail;
    }
    if ((found = try_watch(w)) < 0) {
        rc = error_system(e, "%s: cannot watch by inotify", directory);
        goto fail;
    }
    *standing = w->watching = found;
    if ((errno = pthread_create(&w->thread, NULL, run, w))) {
        rc = error_system(e, "%s: cannot watch: no thread", directory);
        goto fail;
    }
    *out = w;
    return OK;
fail:
    release(w);
    return rc;
}

void watch_inotify_stop(struct watch_inotify *w)
{
    uint64_t one = 1;
    ssize_t ignored;

    if (!w)
        return;
    atomic_store(&w->stopping, 1);
    ignored = write(w->stop_fd, &one, sizeof one);
    ignored = w->wake_fd >= 0 ? write(w->wake_fd, "", 1) : 0;
    (void)ignored;
    pthread_join(w->thread, NULL);
    release(w);
}

int watch_inotify_descriptor(const struct watch_inotify *w)
{
    return w->news_fd;
}

unsigned watch_inotify_take(struct watch_inotify *w)
{
    uint64_t count;
    ssize_t ignored = read(w->news_fd, &count, sizeof count);

    (void)ignored; /* EAGAIN: no news; the bits say so too */
    return atomic_exchange(&w->news, 0);
}
