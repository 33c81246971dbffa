/*
 * training_checkpoint.h - saves a training's whole state in a TensorFlow checkpoint: everything that an exact resume
 * needs, under TensorFlow's names where they exist, otherwise under evalboard/.
 *
 *   <variable>                             weights and moving statistics
 *   <variable>/Momentum                    momentum's slot
 *   <variable>/Adam, /Adam_1               adam's m and v; beta1_power, beta2_power: beta^(t + 1) after t updates
 *   <variable>/Adagrad                     adagrad's sums of squares
 *   <variable>/ExponentialMovingAverage    if averages are kept
 *   S/S/moving_mean/biased, /local_step    of zero-debiased moving statistics of scope S
 *   <loss>/avg                             moving averages of the losses, if the model has them (loss_averages.h)
 *   global_step                            int64: updates applied
 *   evalboard/seed, adam_updates, statistics_updates            int64: needed to resume exactly
 *   evalboard/world_size, workers, batch_size, run_option, shard, data, model, optimizer    for people and checks
 *   evalboard/global_batch, micro_shards, kernels   with micro-shards
 *   evalboard/threads                      into how many parts threads cut a worker's batch, without micro-shards
 *   evalboard/vocabulary                   int64, with words: must be that of the data, also in the evaluator
 *
 * The position in the data is a function of seed, global batch and step, so it is saved, too.
 */
#ifndef TRAINER_TRAINING_CHECKPOINT_H
#define TRAINER_TRAINING_CHECKPOINT_H

#include "base/error.h"
#include "base/io.h"
#include "trainer/loss_averages.h"
#include "trainer/optimizers/optimizer.h"

#include <stddef.h>
#include <stdint.h>

struct training_position {
    int64_t global_step;
    uint64_t seed;
    int64_t world_size, workers, batch_size; /* 0: a foreign checkpoint does not say; batch_size: of the worker that has
                                                 most */
    int64_t global_batch, micro_shards;      /* micro_shards 0: none */
    int64_t threads;                         /* that cut a worker's batch; 0: none, or they share micro-shards */
    uint64_t vocabulary;                     /* struct dataset's, of the words that it was trained with; 0: none */
    char run_option[16], shard[16], data[64]; /* "": does not say; run_option may also be "ps --async" */
    char kernels[80];                         /* network_kernels(); "": does not say */
};

/*
 * A checkpoint of a step is made of a list of tensors, the same for all steps of a run, and of the values that the
 * training has at that step. Neither has a pointer into the training, so a process that only shares memory with it can
 * write the checkpoint (saver.h).
 */
enum { TRAINING_NAME_BYTES = 420 };
enum training_source {
    TRAINING_ARRAY,         /* `count` elements of an array of the optimizer, from `offset` on */
    TRAINING_LOSS,          /* float32: the moving average number `offset` */
    TRAINING_INTEGER,       /* int64: `number` */
    TRAINING_UPDATES,       /* int64: step + number */
    TRAINING_UPDATES_FLOAT, /* float32: the same */
    TRAINING_POWER,         /* float32: base^(step + number) */
    TRAINING_TEXT           /* uint8: the letters of `text` */
};
struct training_tensor {
    char name[TRAINING_NAME_BYTES];
    enum training_source source;
    enum optimizer_array_kind kind;
    int rank;
    int64_t shape[4], number;
    size_t offset, count;
    double base;
    char text[80];
};
struct training_tensors {
    struct training_tensor *items;
    size_t count;
};
/* At one step. Borrowed. */
struct training_values {
    const real *arrays[ARRAY_KINDS]; /* as optimizer_array() */
    const struct loss_average *losses;
    int64_t step;
};

/* The tensors of this training's checkpoints; of the position all but global_step counts. On OK free(t->items). */
int training_tensors_of(struct training_tensors *t, struct optimizer *o, const struct loss_averages *losses,
                        const struct training_position *position, struct error *e);
/* The values that the training itself has now. */
void training_values_of(struct training_values *v, struct optimizer *o, const struct loss_averages *losses,
                        int64_t step);

/* Writes DIRECTORY/model.ckpt-<step>, then adds it to the end of the state file and deletes all but the newest `keep`
 * (0: keeps all). io may be NULL for io_real. After an error the earlier checkpoints and the state file are unchanged.
 * CHECKPOINT_OLD_REMAINS (checkpoint_directory.h): saved, but an old one could not be deleted; e says why. */
int training_checkpoint_write(const struct io *io, const char *directory, size_t keep, const struct training_tensors *t,
                              const struct training_values *v, struct error *e);
/* The same of the training itself. */
int training_checkpoint_save(const struct io *io, const char *directory, size_t keep, struct optimizer *o,
                             const struct loss_averages *losses, const struct training_position *position,
                             struct error *e);

enum training_checkpoint_kind {
    CHECKPOINT_EXACT = 0,  /* everything was there */
    CHECKPOINT_FOREIGN = 1 /* slots, averages or biased statistics were missing: reset as in optimizer_reset() */
};

/*
 * Loads PREFIX into the optimizer and its network, and its averages of the losses. *position is set from the
 * checkpoint; seed is unchanged if it has none. Nothing is changed unless all weights and statistics fit
 * (tensor_match.h): ERR_ARG names all that do not. ERR_IO, ERR_CORRUPT as tensor_bundle.h. Returns a
 * training_checkpoint_kind.
 */
int training_checkpoint_load(const char *prefix, struct optimizer *o, struct loss_averages *losses,
                             struct training_position *position, struct error *e);

#endif
