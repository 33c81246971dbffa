#include "evaluator/watch_inotify.h"

#include "checkpoint/checkpoint_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <inotifytools/inotify.h>
#include <inotifytools/inotifytools.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

struct directory {
    char *path;
    int news_fd;
    atomic_uint news;
    struct buffer names; /* under the lock */
    int watching; /* these three are the thread's, once it runs */
    int number;   /* of the watch, in events */
    struct stat watched;
};

struct watch_inotify {
    struct directory *items;
    size_t count;
    double retry_seconds;
    atomic_int stopping;
    pthread_mutex_t lock;
    int stop_fd, wake[2]; /* wake the thread where it sleeps, and (a pipe) where the library waits for events */
    pthread_t thread;
};

enum { MASK = IN_MOVED_TO | IN_MOVED_FROM | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF,
       LOST = IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED, NAMES_MAX = 1 << 20 };

static void tell(struct directory *d, unsigned news)
{
    uint64_t one = 1;
    ssize_t ignored;

    atomic_fetch_or(&d->news, news);
    ignored = write(d->news_fd, &one, sizeof one); /* fails only when full, and then it is readable anyway */
    (void)ignored;
}

/* The library waits for events and nothing else, so stopping makes one: the thread also watches a pipe that nobody else
 * can see, and is woken by a write to it. Of a file by memfd_create() Linux 6.18 tells no more. */
static void watch_wake(const struct watch_inotify *w)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", w->wake[1]);
    inotifytools_watch_file(path, IN_MODIFY);
}

/* The library keeps directories under names that end in a slash. */
static int number_of(const char *path)
{
    char name[PATH_MAX + 1];
    const size_t n = strlen(path);

    snprintf(name, sizeof name, "%s%s", path, n && path[n - 1] == '/' ? "" : "/");
    return inotifytools_wd_from_filename(name);
}

/* 1 the watch stands, 0 the directory is not there, -1 inotify does not work (errno). */
static int try_directory(struct directory *d)
{
    d->watching = 0;
    if (stat(d->path, &d->watched) < 0 || !S_ISDIR(d->watched.st_mode))
        return 0;
    if (!inotifytools_watch_file(d->path, MASK)) {
        errno = inotifytools_error();
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -1;
    }
    d->number = number_of(d->path);
    return d->watching = 1;
}

/* Watches all that are there: how many, or -1: inotify does not work (errno). The library starts afresh each time:
 * taking single watches back makes it complain on standard error when the kernel was faster. */
static int try_watch(struct watch_inotify *w)
{
    int standing = 0, failed = 0;

    inotifytools_cleanup();
    if (!inotifytools_initialize()) {
        errno = inotifytools_error();
        return -1;
    }
    for (size_t i = 0; i < w->count; i++) {
        int rc = try_directory(&w->items[i]);

        if (rc < 0)
            failed = errno;
        else
            standing += rc;
    }
    watch_wake(w);
    errno = failed;
    return standing || !failed ? standing : -1;
}

/* Temporary names are written before every checkpoint file and never matter by themselves. */
static int matters(const struct inotify_event *event)
{
    return !event->len || !checkpoint_name_temporary(event->name);
}

/* 1 if the path still leads to the directory that is watched: a parent may have been moved, of which inotify says
 * nothing. */
static int still_there(const struct directory *d)
{
    struct stat now;

    return stat(d->path, &now) == 0 && now.st_dev == d->watched.st_dev && now.st_ino == d->watched.st_ino;
}

static void sleep_retry(const struct watch_inotify *w)
{
    struct pollfd stop = { .fd = w->stop_fd, .events = POLLIN };

    poll(&stop, 1, (int)(w->retry_seconds * 1000));
}

/* Begins again: each directory that came, went or stayed may have changed meanwhile. */
static void watch_anew(struct watch_inotify *w)
{
    for (size_t i = 0; i < w->count; i++)
        w->items[i].watching = w->items[i].watching && still_there(&w->items[i]) ? 1 : -w->items[i].watching;
    for (size_t i = 0; i < w->count; i++) /* -1: it was watched, and is not there any more */
        if (w->items[i].watching < 0)
            tell(&w->items[i], WATCH_GONE);
    try_watch(w);
    for (size_t i = 0; i < w->count; i++)
        tell(&w->items[i], w->items[i].watching ? WATCH_STANDS | WATCH_CHANGED : WATCH_CHANGED);
}

/* 1 if a directory is missing that is there now, or one that is watched is elsewhere. */
static int out_of_date(const struct watch_inotify *w)
{
    for (size_t i = 0; i < w->count; i++) {
        const struct directory *d = &w->items[i];
        struct stat st;

        if (d->watching && !still_there(d))
            return 1;
        if (!d->watching && stat(d->path, &st) == 0 && S_ISDIR(st.st_mode) && access(d->path, R_OK) == 0)
            return 1;
    }
    return 0;
}

static int any_watched(const struct watch_inotify *w)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->items[i].watching)
            return 1;
    return 0;
}

