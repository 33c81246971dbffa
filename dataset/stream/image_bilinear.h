/*
 * image_bilinear.h - scales a picture as TensorFlow 1 does by default (resize_images, bilinear), which models trained
 * with it expect: without regard of its proportions, in floats, pixel i from place i * stored / scaled, straight
 * between the two neighbours of it, however much smaller the result is. Source: the specification of the seed models,
 * section 8. Pure.
 */
#ifndef DATASET_STREAM_IMAGE_BILINEAR_H
#define DATASET_STREAM_IMAGE_BILINEAR_H

#include "dataset/stream/image_decode.h"

/* Scales it to (scaled, scaled), and writes the (height, width, 3) in the middle of that, from 0 to 1; what is above
 * and to the left of it is half of the rest, rounded down. height and width are at most scaled. */
void image_bilinear(const struct image *from, int scaled, int height, int width, float *out);

#endif
