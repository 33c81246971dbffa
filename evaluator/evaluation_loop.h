/*
 * evaluation_loop.h - watches, evaluates, records, until it is time to end. All parts are put in by the caller.
 *
 * For each checkpoint: weights in, evaluation, points in the event file and down to the disk, then one line in the
 * ledger and down to the disk, then the next one. Between batches it looks at the directory, so that checkpoints which
 * come meanwhile are opened before they can be deleted.
 */
#ifndef EVALUATOR_EVALUATION_LOOP_H
#define EVALUATOR_EVALUATION_LOOP_H

#include "base/error.h"
#include "base/log.h"
#include "evaluator/ending.h"
#include "evaluator/evaluation_log.h"
#include "evaluator/ledger.h"
#include "evaluator/queue.h"
#include "evaluator/runner.h"
#include "evaluator/watcher.h"

#include <stdint.h>

struct evaluation_loop_settings {
    const char *checkpoint_directory;
    struct ending_rules ending;
    int latest_only;       /* of those that wait, only the highest step */
    int64_t every;         /* the first of every so many; 0 or 1: all */
    int64_t from;          /* only this step and higher ones */
    double min_interval;   /* seconds from the start of one evaluation to the next; 0: none */
    int strict;            /* the first that fails ends the loop */
    int json;              /* each ledger line also on standard output */
    int checkpoint_time;   /* points get the time of the checkpoint's index instead of the evaluation's */
    double retry_seconds;  /* between attempts to write to a disk that failed */
};

/* Fill in what is borrowed, the rest zero, before anything is called; log is used by one thread, the caller's. */
struct evaluation_loop {
    struct evaluation_loop_settings settings;
    struct log *log;
    struct queue *queue;
    struct watcher *watcher;
    struct ledger *ledger;
    struct evaluation_log *events;
    const struct runner *runner;
    int signal_fd;          /* gives a byte, its number, for each SIGTERM or SIGINT; not blocking */

    int signals;            /* so many came */
    int64_t evaluations;    /* of this process, failed ones included */
    int64_t skipped;        /* by latest_only, every, from */
    int64_t position;       /* of those that could be evaluated, for `every` */
    double last_news;       /* monotonic */
    double last_start;      /* monotonic, of an evaluation; 0: none yet */
    double newest_written;  /* wall, of the newest index; 0: none yet */
    double first_look;      /* wall, the end of it */
    int full_said, failed_training_said;
    const char *weights_said;
    struct ending_training training;
    int finished;           /* training.json says so, and it counts */
    struct ledger_record *pending; /* outcomes the watcher reported, still to be recorded */
    size_t pending_count, pending_capacity;
    struct error pending_error;
};

enum { EVALUATION_LOOP_DONE = 0, EVALUATION_LOOP_STOPPED = 1, EVALUATION_LOOP_FAILED = 2 };

/* What the watcher tells is for the loop: the events to open it with. Valid as long as l. */
struct watcher_events evaluation_loop_events(struct evaluation_loop *l);

/* Looks at training.json, so that what it says from the beginning can be told from what it says later. Call it early:
 * run() calls it too, but only when data and net are ready. */
void evaluation_loop_note_training(struct evaluation_loop *l);

/* DONE: an end condition, or one signal. STOPPED: a second signal, or --strict and a failure. FAILED or negative:
 * an error, in e. Frees what the loop itself took. */
int evaluation_loop_run(struct evaluation_loop *l, struct error *e);

#endif
