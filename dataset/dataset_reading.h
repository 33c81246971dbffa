/*
 * dataset_reading.h - the options that say how a data set is read. trainer and evaluator have the same ones, from one
 * table.
 */
#ifndef DATASET_DATASET_READING_H
#define DATASET_DATASET_READING_H

#include "base/error.h"
#include "base/program/options.h"

#include <stddef.h>

enum { DATASET_READING_ROWS = 2 };

/* As on the command line; NULL: not given. */
struct dataset_words {
    const char *image_size, *bad_samples;
};

/* What they say. All 0: samples as they are, and the first broken one is an error. */
struct dataset_reading {
    int height, width; /* images are brought to this size; 0: to that of the first one */
    int skip_bad;      /* 1: broken ones are left out, and the next good one takes the place */
};

/* Writes the DATASET_READING_ROWS rows, whose values are in *values, which must be empty. */
void dataset_reading_rows(struct option *rows, struct dataset_words *values);

/* Writes those that were given as words of a command line, "--image-size", "32", ..., borrowed from *values; `words`
 * has room for 2 * DATASET_READING_ROWS. Returns how many. */
size_t dataset_reading_line(const struct dataset_words *values, const char **words);

/* ERR_ARG: the sentence names the option. */
int dataset_reading_parse(struct dataset_reading *out, const struct dataset_words *words, struct error *e);

#endif
