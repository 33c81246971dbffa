/*
 * runner.h - evaluates checkpoints beside the loop: a table of calls that hides from the loop whether it is the
 * built-in models in a thread (thread_runner.h), commands in processes (command_runner.h), or something else. A runner
 * has slots; each evaluates one checkpoint at a time. All calls come from the loop's thread, and none blocks.
 */
#ifndef EVALUATOR_SCORE_RUNNER_H
#define EVALUATOR_SCORE_RUNNER_H

#include "base/error.h"
#include "evaluator/files/opened_checkpoint.h"
#include "evaluator/score/evaluation.h"

/* all borrowed until the slot is idle again */
struct runner_job {
    const struct checkpoint_identity *checkpoint;
    const char *directory;      /* where it was found */
    const char *path;           /* of the checkpoint, as given to commands: "CKPT/model.ckpt-700" */
    const char *witness;        /* a file or directory that exists as long as the checkpoint does */
    const char *eval_directory; /* where the ledger is */
    double written;             /* wall seconds when the checkpoint was written; 0: not known */
    int64_t index;              /* evaluations of this eval_directory before it, including those in other slots */
    struct opened_checkpoint *opened;
};

struct runner_progress {
    double share;                    /* 0..1; below 0: not known */
    enum evaluation_weights weights; /* once they are loaded */
    const char *lack;                /* resource that it is waiting for; borrowed until the next call; or NULL */
};

enum runner_state {
    RUNNER_BUSY,
    RUNNER_DONE,    /* *out is filled */
    RUNNER_FAILED,  /* the checkpoint could not be evaluated; why has a sentence */
    RUNNER_GONE,    /* the checkpoint was deleted before it was evaluated; why has a sentence */
    RUNNER_STOPPED, /* by stop() */
};

struct runner {
    const char *name;
    size_t slots;
    int descriptor; /* readable after a change: look() at all slots that are busy */
    int by_path;    /* 1: it reads job->path, whose content may have changed; 0: it reads job->opened */
    /* The slot is busy from then on; on an error it stays idle, and the checkpoint has failed. */
    int (*start)(void *context, size_t slot, const struct runner_job *job, struct error *e);
    /* Call for a busy slot. Any state but RUNNER_BUSY makes it idle and is returned once. Fills *out (then yours) only
     * with RUNNER_DONE, *progress always. */
    enum runner_state (*look)(void *context, size_t slot, struct runner_progress *progress, struct evaluation *out,
                              struct error *why);
    /* Ends a busy slot soon: its look() then returns RUNNER_STOPPED, unless it was done already. */
    void (*stop)(void *context, size_t slot);
    /* Seconds until look() is due even if nothing is readable; infinity: never. NULL: never. */
    double (*due)(void *context);
    void (*free)(void *context); /* stops busy slots and waits for them */
    void *context;
};

#endif