static void keep_name(struct watch_inotify *w, struct directory *d, const struct inotify_event *event)
{
    if (!event->len || !(event->mask & (IN_CREATE | IN_MOVED_TO)))
        return;
    pthread_mutex_lock(&w->lock);
    if (d->names.length < NAMES_MAX)
        buffer_append(&d->names, event->name, strlen(event->name) + 1);
    pthread_mutex_unlock(&w->lock);
}

static void tell_of(struct watch_inotify *w, const struct inotify_event *event)
{
    for (size_t i = 0; i < w->count; i++) {
        if (event->mask & IN_Q_OVERFLOW)
            tell(&w->items[i], WATCH_OVERFLOW | WATCH_CHANGED);
        else if (w->items[i].watching && w->items[i].number == event->wd) {
            keep_name(w, &w->items[i], event);
            tell(&w->items[i], WATCH_CHANGED);
        }
    }
}

static void *run(void *argument)
{
    struct watch_inotify *w = argument;
    long seconds = w->retry_seconds < 1 ? 1 : (long)w->retry_seconds;

    while (!atomic_load(&w->stopping)) {
        struct inotify_event *event;

        if (!any_watched(w)) {
            if (out_of_date(w))
                watch_anew(w);
            if (!any_watched(w))
                sleep_retry(w);
            continue;
        }
        event = inotifytools_next_event(seconds);
        if (atomic_load(&w->stopping))
            break;
        if (!event && inotifytools_error()) { /* a watch that is made anew is never worse than a broken one */
            sleep_retry(w);
            watch_anew(w);
        } else if (!event ? out_of_date(w) : (event->mask & LOST) != 0) {
            watch_anew(w);
        } else if (event && !(event->mask & IN_MODIFY) && matters(event)) {
            tell_of(w, event);
        }
    }
    return NULL;
}

static void release(struct watch_inotify *w)
{
    inotifytools_cleanup();
    for (size_t i = 0; i < w->count; i++) {
        if (w->items[i].news_fd >= 0)
            close(w->items[i].news_fd);
        buffer_release(&w->items[i].names);
        free(w->items[i].path);
    }
    if (w->stop_fd >= 0)
        close(w->stop_fd);
    for (int i = 0; i < 2; i++)
        if (w->wake[i] >= 0)
            close(w->wake[i]);
    pthread_mutex_destroy(&w->lock);
    free(w->items);
    free(w);
}

static struct watch_inotify *new_watch(const char *const *directories, size_t count)
{
    struct watch_inotify *w = calloc(1, sizeof *w);
    int ok;

    if (!w || !(w->items = calloc(count, sizeof *w->items))) {
        free(w);
        return NULL;
    }
    pthread_mutex_init(&w->lock, NULL);
    w->stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    w->wake[0] = w->wake[1] = -1;
    ok = w->stop_fd >= 0 && pipe2(w->wake, O_NONBLOCK | O_CLOEXEC) == 0;
    for (; w->count < count; w->count++) {
        w->items[w->count].path = strdup(directories[w->count]);
        w->items[w->count].news_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        ok = ok && w->items[w->count].path && w->items[w->count].news_fd >= 0;
    }
    if (ok)
        return w;
    release(w);
    return NULL;
}

int watch_inotify_start(struct watch_inotify **out, const char *const *directories, size_t count, double retry_seconds,
                        int *standing, struct error *e)
{
    struct watch_inotify *w = new_watch(directories, count);
    int rc = OK;

    *out = NULL;
    if (!w)
        return error_system(e, "%s: cannot watch: no memory or descriptors", directories[0]);
    w->retry_seconds = retry_seconds;
    if (try_watch(w) < 0) {
        rc = error_system(e, "%s: cannot watch by inotify", directories[0]);
        goto fail;
    }
    for (size_t i = 0; standing && i < count; i++)
        standing[i] = w->items[i].watching;
    if ((errno = pthread_create(&w->thread, NULL, run, w))) {
        rc = error_system(e, "%s: cannot watch: no thread", directories[0]);
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
    ignored = write(w->wake[1], "", 1);
    (void)ignored;
    pthread_join(w->thread, NULL);
    release(w);
}

int watch_inotify_descriptor(const struct watch_inotify *w, size_t i)
{
    return w->items[i].news_fd;
}

unsigned watch_inotify_take(struct watch_inotify *w, size_t i)
{
    uint64_t count;
    ssize_t ignored = read(w->items[i].news_fd, &count, sizeof count);

    (void)ignored; /* EAGAIN: no news; the bits say so too */
    return atomic_exchange(&w->items[i].news, 0);
}

void watch_inotify_names(struct watch_inotify *w, size_t i, struct buffer *out)
{
    struct buffer *names = &w->items[i].names;

    pthread_mutex_lock(&w->lock);
    if (buffer_ok(names))
        buffer_append(out, names->data, names->length);
    buffer_clear(names);
    pthread_mutex_unlock(&w->lock);
}
