/*
 * resuming.h - the state that a training starts from: that of a checkpoint, as --resume says, or initial weights, some
 * of which may be those of another model's checkpoint. Rank
 * 0 reads it, and the others get it from there.
 */
#ifndef TRAINER_RESUMING_H
#define TRAINER_RESUMING_H

#include "base/error.h"
#include "base/program/log.h"
#include "trainer/collective/world.h"
#include "trainer/loss_averages.h"
#include "trainer/optimizers/optimizer.h"
#include "trainer/train_options.h"
#include "trainer/training_checkpoint.h"

#include <stdint.h>

/* all borrowed */
struct resuming {
    const struct train_options *options;
    struct world *world;
    struct log *log;
    struct network *network;
    struct optimizer *optimizer;
    struct loss_averages *losses;
    int64_t global_batch; /* of this run, to compare; as is the next */
    int workers;
    struct training_position *position; /* of this run: kernels, to compare; gets seed and global_step */
    int *lock;                          /* of the checkpoint directory; taken */
};

/* On rank 0: takes the lock of the checkpoint directory, tidies that, and fills network, optimizer and losses. Logs
 * what it resumes from, damaged checkpoints that it passes over, and settings that are not those of the checkpoint.
 * *step is that of the checkpoint, -1: a new training. */
int resuming_start(const struct resuming *r, int64_t *step, struct error *e);

#endif
