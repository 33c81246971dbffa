/*
 * evaluation_intake.h - how checkpoints come to be evaluated: what the thread that looks at the directory finds and
 * tells, pins of earlier processes, and what is to be found again. What it hears is said, and what became of
 * checkpoints that never waited is given to the record. One thread.
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

/* s and says are borrowed. Nobody looks yet, so that the record can fill the queue. On OK *out is yours until
 * evaluation_intake_free(), after which nobody looks any more; NULL is fine. */
int evaluation_intake_new(struct evaluation_intake **out, const struct evaluation_watch_settings *s,
                          const struct watch_log *says, struct error *e);
void evaluation_intake_free(struct evaluation_intake *i);
struct queue *evaluation_intake_queue(const struct evaluation_intake *i); /* borrowed */

/* Takes in the pins, begins to watch, looks once, and hears what came of that. The record is borrowed. */
int evaluation_intake_begin(struct evaluation_intake *i, struct evaluation_record *record, struct error *e);
int evaluation_intake_hear(struct evaluation_intake *i, struct error *e);

/* a value */
struct evaluation_intake_facts {
    size_t queued;         /* that wait */
    size_t undecided;      /* that are not whole, or have no place, as was heard last */
    uint64_t pinned_bytes; /* of those that wait */
    double first_look;     /* wall, when it ended */
    double last_found;     /* monotonic; before there is one, the beginning */
    double newest_written; /* wall, of the newest index file; 0: none yet */
    int64_t newest_step;   /* of that checkpoint; -1: none yet */
};
struct evaluation_intake_facts evaluation_intake_facts(const struct evaluation_intake *i);

/* What is there is not what the item was; evaluated: it changed during its evaluation. How often in a row it did so,
 * -1: it is not there any more. Below `most` it is forgotten with its pin, and what is there is found when it is quiet;
 * else it is left alone. */
int evaluation_intake_changed(struct evaluation_intake *i, const struct queue_item *item, int evaluated, int most);
void evaluation_intake_undisturbed(struct evaluation_intake *i, const char *name);
/* The pin of an item that is no longer queued is lost: lets the watcher find the checkpoint again unless the trainer
 * has deleted it. */
void evaluation_intake_find_again(struct evaluation_intake *i, const struct queue_item *item);
/* The same of all that wait and whose pin is not there any more. */
void evaluation_intake_find_lost(struct evaluation_intake *i);

/* closed: after one more look, of all that happened before, new names do not count any more; else they do again. */
int evaluation_intake_close(struct evaluation_intake *i, int closed, struct error *e);
/* lookout_rest(), watcher_share_inotify(), watcher_look_soon(). */
void evaluation_intake_rest(struct evaluation_intake *i);
void evaluation_intake_share_inotify(struct evaluation_intake *i, struct watch_inotify *shared, size_t place);
void evaluation_intake_look_soon(struct evaluation_intake *i);

#endif
