/*
 * evaluation_watch.h - one watched directory and its eval directory: lock, ledger, event files, watcher, queue, which
 * checkpoints are taken, what becomes of them, and when the work is done. evaluation_loop.h serves an array of these
 * with one runner. The directory is looked at by the thread of lookout.h; all else is for one thread, and nothing here
 * waits: what must be waited for (a disk that is full, --min-interval) is looked at again by the next
 * evaluation_watch_tick().
 *
 * A checkpoint that is being evaluated is a flight. Flights may land in any order; results are recorded in the order of
 * their steps: points in the event file and down to the disk, then one line in the ledger and down to the disk.
 */
#ifndef EVALUATOR_EVALUATION_WATCH_H
#define EVALUATOR_EVALUATION_WATCH_H

#include "base/error.h"
#include "base/program/log.h"
#include "evaluator/ending.h"
#include "evaluator/evaluation_flight.h"
#include "evaluator/hooks.h"
#include "evaluator/keep/evaluation_best.h"
#include "evaluator/record/evaluation_lock.h"
#include "evaluator/record/evaluation_log.h"
#include "evaluator/record/evaluation_prom.h"
#include "evaluator/record/evaluation_work.h"
#include "evaluator/record/ledger.h"
#include "evaluator/record/outcomes.h"
#include "evaluator/score/runner.h"
#include "evaluator/watch/lookout.h"
#include "evaluator/watch/queue.h"

#include <stdint.h>

struct evaluation_watch_settings { /* all text is borrowed for as long as the watch is open */
    const char *name;          /* put before what is said; NULL: the only one */
    const char *checkpoint_directory, *eval_directory;
    struct lookout *lookout;   /* who looks at the first of them; borrowed */
    int in_tree;               /* found in a tree: let go when both directories are gone */
    struct checkpoint_source_options source; /* what watcher.source was made of, for the lock */
    struct watcher_options watcher; /* but for pin_directory, which follows from the next */
    int pin;                   /* what waits is kept in EVAL/pinned/ (pin.h) */
    size_t queue_limit;        /* so many may wait with their files open */
    struct ending_rules ending;
    int latest_only;           /* of those that wait, only the highest step */
    int64_t every;             /* the first of every so many; 0 or 1: all */
    int64_t from;              /* only this step and higher ones */
    double min_interval;       /* seconds from the start of one evaluation to the next; 0: none */
    int retry_failed;          /* what the ledger has as failed is evaluated again */
    struct ledger_best best;
    size_t keep_best;          /* so many of the best checkpoints are in EVAL/best/ */
    int64_t patience;          /* evaluations without a better one, after which CKPT/stop.json is written; 0: never */
    struct hooks *hooks;       /* NULL: nothing is run when something happens */
    const struct evaluation_tags *tags;
    struct evaluation_log_files *open_files; /* of all watches; NULL: its event file stays open */
    int session;               /* 1: the training's settings are written as hyperparameters, with these two where it
                                  does not name its own */
    const char *model, *data;  /* or NULL */
    int checkpoint_time;       /* points get the time of the checkpoint's index instead of the evaluation's */
    int json;                  /* each ledger line also on standard output */
    int take_over;             /* the lock, also from an evaluator of another host */
    int strict;                /* the first that fails ends the work */
    double retry_seconds;      /* between attempts to write to a disk that failed */
};

struct evaluation_watch { /* to be read by others, changed by evaluation_watch.c and evaluation_record.c */
    struct evaluation_watch_settings settings;
    struct log *log;
    struct evaluation_lock_held lock; /* of EVAL */
    struct queue *queue;
    struct lookout_post *post;
    size_t undecided;              /* of lookout_tell() */
    struct ledger *ledger;
    struct evaluation_log *points;
    struct evaluation_best *keeper; /* NULL: nothing follows from the best */
    struct evaluation_flight **flights; /* ascending by step */
    size_t flight_count, flight_capacity;

