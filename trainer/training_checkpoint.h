/*
 * training_checkpoint.h - a training's whole state in a TensorFlow checkpoint: everything an exact resume needs, under
 * the names TensorFlow uses where it has names, and under evalboard/ where it has none.
 *
 *   <variable>                             weights and moving statistics
 *   <variable>/Momentum                    momentum's slot
 *   <variable>/Adam, /Adam_1               adam's m and v; beta1_power, beta2_power: beta^(t + 1) after t updates
 *   <variable>/ExponentialMovingAverage    where averages are kept
 *   S/S/moving_mean/biased, /local_step    of zero-debiased moving statistics of scope S
 *   <loss>/avg                             moving averages of the losses, of models that have them (loss_averages.h)
 *   global_step                            int64: updates applied
 *   evalboard/seed, adam_updates, statistics_updates            int64: needed to go on exactly
 *   evalboard/world_size, workers, batch_size, run_option, shard, data, model, optimizer    for people and checks
 *
 * The position in the data is a function of seed, workers, batch size and step, so it is in there too.
 */
#ifndef TRAINER_TRAINING_CHECKPOINT_H
#define TRAINER_TRAINING_CHECKPOINT_H

#include "base/error.h"
#include "base/io.h"
#include "trainer/loss_averages.h"
#include "trainer/optimizer.h"

#include <stddef.h>
#include <stdint.h>

struct training_position {
    int64_t global_step;
    uint64_t seed;
    int64_t world_size, workers, batch_size;  /* 0 where a checkpoint of another program does not say */
    char run_option[16], shard[16], data[64]; /* "" likewise; run_option also says "ps --async" */
};

/* Writes DIRECTORY/model.ckpt-<step>, then puts it last in the state file and deletes all but the newest `keep` (0:
 * keeps all). io may be NULL for io_real. On an error the earlier checkpoints and the state file are as before.
 * CHECKPOINT_OLD_REMAINS (checkpoint_directory.h): saved, but an old one could not be deleted; e says why. */
int training_checkpoint_save(const struct io *io, const char *directory, size_t keep, struct optimizer *o,
                             const struct loss_averages *losses, const struct training_position *position,
                             struct error *e);

enum training_checkpoint_kind {
    CHECKPOINT_EXACT = 0,  /* everything was there */
    CHECKPOINT_FOREIGN = 1 /* slots, averages or biased statistics were not: those began anew, as optimizer_reset() */
};

/*
 * Loads PREFIX into the optimizer and its network, and what it has of the losses' averages. *position gets what the
 * checkpoint says; seed is left alone where it says nothing. Nothing is changed unless all weights and statistics fit
 * (tensor_match.h): ERR_ARG names the ones that do not, all together. ERR_IO, ERR_CORRUPT as tensor_bundle.h. Returns a
 * training_checkpoint_kind.
 */
int training_checkpoint_load(const char *prefix, struct optimizer *o, struct loss_averages *losses,
                             struct training_position *position, struct error *e);

#endif
