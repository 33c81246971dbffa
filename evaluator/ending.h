/*
 * ending.h - when the evaluator has done its work. Pure: facts and times in, a reason out.
 *
 * When a condition holds, the loop lists the directory once more, evaluates what is whole, lets what is not whole have
 * its quiet time, and ends if the condition still holds then.
 */
#ifndef EVALUATOR_ENDING_H
#define EVALUATOR_ENDING_H

#include "checkpoint/directory/training_state.h"

#include <stdint.h>

struct ending_rules {
    int once, forever;       /* forever: training.json does not matter */
    int wait_for_restart;    /* its `stopped` does not matter */
    int64_t until_step;      /* -1: none */
    int64_t max_evaluations; /* 0: none. The only one that leaves checkpoints in the queue */
    double idle_timeout;     /* seconds; 0: none */
    const char *done_file;   /* NULL: none */
    int64_t pid;             /* 0: none */
};

enum ending_training_end { TRAINING_GOES_ON, TRAINING_FINISHED, TRAINING_STOPPED };

struct ending_facts {
    enum ending_training_end training; /* ending_training_ended() */
    int done_file_there, process_gone;
    double idle_seconds;   /* since the last checkpoint was found or evaluated, or since the start */
    int64_t highest_step;  /* evaluated, this time or before; -1: none */
    int64_t evaluations;   /* of this process */
};

/* NULL: go on. Else why not, static: "training.json says finished". */
const char *ending_reason(const struct ending_rules *rules, const struct ending_facts *facts);

/*
 * Does `finished` or `stopped` in training.json count? Evaluator and trainer are often started side by side, the
 * trainer to resume an earlier training; then the file still tells how that one ended until the trainer is up. So what
 * was there from the beginning counts only when it has stood unchanged for ENDING_SETTLE_SECONDS; what came later, in
 * place of no file or of any other content, counts at once. `failed` does not end: trainings that crash are restarted.
 */
enum { ENDING_SETTLE_SECONDS = 5 };

struct ending_training { /* all zero at the start */
    int looked, changed, there;
    struct training_state first;
    double first_seen;
};

/* state: what was read just now, NULL: no file, or not readable. now: monotonic seconds. */
enum ending_training_end ending_training_ended(struct ending_training *t,
                                              const struct training_state *state, double now);

#endif
