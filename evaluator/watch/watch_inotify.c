#include "evaluator/watch/watch_inotify.h"

#include "checkpoint/directory/checkpoint_directory.h"

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
#include <sys/select.h>
#include <sys/stat.h>
#include <unistd.h>

struct directory {
    char *path;
    unsigned news; /* these two: under the lock */
    struct buffer names;
    int watching;            /* these five: the thread's alone once it runs */
    int number;              /* watch descriptor, as in events */
    int was_there, replaced; /* when all watches were last renewed */
    struct stat watched;
};

struct watch_inotify {
    struct directory *items;
    size_t count;
    double retry_seconds;
    atomic_int stopping;
    pthread_mutex_t lock;
    pthread_cond_t reaches;
    uint64_t requested, reached; /* under the lock: writes to the pipe, and how many the thread has seen */
    int hears;                   /* under the lock: the thread will see a write to the pipe */
    int wakes;                   /* the pipe is watched; the thread's alone once it runs */
    int news_fd;                 /* counter > 0 while directories have news */
    int stop_fd, wake[2];        /* wake the thread: when it sleeps; (a pipe) when the library waits for events */
    pthread_t thread;
};

enum {
    MASK = IN_MOVED_TO | IN_MOVED_FROM | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF,
    LOST = IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED,
    NAMES_MAX = 1 << 20
};

static void tell(struct watch_inotify *w, struct directory *d, unsigned news)
{
    uint64_t one = 1;
    ssize_t ignored;

    pthread_mutex_lock(&w->lock);
    if (!d->news) {
        ignored = write(w->news_fd, &one, sizeof one);
        (void)ignored;
    }
    d->news |= news;
    pthread_mutex_unlock(&w->lock);
}

/* The library waits only for events, so stopping makes one: the thread also watches a pipe that nobody else can see,
 * and a write to the pipe wakes it. (Linux 6.18 reports no events for a file made by memfd_create().) The library also
 * keeps events that it read from an earlier inotify instance, whose watch numbers now mean other directories:
 * everything before the first read from the pipe is dropped. */
static void watch_wake(struct watch_inotify *w)
{
    const struct inotify_event *event;
    char path[64], byte = 0;

    snprintf(path, sizeof path, "/proc/self/fd/%d", w->wake[1]);
    w->wakes = inotifytools_watch_file(path, IN_MODIFY | IN_ACCESS);
    if (w->wakes && write(w->wake[1], &byte, 1) == 1 && read(w->wake[0], &byte, 1) == 1)
        do
            event = inotifytools_next_event(1);
        while (event && !(event->mask & IN_ACCESS));
}

static uint64_t requested(struct watch_inotify *w)
{
    uint64_t n;

    pthread_mutex_lock(&w->lock);
    n = w->requested;
    pthread_mutex_unlock(&w->lock);
    return n;
}

/* Events before those writes have been reported, or never will be: nobody needs to wait for them. */
static void reach(struct watch_inotify *w, uint64_t writes, int hears)
{
    pthread_mutex_lock(&w->lock);
    w->hears = hears;
    if (writes > w->reached)
        w->reached = writes;
    pthread_cond_signal(&w->reaches);
    pthread_mutex_unlock(&w->lock);
}

/* The library stores directory names with a final slash. */
static int number_of(const char *path)
{
    char name[PATH_MAX + 1];
    const size_t n = strlen(path);

    snprintf(name, sizeof name, "%s%s", path, n && path[n - 1] == '/' ? "" : "/");
    return inotifytools_wd_from_filename(name);
}

/* 1: watching; 0: the directory does not exist; -1: inotify does not work (errno). */
static int try_directory(struct directory *d)
{
    if (stat(d->path, &d->watched) < 0 || !S_ISDIR(d->watched.st_mode))
        return 0;
    if (!inotifytools_watch_file(d->path, MASK)) {
        errno = inotifytools_error();
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -1;
    }
    d->number = number_of(d->path);
    return d->watching = 1;
}

/* 1 if the inotify descriptor is one that select() can handle. */
static int has_low_descriptor(void)
{
    char path[64], target[64];

    for (int fd = 0; fd < FD_SETSIZE; fd++) {
        ssize_t n;

        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        n = readlink(path, target, sizeof target - 1);
        if (n > 0 && (target[n] = '\0', !strcmp(target, "anon_inode:inotify")))
            return 1;
    }
    return 0;
}

/* 0, or -1 and errno. */
static int initialize(void)
{
    inotifytools_cleanup();
    if (!inotifytools_initialize())
        errno = inotifytools_error();
    else if (has_low_descriptor())
        return 0;
    else
        errno = EMFILE;
    inotifytools_cleanup();
    return -1;
}

/* Watches all that exist: returns how many, or -1: inotify does not work (errno). The library is initialised anew each
 * time: removing single watches makes it complain on standard error if the kernel was faster. */
static int try_watch(struct watch_inotify *w)
{
    int standing = 0, failed = 0;

    for (size_t i = 0; i < w->count; i++)
        w->items[i].watching = 0;
    if (initialize() < 0)
        return -1;
    watch_wake(w);
    for (size_t i = 0; i < w->count; i++) {
        int rc = try_directory(&w->items[i]);

        if (rc < 0)
            failed = errno;
        else
            standing += rc;
    }
    errno = failed;
    return standing || !failed ? standing : -1;
}

/* Temporary files are written before every checkpoint file and never matter by themselves. */
static int matters(const struct inotify_event *event)
{
    return !event->len || !checkpoint_name_temporary(event->name);
}

