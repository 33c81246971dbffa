/*
 * dataset.h - labelled samples, read from the files as they are published: in memory, images of MNIST and Fashion-MNIST
 * (idx, gzipped or not), words of plain text and of captions; or left on disk, where each is read when it is wanted,
 * images of CIFAR-10 (binary) and of a folder tree. Each has an index, so the order of a training is a function of its
 * seed alone. Read-only after opening, so any number of threads may read.
 */
#ifndef DATASET_DATASET_H
#define DATASET_DATASET_H

#include "base/batch.h"
#include "base/error.h"
#include "dataset/dataset_reading.h"
#include "dataset/shard.h"
#include "dataset/stream/sample_stream.h"

#include <stddef.h>
#include <stdint.h>

enum dataset_split { DATASET_TRAIN, DATASET_TEST };

struct dataset {
    char name[32];
    char files[256]; /* the names of the files that its images are from: "a, b"; cut off if too long */
    size_t count;    /* samples */
    int height, width, channels, classes;
    enum element element;           /* ELEMENT_UINT8: images, interleaved channels, 0..255; ELEMENT_FLOAT32: numbers
                                       of any meaning; ELEMENT_INT32: words */
    struct sample_stream *stream;   /* NULL: the input is in memory */
    size_t *index;                  /* of the samples in the stream, if some are left out; else NULL */
    size_t first;                   /* samples before the first, which are held out */
    const void *input;              /* elements; sample i has (height, width, channels) of them, row-major */
    size_t stride;                  /* elements from the start of a sample to that of the next */
    struct field labels;            /* (count) integers, or (count, labels of a sample), each < classes */
    uint64_t vocabulary;            /* a hash of the words that classes and input are numbers of; 0: they are none */
    const char *const *class_names; /* (classes), static or owned by the dataset; NULL: none */
    int padded;                     /* 1: a label may be -1, behind the end of a sequence, and then counts nothing */
    int features;                   /* numbers beside the input of a sample, for dataset_features(); 0: none */
    int (*read_features)(const struct dataset *d, size_t i, float *out, struct error *e);
    const struct caption_set *captions; /* what samples are the captions of (captions/caption_set.h); NULL: nothing */
};

/* The first element of sample i's input, which is in memory. */
static inline const void *dataset_sample(const struct dataset *d, size_t i)
{
    return (const char *)d->input + i * d->stride * element_size(d->element);
}

static inline size_t dataset_labels(const struct dataset *d) /* of a sample */
{
    return d->labels.rank > 1 ? (size_t)d->labels.shape[1] : 1;
}

/* What its samples are: "images", "samples" (of numbers), "words", "sequences". */
static inline const char *dataset_unit(const struct dataset *d)
{
    return d->labels.rank > 1              ? "sequences"
           : d->element == ELEMENT_INT32   ? "words"
           : d->element == ELEMENT_FLOAT32 ? "samples"
                                           : "images";
}

/* What speed is counted in: "words" of texts, "captions", or dataset_unit(); *each: how many of them a sample is. */
static inline const char *dataset_speed_unit(const struct dataset *d, int64_t *each)
{
    const int words = d->element == ELEMENT_INT32 && !d->padded;

    *each = words ? (int64_t)dataset_labels(d) : 1;
    return words ? "words" : d->padded ? "captions" : dataset_unit(d);
}

/* The elements of a sample's input. */
static inline size_t dataset_width(const struct dataset *d)
{
    return (size_t)d->height * (size_t)d->width * (size_t)d->channels;
}

static inline size_t dataset_bytes(const struct dataset *d) /* of a sample's input */
{
    return dataset_width(d) * element_size(d->element);
}

/* name: one of dataset_names(). directory: where the files are; NULL or "": the default, if there is one (Debian's for
 * fashion-mnist). shard: NULL for everything; only SHARD_FILES changes what is loaded. ERR_ARG: unknown name (suggests
 * near ones). ERR_IO, ERR_CORRUPT: the sentence names file and byte. On OK *out is yours until dataset_free(). */
int dataset_open(struct dataset **out, const char *name, const char *directory, enum dataset_split split,
                 const struct shard *shard, struct error *e);
/* The same; how: NULL for the default. Data sets in memory have the size of their files: another one is ERR_ARG. */
int dataset_open_as(struct dataset **out, const char *name, const char *directory, enum dataset_split split,
                    const struct shard *shard, const struct dataset_reading *how, struct error *e);
/* Before dataset_hold_out(): makes samples of `length` words that follow each other, (length, 1, 1), each word with the
 * next one as its label. Of a text, samples do not overlap, and words at the end that fill none are left out; of
 * captions, what is behind the end is -1, and longer ones are cut. ERR_ARG: it is neither, or a text of fewer than
 * length + 1 words. */
int dataset_sequences(struct dataset *d, int length, struct error *e);
/* Makes the data set fit a model that reads so many features and has so many classes (0: any number): it then has as
 * many, features that are 0 after its own, and classes that never occur. ERR_ARG: it has more, or no features. Only
 * captions have features, and fewer classes than a model: with other data nothing changes. */
int dataset_fit(struct dataset *d, int features, int classes, struct error *e);
/* The features of sample i: d->features of them. Any thread. ERR_IO, ERR_CORRUPT: they cannot be read. */
static inline int dataset_features(const struct dataset *d, size_t i, float *out, struct error *e)
{
    return d->read_features(d, i, out, e);
}
/* Leaves out the first n samples. ERR_ARG: none would be left. */
int dataset_hold_out(struct dataset *d, size_t n, struct error *e);
/* Sample i's input, in memory or read into room (dataset_bytes()); *used: whose it is, and whose label counts,
 * which is another one if i is broken. ERR_CORRUPT, ERR_IO: the sentence names the file. */
int dataset_read(const struct dataset *d, size_t i, void *room, const void **sample, size_t *used, struct error *e);
void dataset_free(struct dataset *d); /* NULL is fine */

/* The known names, NULL at the end. */
const char *const *dataset_names(void);

#endif
