/*
 * dataset_kind.h - the table of data sets. Each is one struct dataset_kind in the file of its format, beside the code
 * that reads it, and one row below, from which names, --help and the error for an unknown name are made.
 */
#ifndef DATASET_DATASET_KIND_H
#define DATASET_DATASET_KIND_H

#include "base/file.h"
#include "dataset/dataset.h"

#include <stdio.h>
#include <string.h>

/* A data set with the memory it owns. */
struct dataset_owned {
    struct dataset d;                         /* first: the part that the caller sees */
    void *input, *labels;                     /* d's, by malloc(); labels NULL: d.labels.data is in the input */
    void *names;                              /* d.class_names and their texts if they are from a file; by malloc() */
    void (*release)(struct dataset_owned *o); /* of what else the kind has; NULL: nothing */
    /* dataset_sequences() of the kind: replaces input and labels. NULL: windows of a text. */
    int (*lay_out)(struct dataset_owned *o, int length, struct error *e);
};

/* Adds the file of this path to o->d.files. */
static inline void dataset_owned_add_file(struct dataset_owned *o, const char *path)
{
    const size_t used = strlen(o->d.files);

    snprintf(o->d.files + used, sizeof o->d.files - used, "%s%s", used ? ", " : "", file_base_name(path));
}

struct dataset_kind {
    const char *usual_place; /* if no directory is given; NULL: none */
    const char *how_to_get;  /* ends errors about missing files */
    int made;                /* 1: from no files, in no directory */
    unsigned takes;          /* enum dataset_takes: what of struct dataset_reading it heeds, beside size and skip_bad */
    int files[2]; /* their number, by enum dataset_split: --shard files gives a worker some of them; 0: read() knows */
    int classes;
    const char *const *class_names; /* (classes), if the files have none */
    /* Fills o's memory, count, height, width and channels from the files in `directory`, which exists (NULL: made); the
     * shard has at least one of them. o->d already has name, classes and class names; the latter are replaced if the
     * files have their own. Input and labels are bytes, and samples follow each other, unless it says otherwise
     * (element, stride, labels.element) or reads them when they are wanted (stream). The caller frees the memory, also
     * after an error. */
    int (*read)(struct dataset_owned *o, const struct dataset_kind *kind, const char *directory,
                enum dataset_split split, const struct shard *shard, const struct dataset_reading *how,
                struct error *e);
};

/* The table: ROW(the end of dataset_kind_NAME, the name for --data and in files). */
#define DATASET_KINDS(ROW) \
    ROW(mnist, "mnist") \
    ROW(fashion_mnist, "fashion-mnist") \
    ROW(cifar10, "cifar10") \
    ROW(text, "text") \
    ROW(folder, "folder") \
    ROW(tfrecord, "tfrecord") \
    ROW(records, "records") \
    ROW(idx, "idx") \
    ROW(csv, "csv") \
    ROW(cifar100, "cifar100") \
    ROW(cifar100_coarse, "cifar100-coarse") \
    ROW(captions, "captions") \
    ROW(synthetic, "synthetic")

#define DATASET_KIND_DECLARATION(kind, name) extern const struct dataset_kind dataset_kind_##kind;
DATASET_KINDS(DATASET_KIND_DECLARATION)
#undef DATASET_KIND_DECLARATION

#endif
