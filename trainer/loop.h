/*
 * loop.h - the training loop of one worker: take a batch, train, exchange, log, save; until max_steps, a signal, or a
 * loss that is not a number. Rank 0's loop also writes checkpoints (beside the training: saving.h), events,
 * training.json and the log.
 *
 * A signal, or the launcher's death, ends it within a step: the worker abandons its batch, all ranks learn that in the
 * exchange (TALLY_LEFT), nobody applies the step, and the state after the last whole update is saved. So a step may
 * take any time, and mpirun's SIGKILL one second after its SIGTERM loses nothing.
 *
 * training.json: "running" from loop_open on, with the newest step that was trained; "finished" once max_steps is
 * reached, or a stop file asked for the end (training_state.h: rank 0 looks for it between steps, twice a second), and
 * the last checkpoint is written; "stopped" if a signal or the launcher's death ended it earlier, and the last
 * checkpoint is written; "failed" if it ended earlier for another reason. If rank 0 dies, its saver writes that
 * (saver.h).
 */
#ifndef TRAINER_LOOP_H
#define TRAINER_LOOP_H

#include "base/error.h"
#include "base/program/log.h"
#include "checkpoint/directory/training_state.h"
#include "dataset/batch_source.h"
#include "trainer/advice.h"
#include "trainer/collective/micro_shards.h"
#include "trainer/progress.h"
#include "trainer/saving.h"
#include "trainer/strategies/strategy.h"
#include "trainer/time_watch.h"
#include "trainer/train_options.h"

#include <signal.h>
#include <stdint.h>

/* Why a training ended whose mpirun ended first. */
#define LAUNCHER_GONE "the launcher of the ranks (mpirun) is gone"

/* set by main's handlers */
struct loop_signals {
    volatile sig_atomic_t stop;      /* the signal that asked for the end; 0: none */
    volatile sig_atomic_t save;      /* 1: a checkpoint was requested */
    volatile sig_atomic_t continued; /* 1: SIGCONT came, which mpirun first sends to the ranks that it ends */
};

struct loop {
    const struct train_options *options;
    struct strategy *strategy;
    struct micro_shards *shards;
    struct batch_source *source;
    struct loss_averages *losses; /* without items except on rank 0 */
    struct loop_signals *signals;
    struct log *log;
    struct training_position position;
    struct progress progress;
    struct saving saving; /* rank 0 */
    struct time_watch time;
    struct training_state state;
    int lead;              /* 1: rank 0, which saves and logs */
    int began;             /* 1: training.json says "running" for this run, and this rank has not ended it */
    double looked_at;      /* monotonic: the last look for a stop file */
    double ticked_at;      /* monotonic: the last check for periodic work */
    double stated_at;      /* monotonic: when training.json was last written */
    int asked_to_stop;     /* 1: there is a stop file; state.reason says why */
    int old_stop_told;     /* 1: it is from an earlier run, which was logged */
    int stopped;           /* 1: a signal to some rank, or the launcher's death, ends the run */
    uint32_t signal;       /* the tally's flag of that signal; 0: the launcher's death */
    double left_at;        /* monotonic: when this rank was first seen waiting for others with a signal pending; 0 */
    int given_up;          /* 1: it has said for whom it waits, since it may be killed */
    int asked;             /* 1: this rank has seen that it is to end */
    int leaves;            /* 1: the training stops, and no rank has failed, as far as is known */
    int bad;               /* 1: the loss was not a number */
    struct flat_loss flat; /* rank 0: of the losses so far */
    double loss;           /* of the last batch of this rank, a sum */
};

/* Call on every worker. All pointers are borrowed; position is where the run starts; lock, saver and saved: as in
 * saving.h. On rank 0 opens the event file, writes training.json and the first checkpoint: an error here ends the run.
 * From then on it makes the checkpoint directory again if that is deleted, moved or replaced. */
int loop_open(struct loop *l, const struct train_options *options, struct strategy *strategy,
              struct micro_shards *shards, struct batch_source *source, struct loss_averages *losses,
              struct loop_signals *signals, int *lock, struct saver *saver, struct log *log,
              const struct training_position *position, int64_t saved, struct error *e);

/* Trains to the end, and releases the other ranks properly. OK even if checkpoints failed or the loss was bad. < 0: a
 * rank failed or did not answer; the caller must end the other ranks. */
int loop_run(struct loop *l, struct error *e);

enum { LOOP_DONE = 0, LOOP_FAILED = 1, LOOP_SIGNAL = 128 };

/* Writes the last state of training.json, prints the summary, and closes everything. failed: 1 after an error of
 * loop_run; otherwise collective, to count the bytes of all ranks: servers call loop_count_bytes() instead. A run also
 * fails if points are lost or its last state cannot be written. Returns the exit status: done, failed, or, on rank 0,
 * LOOP_SIGNAL + the number of the signal that ended it. e is set only if a rank did not come (world_lost()). */
int loop_close(struct loop *l, int failed, struct error *e);
/* As traffic_gather(): traffic_release() it. */
int loop_count_bytes(struct traffic *out, const struct strategy *s, struct error *e);
/* As times_gather(): times_release() it. On servers after loop_count_bytes(). */
int loop_gather_times(struct rank_times *out, const struct strategy *s, struct error *e);

#endif
