/*
 * runner.h - what evaluates checkpoints beside the loop: a table of calls, so that the loop does not know whether it is
 * the built-in models in a thread (thread_runner.h), commands in processes (command_runner.h), or something else.
 * A runner has slots; each evaluates one checkpoint at a time. All calls come from the loop's thread, and none blocks.
 */
#ifndef EVALUATOR_SCORE_RUNNER_H
#define EVALUATOR_SCORE_RUNNER_H

#include "base/error.h"
#include "evaluator/files/checkpoint_identity.h"
#include "evaluator/files/opened_checkpoint.h"
#include "evaluator/score/evaluation.h"

struct runner_job { /* all borrowed until the slot is idle again */
    const struct checkpoint_identity *checkpoint;
    const char *directory;        /* where it was found */
    const char *path;             /* of the checkpoint, as a command gets it: "CKPT/model.ckpt-700" */
    const char *witness;          /* a file or directory that is there as long as the checkpoint is */
    const char *eval_directory;   /* where the ledger is */
    double written;               /* wall seconds when the checkpoint was written; 0: not known */
    int64_t index;                /* evaluations of this eval_directory before it, those in other slots included */
    struct opened_checkpoint *opened;
};

struct runner_progress {
    double share;        /* 0..1; below 0: not known */
    enum evaluation_weights weights; /* once they are loaded */
    const char *lack;    /* what the machine lacks just now, so that it waits; borrowed until the next call; or NULL */
};

enum runner_state {
    RUNNER_BUSY,
    RUNNER_DONE,    /* *out is filled */
    RUNNER_FAILED,  /* the checkpoint could not be evaluated: why says it in a sentence */
    RUNNER_GONE,    /* the checkpoint was deleted before it was evaluated: why */
    RUNNER_STOPPED, /* by stop() */
};

struct runner {
    const char *name;
    size_t slots;
    int descriptor; /* readable after a change: look() at all slots that are busy */
    int by_path;    /* 1: it reads job->path, so what it scored is whatever was there meanwhile; 0: job->opened */
    /* The slot is busy from then on; on an error it stays idle, and the checkpoint has failed by the runner's fault. */
    int (*start)(void *context, size_t slot, const struct runner_job *job, struct error *e);
    /* Of a busy slot. Anything but RUNNER_BUSY makes it idle, and is said once. *out (yours then) is filled with
     * RUNNER_DONE only; *progress always. */
    enum runner_state (*look)(void *context, size_t slot, struct runner_progress *progress, struct evaluation *out,
                              struct error *why);
    /* The busy slot ends soon, and its look() says RUNNER_STOPPED unless it was done already. */
    void (*stop)(void *context, size_t slot);
    /* Seconds until look() is to be called although nothing is readable; infinity for never. NULL: never. */
    double (*due)(void *context);
    void (*free)(void *context); /* stops what is busy, and waits for it */
    void *context;
};

#endif
