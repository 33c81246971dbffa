/*
 * transform.h - turns a stored image (bytes) into a model's input (floats): scaling, crop, flip, standardisation. A
 * random transform draws from (seed, step, sample), so it does not matter which thread computes it, or when.
 */
#ifndef DATASET_TRANSFORM_H
#define DATASET_TRANSFORM_H

#include "base/error.h"
#include "dataset/dataset.h"

struct transform {
    const char *name;
    const char *summary;
    int height, width, channels; /* of the result; 0: as the data set's */
    int random;                  /* 1: the result depends on seed, step and sample */
    /* image (d->height, d->width, d->channels), floats if the data set has those -> out (height, width, channels). */
    void (*apply)(const struct dataset *d, const uint8_t *image, uint64_t seed, int64_t step, int64_t sample,
                  float *out);
};

/* Names: "unit" (x / 255), "cifar-tutorial-train", "cifar-tutorial-eval" (24x24, seed-models 1.4),
 * "cifar-resnet-train", "cifar-resnet-eval" (32x32, seed-models 2.1), "imagenet-train", "imagenet-eval" (of any size;
 * torchvision's mean and deviation of each channel), "symmetric" (2 x / 255 - 1; seed-models 6). NULL: unknown. */
const struct transform *transform_find(const char *name);

/* Sets the shape of images from that of a model's input to what the transform makes that of; NULL: leaves it. */
void transform_fit(const struct transform *t, struct dataset_shape *shape);

/* ERR_ARG with a sentence if the transform cannot take this data set's images; NULL: if they are no words (int32). */
int transform_check(const struct transform *t, const struct dataset *d, struct error *e);

#endif
