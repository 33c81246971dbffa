/*
 * evaluation_intake.h - takes in the checkpoints to evaluate: those that the thread looking at the directory reports,
 * those that earlier processes pinned, and those to be found again. Logs what it hears, and gives the record the
 * outcomes of checkpoints that never waited. One thread.
 */
#ifndef EVALUATOR_EVALUATION_INTAKE_H
#define EVALUATOR_EVALUATION_INTAKE_H

#include "base/error.h"
#include "evaluator/evaluation_record.h"
#include "evaluator/evaluation_settings.h"
#include "evaluator/watch/queue.h"
#include "evaluator/watch_log.h"

#include <stddef.h>
#include <stdint.h>

struct evaluation_intake;

/* s and says are borrowed. Looking begins later, so that the record can fill the queue first. On OK *out is yours until
 * evaluation_intake_free(), which ends the looking; NULL is fine. */
int evaluation_intake_new(struct evaluation_intake **out, const struct evaluation_watch_settings *s,
                          const struct watch_log *says, struct error *e);
void evaluation_intake_free(struct evaluation_intake *i);
struct queue *evaluation_intake_queue(const struct evaluation_intake *i); /* borrowed */

/* Takes in the pins, begins to watch, looks once, and takes in what that found. The record is borrowed. hear: takes in
 * what came to light since. */
int evaluation_intake_begin(struct evaluation_intake *i, struct evaluation_record *record, struct error *e);
int evaluation_intake_hear(struct evaluation_intake *i, struct error *e);

/* a value */
struct evaluation_intake_facts {
    size_t queued;         /* checkpoints that wait */
    size_t undecided;      /* not whole, or without a place in the queue, as last heard */
    uint64_t pinned_bytes; /* of those that wait */
    double first_look;     /* wall, when it ended */
    double last_found;     /* monotonic; before the first, the beginning */
    double newest_written; /* wall, of the newest index file; 0: none yet */
    int64_t newest_step;   /* of that checkpoint; -1: none yet */
};
struct evaluation_intake_facts evaluation_intake_facts(const struct evaluation_intake *i);

/* The checkpoint is no longer what the item was; evaluated: it changed during its evaluation. Returns how often in a
 * row it did; -1: it no longer exists. Below `most` the item is forgotten with its pin, and the new content is found
 * once it is quiet; otherwise it is left alone. */
int evaluation_intake_changed(struct evaluation_intake *i, const struct queue_item *item, int evaluated, int most);
/* The checkpoint of that name was evaluated without a change meanwhile. */
void evaluation_intake_undisturbed(struct evaluation_intake *i, const char *name);
/* The pin of an item that is no longer queued is lost: lets the watcher find the checkpoint again unless the trainer
 * has deleted it. */
void evaluation_intake_find_again(struct evaluation_intake *i, const struct queue_item *item);
/* Does the same for all waiting items whose pin no longer exists. */
void evaluation_intake_find_lost(struct evaluation_intake *i);
/* A checkpoint whose line was forgotten: the next look finds it again, if it is still there. */
void evaluation_intake_forgotten(struct evaluation_intake *i, const char *name);

/* Looks now, so that all that is whole is in the queue; ERR_NOMEM. */
int evaluation_intake_look(struct evaluation_intake *i, struct error *e);
/* closed: looks once more, at all that happened before, then ignores new names. 0: no longer ignores them. */
int evaluation_intake_close(struct evaluation_intake *i, int closed, struct error *e);
/* lookout_rest(), watcher_share_inotify(), watcher_look_soon(). */
void evaluation_intake_rest(struct evaluation_intake *i);
void evaluation_intake_share_inotify(struct evaluation_intake *i, struct watch_inotify *shared, size_t place);
void evaluation_intake_look_soon(struct evaluation_intake *i);

#endif
