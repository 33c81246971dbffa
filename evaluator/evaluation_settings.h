/*
 * evaluation_settings.h - what one watched directory is to be served by: a value, filled in by main.c from the command
 * line, for each directory by evaluation_set.c, and only read from then on.
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

#endif
