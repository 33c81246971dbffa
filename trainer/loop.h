/*
 * loop.h - the training loop of one worker: take a batch, train, exchange, log, save; until max_steps, a signal, or a
 * loss that is not a number. Rank 0's loop also writes checkpoints, events and training.json, and talks.
 *
 * training.json: "running" from loop_open on; "finished" once max_steps is reached, or a stop file asked for the end
 * (checkpoint/stop_file.h: rank 0 looks for it between steps, twice a second), and the last checkpoint is written;
 * "failed" when the run ended before that for whatever reason, a signal included: an evaluator goes on waiting then, as
 * a training that ended early is resumed as a rule.
 */
#ifndef TRAINER_LOOP_H
#define TRAINER_LOOP_H

#include "base/error.h"
#include "base/log.h"
#include "checkpoint/training_state.h"
#include "dataset/batch_source.h"
#include "trainer/progress.h"
#include "trainer/strategies/strategy.h"
#include "trainer/train_options.h"
#include "trainer/training_checkpoint.h"

#include <signal.h>
#include <stdint.h>

/* What the handler of a first SIGTERM or SIGINT puts in the place of training.json, by rename: where another rank has
 * died, rank 0 waits for it and is killed before it can write anything in order. A stop in order writes its own after
 * it. */
struct loop_farewell {
    char path[4096], temporary[4096], text[2048];
    size_t length;
};

struct loop_signals { /* set by main's handlers, read between steps */
    volatile sig_atomic_t stop, save;
    struct loop_farewell farewells[2]; /* one is made while the other counts */
    volatile sig_atomic_t farewell;    /* 1 + which of them counts; 0: none */
};

struct loop {
    const struct train_options *options;
    struct strategy *strategy;
    struct batch_source *source;
    struct loop_signals *signals;
    struct log *log;
    struct training_position position;
    struct progress progress;
    struct training_state state;
    int lead;              /* 1: rank 0, which saves and talks */
    int64_t saved;         /* step of the newest checkpoint of this run, or the one resumed from; -1: none */
    int64_t tried;         /* step at which the last one was tried, from which the next is counted */
    double tried_at;
    double looked_at;      /* monotonic: the last look for a stop file */
    int asked_to_stop;     /* 1: there was one; state.reason says why */
    int failed_saves, bad; /* bad: the loss was not a number */
};

/* On every worker. All pointers are borrowed; position holds what the run starts from; saved as in the struct. On
 * rank 0 opens the event file, writes training.json and the first checkpoint: an error here is one to end with. */
int loop_open(struct loop *l, const struct train_options *options, struct strategy *strategy,
              struct batch_source *source, struct loop_signals *signals, struct log *log,
              const struct training_position *position, int64_t saved, struct error *e);

/* Trains to the end, and lets the other ranks go in order. OK also when checkpoints failed or the loss was bad: see
 * failed_saves and bad. < 0: a rank failed or did not answer; the other ranks are to be ended. */
int loop_run(struct loop *l, struct error *e);

/* training.json gets its last state, the summary is printed, everything is closed. failed: 1 after loop_run's error. */
void loop_close(struct loop *l, int failed);

#endif
