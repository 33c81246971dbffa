/*
 * dataset_kind.h - the table of data sets. Each is one struct dataset_kind in the file of its format, beside what reads
 * it, and one row below: names, --help and the sentence on an unknown name come from there.
 */
#ifndef DATASET_DATASET_KIND_H
#define DATASET_DATASET_KIND_H

#include "dataset/dataset.h"

/* A data set with the memory it owns. */
struct dataset_owned {
    struct dataset d;         /* first: what the caller sees */
    uint8_t *images, *labels; /* d's, by malloc() */
    void *names;              /* d.class_names and what they point to, where a file names them; by malloc() */
};

struct dataset_kind {
    const char *usual_place; /* where no directory is given; NULL: there is none */
    const char *how_to_get;  /* ends sentences on files that are missing */
    int files[2];            /* by enum dataset_split, how many there are: --shard files gives a worker some of them */
    int classes;
    const char *const *class_names; /* (classes) where the files have none */
    /* Fills o's memory, count, height, width and channels from the files in `directory`, which exists; the shard has
     * one of them. Name, classes and class names are in o->d already, the latter two to be changed where the files
     * have their own. Memory is freed also after an error. */
    int (*read)(struct dataset_owned *o, const struct dataset_kind *kind, const char *directory,
                enum dataset_split split, const struct shard *shard, struct error *e);
};

/* The table: ROW(the end of dataset_kind_NAME, the name for --data and in files). */
#define DATASET_KINDS(ROW)              \
    ROW(mnist, "mnist")                 \
    ROW(fashion_mnist, "fashion-mnist") \
    ROW(cifar10, "cifar10")

#define DATASET_KIND_DECLARATION(kind, name) extern const struct dataset_kind dataset_kind_##kind;
DATASET_KINDS(DATASET_KIND_DECLARATION)
#undef DATASET_KIND_DECLARATION

#endif
