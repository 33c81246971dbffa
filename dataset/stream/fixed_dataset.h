/* fixed_dataset.h - records that are all equally long (fixed_records.h), labels among them, as a data set. */
#ifndef DATASET_STREAM_FIXED_DATASET_H
#define DATASET_STREAM_FIXED_DATASET_H

#include "dataset/dataset_kind.h"
#include "dataset/stream/data_files.h"
#include "dataset/stream/fixed_records.h"

/* The records of these files, of the split; with --shard files those of the worker's own, every n-th. classes: how many
 * there are; 0: as many as the labels need. Sets all of o->d but the names of the classes. */
int fixed_dataset_open(struct dataset_owned *o, const struct fixed_layout *layout, const struct data_files *files,
                       int classes, enum dataset_split split, const struct shard *shard,
                       const struct dataset_reading *how, struct error *e);

/* How many classes the labels of these files need. < 0: an error. */
int fixed_dataset_classes(const struct fixed_layout *layout, const struct data_files *files,
                          const struct dataset_reading *how, struct error *e);

#endif
