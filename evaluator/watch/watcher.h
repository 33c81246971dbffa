/*
 * watcher.h - finds the checkpoints of one directory and queues those that are whole, with their files open, so that
 * deleting them does no harm. It has three sources: the listing of the directory, the state file, and inotify, which
 * only says when to look again; it also polls, since inotify sees nothing on network file systems. One thread (inotify
 * has one of its own inside).
 *
 * Its parts come first: the data files of an incomplete checkpoint, and what is left of one that is being deleted.
 */
#ifndef EVALUATOR_WATCH_WATCHER_H
#define EVALUATOR_WATCH_WATCHER_H

#include "base/error.h"
#include "evaluator/watch/checkpoint_source.h"
#include "evaluator/watch/queue.h"
#include "evaluator/watch/sightings.h"

#include <stddef.h>
#include <stdint.h>

/* ---- checkpoint data --------------------------------------------------------------------------------------------- */

/*
 * Watches the data files of incomplete checkpoints: changes in them extend the quiet time. One
 * thread at a time.
 */

/* Calls sighting_data() for incomplete bundles. now, wall: the same moment. OK if the directory is gone; ERR_NOMEM. */
int checkpoint_data_look(struct sightings *s, int directory_fd, double now, double wall, struct error *e);

/* ---- checkpoint remains ------------------------------------------------------------------------------------------ */

/*
 * Tells whether a directory is what is left of a checkpoint that is being deleted, for one that
 * was never seen whole. Reads names and times only. Thread-safe.
 */

/* ---- watcher ----------------------------------------------------------------------------------------------------- */

struct watcher_options {
    double poll_seconds;             /* > 0: maximum time between two looks */
    double quiet_seconds;            /* what is not whole and unchanged for this long has failed */
    int inotify;                     /* 0: poll only */
    struct checkpoint_source source; /* what counts as a checkpoint; zero: the default */
    const char *pin_directory;       /* the eval directory to pin in (pin.h), borrowed; NULL: nothing is pinned */
    int64_t counted;                 /* checkpoints found earlier, for --step-from count */
    double pin_limit;                /* bytes: pin no more while this much is pinned; 0: no limit */
};

/* What a look brings to light. A value; what it points to is borrowed for the call that tells it. */
struct watcher_news {
    enum watcher_news_kind {
        WATCHER_FOUND,   /* `checkpoint` is in the queue; also sets `written`, and `full` if the queue is */
        WATCHER_FAILED,  /* `checkpoint` never became whole; its digest may be the raw one; `text`: why */
        WATCHER_KNOWN,   /* one is whole, and was found before; `text`: its name */
        WATCHER_LOST,    /* `checkpoint` was deleted before it was opened */
        WATCHER_THERE,   /* the directory exists; the first look tells this or WATCHER_NOWHERE */
        WATCHER_NOWHERE, /* it does not */
        WATCHER_UNREAD,  /* `checkpoint` failed, because it cannot be read: `text` says why */
        WATCHER_TROUBLE, /* `text`: a sentence to log; not the same twice in a row */
    } kind;
    const struct checkpoint_identity *checkpoint; /* or NULL; so is text */
    const char *text;
    double written;
    int full;
};
typedef void watcher_tell(void *context, const struct watcher_news *news);

struct watcher;

/* Watches from its return on. queue and context are borrowed, directory is copied; it need not exist. ERR_NOMEM. If
 * inotify is not available, WATCHER_TROUBLE says so, and only polling remains. */
int watcher_open(struct watcher **out, const char *directory, const struct watcher_options *options,
                 struct queue *queue, watcher_tell *tell, void *context, struct error *e);
void watcher_close(struct watcher *w); /* NULL is fine */

/* From now on takes the directory's news from a shared notifier (the library allows one per process), in which the
 * directory has number `place`; borrowed, NULL: poll only. The next look is due at once. */
struct watch_inotify;
void watcher_share_inotify(struct watcher *w, struct watch_inotify *shared, size_t place);
/* Makes the next look due at once. */
void watcher_look_soon(struct watcher *w);

/* Readable when something changed; -1: no inotify. watcher_due: seconds until the next look is due anyway, 0: now. */
int watcher_descriptor(const struct watcher *w);
double watcher_due(const struct watcher *w);
/* 1 if something changed or the poll is due. Never blocks. */
int watcher_should_look(struct watcher *w);

/* Lists the directory and opens what is new. Fails with ERR_NOMEM only; trouble with the directory is reported, and
 * tried again. */
int watcher_look(struct watcher *w, struct error *e);
/* The same, including everything that happened before this call: also what came and went between two looks. */
int watcher_look_last(struct watcher *w, struct error *e);

/* The checkpoint of that name has changed: opens it again when it is quiet. evaluated: it changed during its
 * evaluation. Returns how often in a row it did; -1: it no longer exists. */
int watcher_look_again(struct watcher *w, const char *name, int evaluated);
/* The checkpoint of that name, if it is still there, is opened again by the next look, as it is. */
void watcher_find_again(struct watcher *w, const char *name);
/* The checkpoint found last, with that step, was not whole: if steps are counted, its number is free again. */
void watcher_uncount(struct watcher *w, int64_t step);
/* Says that it did not change during its evaluation. */
void watcher_undisturbed(struct watcher *w, const char *name);

/* 1: ignores new names from now on; 0: no longer ignores them. */
enum { WATCHER_TRIES = 5 }; /* of what cannot be read, once the work is to end */
void watcher_set_closed(struct watcher *w, int closed);
/* Checkpoints that were seen but are neither queued nor failed: not whole yet, or the queue is full. */
size_t watcher_undecided(const struct watcher *w);

#endif
