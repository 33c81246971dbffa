/*
 * dataset.h - labelled samples in memory, read from the files as they are published: images of MNIST and Fashion-MNIST
 * (idx, gzipped or not) and CIFAR-10 (binary), words of plain text. Read-only after opening, so any number of threads
 * may read.
 */
#ifndef DATASET_DATASET_H
#define DATASET_DATASET_H

#include "base/batch.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum dataset_split { DATASET_TRAIN, DATASET_TEST };

/*
 * The part of the training data that a worker takes (specs of the original: shard.shard).
 *   SHARD_RECORDS: all workers hold all records and use the same seeded order; worker `index` takes its elements e with
 *                  e mod count = index, so that the workers' batches of a step together are the batch that one
 *                  worker would have taken.
 *   SHARD_FILES:   worker `index` takes whole files, those files f of the sorted list with f mod count = index.
 *                  A worker without a file is an error that names it.
 *   SHARD_NONE:    all workers hold all records, and each takes all of them in an order of its own.
 */
enum shard_kind { SHARD_RECORDS, SHARD_FILES, SHARD_NONE };
struct shard {
    enum shard_kind kind;
    int count, index; /* workers; which one, 0 <= index < count. {SHARD_RECORDS, 1, 0} is everything */
};

/* 1: the worker takes that file of the sorted list. */
static inline int shard_has_file(const struct shard *s, int file)
{
    return s->kind != SHARD_FILES || file % s->count == s->index;
}

struct dataset {
    char name[32];
    char files[256]; /* the names of the files that its images are from: "a, b"; cut off if too long */
    size_t count;    /* samples */
    int height, width, channels, classes;
    enum element element;           /* ELEMENT_UINT8: images, interleaved channels, 0..255; ELEMENT_INT32: words */
    const void *input;              /* elements; sample i has (height, width, channels) of them, row-major */
    size_t stride;                  /* elements from the start of a sample to that of the next */
    struct field labels;            /* (count) integers, each < classes */
    uint64_t vocabulary;            /* a hash of the words that classes and input are numbers of; 0: they are none */
    const char *const *class_names; /* (classes), static or owned by the dataset; NULL: none */
};

/* The first element of sample i's input. */
static inline const void *dataset_sample(const struct dataset *d, size_t i)
{
    return (const char *)d->input + i * d->stride * element_size(d->element);
}

/* What its samples are: "images", "words". */
static inline const char *dataset_unit(const struct dataset *d)
{
    return d->element == ELEMENT_INT32 ? "words" : "images";
}

/* The elements of a sample's input. */
static inline size_t dataset_width(const struct dataset *d)
{
    return (size_t)d->height * (size_t)d->width * (size_t)d->channels;
}

/* name: one of dataset_names(). directory: where the files are; NULL or "": the default, if there is one (Debian's for
 * fashion-mnist). shard: NULL for everything; only SHARD_FILES changes what is loaded. ERR_ARG: unknown name (suggests
 * near ones). ERR_IO, ERR_CORRUPT: the sentence names file and byte. On OK *out is yours until dataset_free(). */
int dataset_open(struct dataset **out, const char *name, const char *directory, enum dataset_split split,
                 const struct shard *shard, struct error *e);
/* Leaves out the first n samples. ERR_ARG: none would be left. */
int dataset_hold_out(struct dataset *d, size_t n, struct error *e);
void dataset_free(struct dataset *d); /* NULL is fine */

/* The known names, NULL at the end. */
const char *const *dataset_names(void);

#endif
