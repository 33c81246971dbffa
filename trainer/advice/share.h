/* share.h - says which files a worker reads, and what it takes of them. Pure. */
#ifndef TRAINER_ADVICE_SHARE_H
#define TRAINER_ADVICE_SHARE_H

#include "dataset/dataset.h"

#include <stddef.h>

/*
 * Into text (size bytes; cut off if too long), which it returns:
 *   SHARD_FILES    "rank 1 on host b reads data_batch_2.bin, data_batch_5.bin: 20000 images", for d of that worker
 *   SHARD_RECORDS  "each of 3 workers reads train.gz: 60000 images, of which it takes its part of each epoch"
 *   SHARD_NONE     "each of 3 workers reads train.gz: 60000 images, all of them in an order of its own"
 */
const char *share_text(const struct shard *s, const struct dataset *d, const char *who, char *text, size_t size);

#endif