/* 1 if the path still leads to the watched directory: inotify does not report that a parent was moved. */
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

static int any_watched(const struct watch_inotify *w)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->items[i].watching)
            return 1;
    return 0;
}

/* Watches everything anew: any directory may have changed meanwhile. */
static void watch_anew(struct watch_inotify *w)
{
    const uint64_t before = requested(w); /* their events are lost now, those of later writes are not */
    int hears;

    for (size_t i = 0; i < w->count; i++) {
        w->items[i].was_there = w->items[i].watching;
        w->items[i].replaced = w->items[i].watching && !still_there(&w->items[i]);
    }
    try_watch(w);
    hears = w->wakes && any_watched(w);
    if (hears) /* those notified below rely on it */
        reach(w, 0, hears);
    for (size_t i = 0; i < w->count; i++) {
        const struct directory *d = &w->items[i];
        const int gone = d->replaced || (d->was_there && !d->watching);

        tell(w, &w->items[i], WATCH_CHANGED | (d->watching ? WATCH_STANDS : 0) | (gone ? WATCH_GONE : 0));
    }
    reach(w, before, hears);
}

/* 1 if a missing directory exists now, or a watched one was moved. */
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
            tell(w, &w->items[i], WATCH_OVERFLOW | WATCH_CHANGED);
        else if (w->items[i].watching && w->items[i].number == event->wd) {
            keep_name(w, &w->items[i], event);
            tell(w, &w->items[i], WATCH_CHANGED);
        }
    }
}

static void *run(void *argument)
{
    struct watch_inotify *w = argument;
    long seconds = w->retry_seconds < 1 ? 1 : (long)w->retry_seconds;

    while (!atomic_load(&w->stopping)) {
        const uint64_t before = requested(w);
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
        if (event && event->mask & IN_Q_OVERFLOW)
            tell_of(w, event);
        if (!event && inotifytools_error()) { /* a new watch is never worse than a broken one */
            sleep_retry(w);
            watch_anew(w);
        } else if (!event ? out_of_date(w) : (event->mask & (LOST | IN_Q_OVERFLOW)) != 0) {
            watch_anew(w);
        } else if (!event) {
            reach(w, before, w->wakes); /* silence: if it has not come by now, it will not */
        } else if (event->mask & IN_MODIFY) {
            reach(w, requested(w), w->wakes); /* one at a time: the writer waits */
        } else if (matters(event)) {
            tell_of(w, event);
        }
    }
    return NULL;
}

static void release(struct watch_inotify *w)
{
    inotifytools_cleanup();
    for (size_t i = 0; i < w->count; i++) {
        buffer_release(&w->items[i].names);
        free(w->items[i].path);
    }
    if (w->news_fd >= 0)
        close(w->news_fd);
    if (w->stop_fd >= 0)
        close(w->stop_fd);
    for (int i = 0; i < 2; i++)
        if (w->wake[i] >= 0)
            close(w->wake[i]);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->reaches);
    free(w->items);
    free(w);
}

static struct watch_inotify *new_watch(const char *const *directories, size_t count)
{
    struct watch_inotify *w = calloc(1, sizeof *w);
    int ok;

    if (!w || !(w->items = calloc(count + 1, sizeof *w->items))) {
        free(w);
        return NULL;
    }
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->reaches, NULL);
    inotifytools_initialize(); /* before the others, so that its descriptor is low; try_watch() reuses the number */
    w->news_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
    w->stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    w->wake[0] = w->wake[1] = -1;
    ok = w->news_fd >= 0 && w->stop_fd >= 0 && pipe2(w->wake, O_NONBLOCK | O_CLOEXEC) == 0;
    for (; w->count < count; w->count++) {
        w->items[w->count].path = strdup(directories[w->count]);
        ok = ok && w->items[w->count].path;
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
    const char *first = count ? directories[0] : "inotify";
    int rc = OK;

    *out = NULL;
    if (!w)
        return error_system(e, "%s: cannot watch: no memory or descriptors", first);
    w->retry_seconds = retry_seconds;
    if (try_watch(w) < 0) {
        rc = error_system(e, "%s: cannot watch with inotify", first);
        goto fail;
    }
    for (size_t i = 0; standing && i < count; i++)
        standing[i] = w->items[i].watching;
    w->hears = w->wakes && any_watched(w);
    if ((errno = pthread_create(&w->thread, NULL, run, w))) {
        rc = error_system(e, "%s: cannot watch: no thread", first);
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

int watch_inotify_descriptor(const struct watch_inotify *w)
{
    return w->news_fd;
}

unsigned watch_inotify_take(struct watch_inotify *w, size_t i)
{
    struct directory *d = &w->items[i];
    uint64_t one;
    ssize_t ignored;
    unsigned news;

    pthread_mutex_lock(&w->lock);
    if ((news = d->news)) {
        ignored = read(w->news_fd, &one, sizeof one);
        (void)ignored;
    }
    d->news = 0;
    pthread_mutex_unlock(&w->lock);
    return news;
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

void watch_inotify_settle(struct watch_inotify *w)
{
    uint64_t request;

    pthread_mutex_lock(&w->lock);
    request = ++w->requested;
    if (w->hears && write(w->wake[1], "", 1) == 1) /* enough for some 60,000 times, as nobody reads it */
        while (w->hears && w->reached < request)
            pthread_cond_wait(&w->reaches, &w->lock);
    pthread_mutex_unlock(&w->lock);
}
