/*
 * training_data.h - the data of a training as its options choose them, held against its model and its batches: by each
 * worker when it starts, and by `trainer compare` for all its cells before the first of them.
 */
#ifndef TRAINER_TRAINING_DATA_H
#define TRAINER_TRAINING_DATA_H

#include "dataset/transform.h"
#include "trainer/train_options.h"

/* What is done to each sample; NULL: nothing. Static. */
const struct transform *training_data_transform(const struct train_options *o);

/* Plans the batches of a worker, -1: of a server; sets o->strategy.chosen. ERR_ARG: a step cannot be shared so. */
int training_data_batches(struct batch_plan *out, struct train_options *o, int workers, int worker, struct error *e);

/* Opens what a worker reads, without the samples that are held out. A model file gets its shape from it. ERR_ARG: it
 * does not fit the model; else as dataset_open_as(). On OK *out is yours: dataset_free() it. */
int training_data_open(struct dataset **out, struct train_options *o, int workers, int worker, struct error *e);
/* ERR_ARG: it has fewer samples than a step takes. */
int training_data_fills(const struct dataset *d, const struct train_options *o, const struct batch_plan *batches,
                        int workers, struct error *e);
/* ERR_ARG: with --shard files a worker has more or fewer samples than worker 0, which has `first`. */
int training_data_even(const struct dataset *d, const struct train_options *o, int worker, uint64_t first,
                       struct error *e);

/* The test data can be evaluated on, on `examples` of them, 0: on all. Errors as of training_data_open(). */
int training_data_check_test(const struct train_options *o, int64_t examples, struct error *e);

#endif
