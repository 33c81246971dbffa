/*
 * lookout.h - looks at directories in a thread of its own, so that a checkpoint is found, and pinned or opened, before
 * its trainer deletes it, however long the caller waits for a disk. What it finds goes into the directory's queue;
 * other news is kept until the caller asks. One thread serves any number of directories, and sleeps while none is due.
 * All calls come from one other thread; those that hold a post, and lookout_close(), wait until the post's current look
 * is over.
 */
#ifndef EVALUATOR_WATCH_LOOKOUT_H
#define EVALUATOR_WATCH_LOOKOUT_H

#include "base/error.h"
#include "evaluator/watch/queue.h"
#include "evaluator/watch/watcher.h"

#include <stddef.h>

struct lookout;      /* the thread */
struct lookout_post; /* one of its directories */

/* On OK *out is yours until lookout_stop(), once all its posts are closed. The thread takes no signals. */
int lookout_start(struct lookout **out, struct error *e);
void lookout_stop(struct lookout *l); /* NULL is fine */

/* Readable after a look, until lookout_heard(); call that before asking for the news. */
int lookout_descriptor(const struct lookout *l);
void lookout_heard(struct lookout *l);

/* watcher_open(), then a first look in the caller's thread. On OK *out is yours until lookout_close(). */
int lookout_open(struct lookout_post **out, struct lookout *l, const char *directory,
                 const struct watcher_options *options, struct queue *queue, struct error *e);
void lookout_close(struct lookout_post *p); /* NULL is fine */

/* Tells what came to light since the last call, in order. *undecided: watcher_undecided() after the last look;
 * everything else seen by then is told now or was told before, and is in the queue. ERR_NOMEM: in this call or in a
 * look. */
int lookout_tell(struct lookout_post *p, watcher_tell *tell, void *context, size_t *undecided, struct error *e);

/* From here to lookout_release() nobody looks, and the watcher is the caller's. */
struct watcher *lookout_hold(struct lookout_post *p);
void lookout_release(struct lookout_post *p);

/* Stops looking at the directory. */
void lookout_rest(struct lookout_post *p);

#endif
