/*
 * dataset_reading.h - the options that say how a data set is read. trainer and evaluator have the same ones, from one
 * table.
 */
#ifndef DATASET_DATASET_READING_H
#define DATASET_DATASET_READING_H

#include "base/error.h"
#include "base/program/options.h"

#include <stddef.h>
#include <stdint.h>

enum { DATASET_READING_ROWS = 9, DATASET_CLASSES_MAX = 1000000 };

/* What data sets have in common, and not all of them take. */
enum dataset_takes {
    DATASET_TAKES_FILES = 1,  /* --train-files, --test-files */
    DATASET_TAKES_LABELS = 2, /* --classes, --first-label */
    DATASET_TAKES_KEYS = 4,   /* --example-keys */
    DATASET_TAKES_RECORD = 8, /* --record-fields */
    DATASET_TAKES_CSV = 16,   /* --csv-format */
};

/* As on the command line; NULL: not given. */
struct dataset_words {
    const char *image_size, *bad_samples, *train_files, *test_files, *classes, *first_label, *example_keys, *record,
        *csv;
};

/* What a model reads, for data that are made to fit it. 0: not known. */
struct dataset_shape {
    int height, width, channels, classes;
    int integers; /* 1: words */
};

/* What they say. All 0: samples as they are, and the first broken one is an error. */
struct dataset_reading {
    int height, width;                    /* images are brought to this size; 0: to that of the first one */
    int skip_bad;                         /* 1: broken ones are left out, and the next good one takes the place */
    const char *train_files, *test_files; /* patterns for the names of a part's files; NULL: as data_files.h says */
    int classes;                          /* 0: as many as the labels of the training part need */
    int64_t first_label;                  /* the label of class 0 */
    const char *example_keys;             /* as example_keys_parse() takes it; NULL: the usual ones */
    const char *record;                   /* as record_layout_parse() takes it */
    const char *csv;                      /* as csv_format_parse() takes it; NULL: the default */
    unsigned given;                       /* enum dataset_takes, of the options that were given */
    struct dataset_shape fit;             /* of the model; not an option */
};

/* Writes the DATASET_READING_ROWS rows, whose values are in *values, which must be empty. */
void dataset_reading_rows(struct option *rows, struct dataset_words *values);

/* Writes those that were given as words of a command line, "--image-size", "32", ..., borrowed from *values; `words`
 * has room for 2 * DATASET_READING_ROWS. Returns how many. */
size_t dataset_reading_line(const struct dataset_words *values, const char **words);

/* ERR_ARG: the sentence names the option. */
int dataset_reading_parse(struct dataset_reading *out, const struct dataset_words *words, struct error *e);

/* ERR_ARG: an option was given that a data set which takes those does not; name: its name. */
int dataset_reading_check(const struct dataset_reading *how, unsigned takes, const char *name, struct error *e);

#endif
