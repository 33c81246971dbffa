/*
 * hooks.h - commands that run on events: --on-best, --on-failure, --on-end. They run beside the evaluations, one at a
 * time, in the order of the events, and cannot affect them: a failure is only logged. A command that runs longer than
 * the timeout is ended. While HOOKS_WAITING_MAX runs are waiting, further events are skipped, which is logged. Each
 * event runs its command at most once: a crash loses the runs that were waiting. All calls come from one thread, and
 * none blocks.
 *
 * Words are split as in command_words.h. These placeholders and environment variables are set, empty if not known:
 *
 *   {event}           EVALUATOR_EVENT           "best", "failure" or "end"
 *   {eval_dir}        EVALUATOR_EVAL_DIR        where the ledger is
 *   {checkpoint_dir}  EVALUATOR_CHECKPOINT_DIR  the directory that is watched
 *   {checkpoint}      EVALUATOR_CHECKPOINT      the path of the checkpoint: with --keep-best that of its copy
 *   {name}            EVALUATOR_NAME            its name; for --on-end the best one's, as the next three
 *   {step}            EVALUATOR_STEP
 *   {metric}          EVALUATOR_METRIC          the metric that decides which is the best
 *   {value}           EVALUATOR_VALUE           its value
 *   {reason}          EVALUATOR_REASON          why it failed, or why the evaluator ends
 *   {done}, {failed}, {gone}   EVALUATOR_DONE, ...   how many so far
 *
 * Output of commands is kept in EVAL/logs/on-EVENT.log: HOOK_LOG_RUN bytes of each run. Before a run, a log of more
 * than HOOK_LOG_ALL bytes is renamed to on-EVENT.log.old.
 */
#ifndef EVALUATOR_HOOKS_H
#define EVALUATOR_HOOKS_H

#include "base/error.h"
#include "base/program/log.h"

#include <stddef.h>
#include <stdint.h>

enum hook_event { HOOK_BEST, HOOK_FAILURE, HOOK_END, HOOK_EVENTS };
enum { HOOKS_WAITING_MAX = 100, HOOK_LOG_RUN = 1 << 20, HOOK_LOG_ALL = 16 << 20 };

struct hooks_options {
    const char *commands[HOOK_EVENTS]; /* borrowed; NULL: none */
    double timeout;                    /* seconds; 0: none */
};

/* all borrowed for the call; NULL where not known */
struct hook_values {
    const char *watch; /* which of several, for the log */
    const char *eval_directory, *checkpoint_directory, *checkpoint, *name, *metric, *reason;
    int64_t step; /* -1: not known */
    double value; /* NaN: not known */
    size_t done, failed, gone;
};

struct hooks;

/* ERR_ARG: a command cannot be split, or has a misspelled {word}. log is borrowed. On OK *out is yours until
 * hooks_free(), which kills a running command; NULL if there is no command. */
int hooks_new(struct hooks **out, const struct hooks_options *options, struct log *log, struct error *e);
void hooks_free(struct hooks *h); /* NULL is fine here and below: nothing is run */

int hooks_wanted(const struct hooks *h, enum hook_event event);
/* Runs the command, now or when those before it are done. */
void hooks_post(struct hooks *h, enum hook_event event, const struct hook_values *values);

/* Readable when hooks_look() has work; -1: never. hooks_due: seconds until it has work in any case. */
int hooks_descriptor(const struct hooks *h);
double hooks_due(const struct hooks *h);
void hooks_look(struct hooks *h);
/* How many are running or waiting. */
size_t hooks_pending(const struct hooks *h);
/* Drops the waiting ones and ends the running one. */
void hooks_stop(struct hooks *h);

#endif