    int64_t evaluations;           /* of this process, failed ones included */
    int64_t skipped;               /* by latest_only, every, from */
    int64_t position;              /* of those that could be evaluated, for `every` */
    double last_news;              /* monotonic */
    double last_start;             /* monotonic, of an evaluation; 0: none yet */
    double lack_until;             /* monotonic: something was lacking, none is started before */
    struct evaluation_series series; /* what the curves ended in */
    struct outcomes outcomes;      /* by the newest line of each checkpoint */
    int64_t last_step;             /* of the newest line of the ledger; -1: none */
    int64_t greatest_step;         /* of all its lines and pins, whatever became of them; -1: none */
    double newest_written;         /* wall, of the newest index; 0: none yet */
    int64_t newest_step;           /* of that checkpoint, or before there is one of the newest line; -1: none */
    struct evaluation_work work;   /* as EVAL/work.json has it */
    double work_next;              /* monotonic: it is not written again before */
    double home_next;              /* monotonic: whether EVAL is still there is looked at then */
    int home_lost;                 /* it is not, and cannot be made again */
    double first_look;             /* wall, the end of it */
    double retry_at;               /* monotonic: a disk failed, and is tried again then; 0: it did not */
    int described;                 /* the settings of the training were given to points */
    int full_said, failed_training_said, best_missing_said;
    enum evaluation_weights weights_said;
    struct ending_training training;
    enum ending_training_end training_end; /* as training.json says, where that counts */
    const char *draining;          /* why it will end, while what is there is still evaluated */
    const char *ended;             /* why it has ended; NULL: it goes on */
    int end_posted;
    struct ledger_record *pending; /* outcomes the watcher reported, still to be recorded */
    size_t pending_count, pending_capacity;
    struct error pending_error;
};

enum { WATCH_STOPPED = 1, WATCH_GIVEN_UP = 2 };

/* Makes the eval directory, takes its lock, reads the ledger, begins to watch, and looks once: what comes and goes
 * afterwards is not missed. On OK *out is yours until evaluation_watch_close(). */
int evaluation_watch_open(struct evaluation_watch **out, const struct evaluation_watch_settings *settings,
                          struct log *log, struct error *e);
void evaluation_watch_close(struct evaluation_watch *w); /* drops flights unrecorded; NULL is fine */

/* Takes in what came to light in the directory, and says it. No more than that. */
int evaluation_watch_hear(struct evaluation_watch *w, struct error *e);

/* Takes in what came to light, records what can be recorded, and decides whether the work is done (ended).
 * signalled: a signal ends all, so nothing is tried again. WATCH_STOPPED: a checkpoint failed and settings.strict;
 * WATCH_GIVEN_UP: signalled, and the disk still fails; both with a sentence in e. Negative: cannot go on. */
int evaluation_watch_tick(struct evaluation_watch *w, int signalled, struct error *e);

/* 1 if a checkpoint may be started now. window: how many flights there may be at a time. */
int evaluation_watch_ready(const struct evaluation_watch *w, size_t window);
/* Takes the next one that no option skips: 1 and *out, or 0. Start its job, then say it is running; or land it. */
int evaluation_watch_take(struct evaluation_watch *w, struct evaluation_flight **out, struct error *e);
/* Before a runner starts on it, by_path being the runner's: 0: its files are not those that were found any more, so the
 * flight is dropped, and what is there is evaluated when it is whole. */
int evaluation_watch_start(struct evaluation_watch *w, struct evaluation_flight *flight, int by_path);

/* What the runner says of a flight. landed: with RUNNER_DONE *v is the watch's; else why is the reason.
 * RUNNER_STOPPED: the flight is dropped, and the checkpoint stays to be evaluated by a later process. A flight whose
 * files have changed meanwhile is dropped, too, and evaluated again. */
void evaluation_watch_progress(struct evaluation_watch *w, struct evaluation_flight *flight,
                               const struct runner_progress *progress);
void evaluation_watch_landed(struct evaluation_watch *w, struct evaluation_flight *flight, enum runner_state state,
                             struct evaluation *v, const struct error *why);

/* Its work has ended, for that reason: runs the command of --on-end. Once. */
void evaluation_watch_post_end(struct evaluation_watch *w, const char *reason);

/* The pin of an item that is in the queue no more is lost: it is found again where the trainer has not deleted it. */
void evaluation_watch_find_again(struct evaluation_watch *w, const struct queue_item *item);

/* Forgets a flight unrecorded, and frees it. */
void evaluation_watch_drop(struct evaluation_watch *w, struct evaluation_flight *flight);

/* Seconds until the next tick is due, if there is no news before. */
double evaluation_watch_due(const struct evaluation_watch *w);

#endif
