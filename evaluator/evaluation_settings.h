/*
 * evaluation_settings.h - the settings of one watched directory: a value, filled in from the command line, and by
 * evaluation_set.c for each of several directories, and only read from then on.
 */
#ifndef EVALUATOR_EVALUATION_SETTINGS_H
#define EVALUATOR_EVALUATION_SETTINGS_H

#include "evaluator/ending.h"
#include "evaluator/hooks.h"
#include "evaluator/record/evaluation_log.h"
#include "evaluator/record/ledger.h"
#include "evaluator/watch/lookout.h"

#include <stddef.h>
#include <stdint.h>

/* all text is borrowed for as long as the watch is open */
struct evaluation_watch_settings {
    const char *name; /* prefix of log lines; NULL: the only watch */
    const char *checkpoint_directory, *eval_directory;
    struct lookout *lookout;                 /* looks at checkpoint_directory; borrowed */
    int in_tree;                             /* found in a tree: dropped when both directories are gone */
    struct checkpoint_source_options source; /* the options behind watcher.source, for the lock */
    struct watcher_options watcher;          /* except pin_directory, which follows from pin */
    int pin;                                 /* waiting checkpoints are kept in EVAL/pinned/ (pin.h) */
    size_t queue_limit;                      /* how many may wait with their files open */
    struct ending_rules ending;
    int latest_only;     /* of the waiting checkpoints, only the one with the highest step */
    int64_t every;       /* the first of every N; 0 or 1: all */
    int64_t from;        /* this step and higher ones only */
    double min_interval; /* seconds from the start of one evaluation to the next; 0: none */
    int retry_failed;    /* evaluate again what the ledger records as failed */
    const char *command; /* of --exec; NULL: a built-in model evaluates */
    struct ledger_best best;
    int64_t keep_best;   /* how many of the best checkpoints EVAL/best/ holds */
    int64_t patience;    /* evaluations without a better one until CKPT/stop.json is written; 0: never */
    struct hooks *hooks; /* NULL: no commands */
    const struct evaluation_tags *tags;
    struct evaluation_log_files *open_files; /* shared by all watches; NULL: this one's event file stays open */
    int session;              /* 1: write the training's settings as hyperparameters, with these two if it names
                                  none of its own */
    const char *model, *data; /* or NULL */
    int checkpoint_time;      /* points have the time of the checkpoint's index, not the evaluation's */
    int json;                 /* print each ledger line on standard output, too */
    int take_over;            /* take the lock even from an evaluator on another host */
    int strict;               /* end at the first failure */
    double retry_seconds;     /* between attempts to write to a failed disk */
};

#endif
