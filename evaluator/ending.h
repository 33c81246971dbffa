/*
 * ending.h - decides when the evaluator's work is done. Pure: takes facts and times, returns a reason.
 *
 * When a condition holds, the loop lists the directory once more, evaluates the checkpoints that are whole, waits until
 * the others' quiet time is over, and ends if the condition still holds.
 */
#ifndef EVALUATOR_ENDING_H
#define EVALUATOR_ENDING_H

#include "checkpoint/directory/training_state.h"

#include <stdint.h>

struct ending_rules {
    int once, forever;       /* forever: ignore training.json */
    int wait_for_restart;    /* ignore `stopped` in training.json */
    int64_t until_step;      /* -1: none */
    int64_t max_evaluations; /* 0: none. Only this one ends with checkpoints in the queue */
    double idle_timeout;     /* seconds; 0: none */
    const char *done_file;   /* NULL: none */
    int64_t pid;             /* 0: none */
};

enum ending_training_end { TRAINING_GOES_ON, TRAINING_FINISHED, TRAINING_STOPPED };

struct ending_facts {
    enum ending_training_end training; /* ending_training_ended() */
    int done_file_there, process_gone;
    double idle_seconds;  /* since the last checkpoint was found or evaluated, or since the start */
    int64_t highest_step; /* evaluated by this process or an earlier one; -1: none */
    int64_t evaluations;  /* of this process */
};

/* NULL: continue. Otherwise the reason to end, static: "training.json says finished". */
const char *ending_reason(const struct ending_rules *rules, const struct ending_facts *facts);

/*
 * Decides whether `finished` or `stopped` in training.json counts. Evaluator and trainer are often started together,
 * the trainer to resume an earlier training; until the trainer is up, the file still says how the earlier training
 * ended. What the file says at the start therefore counts only after ENDING_SETTLE_SECONDS without a change. What
 * appears later, in a new file or as new content, counts at once. `failed` never ends the work: trainings that crash
 * are restarted.
 */
enum { ENDING_SETTLE_SECONDS = 5 };

/* all zero at the start */
struct ending_training {
    int looked, changed, there;
    struct training_state first;
    double first_seen;
};

/* state: as just read; NULL: there is no file, or it cannot be read. now: monotonic seconds. */
enum ending_training_end ending_training_ended(struct ending_training *t, const struct training_state *state,
                                               double now);

#endif
