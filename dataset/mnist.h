/*
 * mnist.h - data sets in MNIST's shape: {train,t10k}-{images-idx3,labels-idx1}-ubyte, with '-' or '.' before "idx",
 * gzipped (.gz) or not. MNIST, Fashion-MNIST and whatever else uses these names.
 */
#ifndef DATASET_MNIST_H
#define DATASET_MNIST_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct mnist {
    size_t count; /* images, > 0 */
    int height, width;
    uint8_t *images, *labels; /* (count, height, width) and (count); yours: free() */
};

/* train: 1 the training images, 0 the test images. how_to_get: a sentence for when files are missing.
 * ERR_IO (e->system ENOENT): no such directory, or a file is missing; the sentence says which names were tried.
 * ERR_CORRUPT: a file is damaged, or images and labels are not equally many, or a label is not < classes. */
int mnist_read(struct mnist *out, const char *directory, int train, int classes, const char *how_to_get,
               struct error *e);

#endif
