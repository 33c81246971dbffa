/*
 * watch_inotify.h - says that something changed in some directories, by libinotifytools in a thread of its own.
 * Whoever listens lists the directory again, so a lost or doubled message does no harm; the names that came are told as
 * well, for what came and went between two listings. A directory that is not there (yet, or any more) is tried again
 * every `retry_seconds`; then all are watched anew, and all have news.
 *
 * The library keeps its state in globals: one watch_inotify a process at a time, and this is the only file that sees
 * it. It waits by select(), which ends the process when a descriptor is FD_SETSIZE or more: so whoever will have many
 * files open starts this first, with no directory yet, and again when it knows them. start and stop are for one
 * thread; the others for one thread at a time, and of each directory for the one that listens to it.
 */
#ifndef EVALUATOR_WATCH_WATCH_INOTIFY_H
#define EVALUATOR_WATCH_WATCH_INOTIFY_H

#include "base/buffer.h"
#include "base/error.h"

#include <stddef.h>

enum watch_news {           /* bits of what watch_inotify_take() returns */
    WATCH_CHANGED = 1,      /* a file that may matter came, changed, moved or went */
    WATCH_OVERFLOW = 2,     /* the kernel dropped messages */
    WATCH_STANDS = 4,       /* the directory is there and is watched from now on */
    WATCH_GONE = 8,         /* the directory was deleted, moved or replaced */
};

struct watch_inotify;

/* Tries to watch at once, in the caller's thread: standing[i] (standing may be NULL) is 1 if that watch stands when
 * this returns, 0 if the directory is not there. ERR_IO: inotify cannot be used here (limits, no kernel support, no
 * descriptor below FD_SETSIZE); poll instead. The paths are copied. On OK *out is yours until watch_inotify_stop(). */
int watch_inotify_start(struct watch_inotify **out, const char *const *directories, size_t count, double retry_seconds,
                        int *standing, struct error *e);
void watch_inotify_stop(struct watch_inotify *w); /* NULL is fine */

/* A descriptor that is readable while there is news of any directory that nobody has taken. Borrowed. */
int watch_inotify_descriptor(const struct watch_inotify *w);
/* The news of it since the last call, 0 for none. Never blocks. */
unsigned watch_inotify_take(struct watch_inotify *w, size_t i);
/* Appends the names of files that were made in it or moved into it since the last call, each with its NUL. Not all of
 * them where there were very many, or the kernel dropped messages. */
void watch_inotify_names(struct watch_inotify *w, size_t i, struct buffer *out);
/* Waits until the news of all that happened before this call can be taken. At once where nothing is watched. */
void watch_inotify_settle(struct watch_inotify *w);

#endif
