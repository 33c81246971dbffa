/*
 * data_files.h - the files that a part of a data set consists of, for formats that leave their names to the user.
 *
 * A pattern for the part (--train-files, --test-files) takes the files of the directory whose names match it, as a
 * shell does. Without one, names that contain "train" are the training part, and those with "test", "val" or "t10k" the
 * test part; if none says "train", all others are the training part. If no name says anything, all files are both
 * parts: then trainer and evaluator get directories of their own. The same holds if the directory is a file. Hidden
 * files and folders are left out.
 */
#ifndef DATASET_STREAM_DATA_FILES_H
#define DATASET_STREAM_DATA_FILES_H

#include "dataset/dataset.h"

struct data_files {
    char **paths; /* (count), in the order of their names; owned */
    size_t count, room;
};

/* ERR_ARG, ERR_IO: there are none; the sentence says what was looked for. On OK or not, data_files_release() it. */
int data_files_list(struct data_files *out, const char *directory, enum dataset_split split,
                    const struct dataset_reading *how, struct error *e);
void data_files_release(struct data_files *f);

#endif
