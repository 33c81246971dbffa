/*
 * watcher.h - finds the checkpoints of one directory and brings those that are whole into the queue, files open, so
 * that deleting them does no harm any more. Three sources: what the directory lists, what the state file names, and
 * inotify, which only says when to look again; beside it a poll, since inotify sees nothing on network file systems.
 * One thread at a time; lookout.h is the one that looks (inotify has another one inside).
 */
#ifndef EVALUATOR_WATCH_WATCHER_H
#define EVALUATOR_WATCH_WATCHER_H

#include "base/error.h"
#include "evaluator/watch/checkpoint_source.h"
#include "evaluator/watch/queue.h"

#include <stddef.h>
#include <stdint.h>

struct watcher_options {
    double poll_seconds;  /* > 0: look at least so often */
    double quiet_seconds; /* what is not whole and has not changed for so long has failed */
    int inotify;          /* 0: poll only */
    struct checkpoint_source source; /* what counts as a checkpoint; zero: the default */
    const char *pin_directory;       /* the eval directory to pin in (pin.h), borrowed; NULL: nothing is pinned */
    int64_t counted;                 /* checkpoints that were found before, for --step-from count */
    double pin_limit;                /* bytes: no more is pinned while so much is; 0: no limit */
};

/* What a look brings to light. A value; what it points to is borrowed for the call that tells it. */
struct watcher_news {
    enum watcher_news_kind {
        WATCHER_FOUND,   /* a checkpoint is in the queue: it, when it was written, if that is full */
        WATCHER_FAILED,  /* one never became whole: it, perhaps with opened_checkpoint_raw_digest(); why */
        WATCHER_KNOWN,   /* one is whole, and was found before: its name, as text */
        WATCHER_LOST,    /* one was deleted before it was opened: it */
        WATCHER_THERE,   /* the directory is there; the first look tells this, or the next */
        WATCHER_NOWHERE, /* it is not */
        WATCHER_TROUBLE, /* a sentence worth a line; not the same twice in a row */
    } kind;
    const struct checkpoint_identity *checkpoint; /* or NULL, as the next */
    const char *text;
    double written;
    int full;
};
typedef void watcher_tell(void *context, const struct watcher_news *news);

struct watcher;

/* Watches from when this returns. The queue is borrowed, directory is copied; it need not exist. tell is called inside
 * this and watcher_look(). ERR_NOMEM. Where inotify cannot be had, that is told as trouble, and the poll must do. */
int watcher_open(struct watcher **out, const char *directory, const struct watcher_options *options,
                 struct queue *queue, watcher_tell *tell, void *context, struct error *e);
void watcher_close(struct watcher *w); /* NULL is fine */

/* From now on the news of the directory comes from a notifier that several share (the library allows one a process),
 * where it is number `place`; borrowed, NULL: poll only. The next look is due at once. */
struct watch_inotify;
void watcher_share_inotify(struct watcher *w, struct watch_inotify *shared, size_t place);
/* The next look is due at once. */
void watcher_look_soon(struct watcher *w);

/* Readable when something changed; -1 without inotify. Seconds until the next look is due anyway, 0: now. */
int watcher_descriptor(const struct watcher *w);
double watcher_due(const struct watcher *w);
/* 1 if something changed or the poll is due. Never blocks. */
int watcher_should_look(struct watcher *w);

/* Lists the directory, opens what is new, and publishes the queue. ERR_NOMEM only; trouble with the directory is told,
 * and tried again. */
int watcher_look(struct watcher *w, struct error *e);
/* The same, when all that happened before this call is known: also what came and went between two looks. */
int watcher_look_last(struct watcher *w, struct error *e);

/* What was found under that name is not what it was: it is opened again when it is quiet. evaluated: it changed during
 * its evaluation. How often in a row it did; -1: it is not there any more. */
int watcher_look_again(struct watcher *w, const char *name, int evaluated);
/* What was found last with that step was no whole checkpoint: its number is free again, where steps are counted. */
void watcher_uncount(struct watcher *w, int64_t step);
/* It did not change during its evaluation. */
void watcher_undisturbed(struct watcher *w, const char *name);

/* 1: new names do not count any more; 0: they do again. */
void watcher_set_closed(struct watcher *w, int closed);
/* Checkpoints that were seen but are neither in the queue nor failed: not whole yet, or no place in the queue. */
size_t watcher_undecided(const struct watcher *w);

#endif
