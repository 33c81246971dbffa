/*
 * watch_inotify.h - reports that something changed in some directories, by libinotifytools in a thread of its own. The
 * listener lists the directory again, so a lost or doubled message does no harm; names of new files are reported as
 * well, for files that come and go between two listings. A missing directory is tried again every `retry_seconds`; then
 * all directories are watched anew, and all have news.
 *
 * The library keeps its state in globals: only one watch_inotify may exist per process, and only this file uses the
 * library. It waits with select(), which ends the process if a descriptor is FD_SETSIZE or more: a program that will
 * have many files open must start this first, without directories, and again when it knows them. All functions are for
 * the thread that called start.
 */
#ifndef EVALUATOR_WATCH_WATCH_INOTIFY_H
#define EVALUATOR_WATCH_WATCH_INOTIFY_H

#include "base/buffer.h"
#include "base/error.h"

#include <stddef.h>

/* bits returned by watch_inotify_take() */
enum watch_news {
    WATCH_CHANGED = 1,  /* a relevant file was made, changed, moved or deleted */
    WATCH_OVERFLOW = 2, /* the kernel dropped messages */
    WATCH_STANDS = 4,   /* the directory exists and is watched from now on */
    WATCH_GONE = 8,     /* the directory was deleted, moved or replaced */
};

struct watch_inotify;

/* Tries to watch at once, in the caller's thread: on return standing[i] (standing may be NULL) is 1 if that directory
 * is watched, 0 if it does not exist. ERR_IO: inotify cannot be used here (limits, no kernel support, no descriptor
 * below FD_SETSIZE); poll instead. The paths are copied. On OK *out is yours until watch_inotify_stop(). */
int watch_inotify_start(struct watch_inotify **out, const char *const *directories, size_t count, double retry_seconds,
                        int *standing, struct error *e);
void watch_inotify_stop(struct watch_inotify *w); /* NULL is fine */

/* A descriptor that is readable while any directory has news that were not taken. Borrowed. */
int watch_inotify_descriptor(const struct watch_inotify *w);
/* The news of directory i since the last call, 0: none. Never blocks. */
unsigned watch_inotify_take(struct watch_inotify *w, size_t i);
/* Appends the names of files made in or moved into directory i since the last call, each with its NUL. Some may be
 * missing if there were very many, or if the kernel dropped messages. */
void watch_inotify_names(struct watch_inotify *w, size_t i, struct buffer *out);
/* Waits until the news of everything that happened before this call can be taken. Returns at once if nothing is
 * watched. */
void watch_inotify_settle(struct watch_inotify *w);

#endif
