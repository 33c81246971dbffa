/*
 * batch_source.h - the training batches of a worker, or of several in one process, prepared ahead in a thread, or in
 * several if samples are read from disk and decoded. Memory is that of a few batches, however many samples there are.
 * The samples of a batch and their augmentation are a pure function of (data, seed, shard, batch sizes, step): resuming
 * at a step gives what an uninterrupted run would have had.
 */
#ifndef DATASET_BATCH_SOURCE_H
#define DATASET_BATCH_SOURCE_H

#include "base/batch.h"
#include "dataset/dataset.h"
#include "dataset/transform.h"

#include <stddef.h>
#include <stdint.h>

/* ---- permutation ------------------------------------------------------------------------------------------------- */

/*
 * The order of the records in an epoch: a permutation of 0..count-1 drawn from (seed, worker, epoch).
 */

/* Fills order (count) with each of 0..count-1 once. All permutations are equally likely over seeds (Fisher-Yates).
 * worker: 0 if all workers share one order. worker and count < 2^32. */
void permutation_fill(uint32_t *order, size_t count, uint64_t seed, uint32_t worker, int64_t epoch);

/* ---- batch source ------------------------------------------------------------------------------------------------ */

/* A batch has FIELD_INPUT, the transformed images in float32 or words in int32, and FIELD_LABELS in int32, with the
 * rank of the data set's; of captions also FIELD_WEIGHTS and, if the model reads them, FIELD_FEATURES. Its count is
 * always batch_size, of each of the workers in turn. */

struct batch_source_options {
    const struct transform *transform; /* NULL: the samples are words (int32), which are copied */
    struct shard shard;
    int batch_size;     /* samples of a worker per step, > 0 */
    int workers;        /* a batch has those of so many workers, shard.index and the next ones, one worker after the
                           other; with SHARD_RECORDS. 0: 1 */
    int64_t together;   /* samples of all workers per step, if a worker's follow each other; 0: they are every n-th, and
                           all workers have batch_size */
    int64_t first;      /* together > 0: this batch has those from here on */
    uint64_t seed;      /* the same for all workers */
    int64_t first_step; /* the first call of next returns this step, counted from 0 */
    int ahead;          /* batches prepared in advance; 0: 3 */
};

struct batch_source;

/* With SHARD_RECORDS, step t of all workers, G samples together, takes places [t G, (t+1) G) of the endless order:
 * epoch after epoch, each a permutation of all records by (seed, epoch). d is borrowed until free. */
int batch_source_new(struct batch_source **out, const struct dataset *d, const struct batch_source_options *options,
                     struct error *e);
/* The next batch, borrowed until the next call. Blocks only if the thread is behind. Steps ascend by one. < 0: a sample
 * cannot be read; the sentence names it. */
int batch_source_next(struct batch_source *s, const struct batch **out, struct error *e);
/* Waits at most `seconds` for the next batch. 1: batch_source_next would not block. 0: not yet. */
int batch_source_wait(struct batch_source *s, double seconds);
/* The batch that the next call of next will give, if it is prepared, else NULL. Borrowed until the call after that. */
const struct batch *batch_source_peek(struct batch_source *s);
/* What the batches are of. Borrowed. */
const struct dataset *batch_source_dataset(const struct batch_source *s);
/* 1: *why names the next broken sample that was left out and not asked for before. */
int batch_source_next_bad(struct batch_source *s, struct error *why);
/* How many were left out so far, each counted once. */
size_t batch_source_bad(struct batch_source *s);
void batch_source_free(struct batch_source *s); /* NULL is fine */

#endif
