/*
 * channels.h - copies some channels of an image into another image with as many pixels, of any layout. An image is
 * (channels / block, pixels, block) reals; block divides its channels, block = channels is NHWC.
 */
#ifndef MODEL_KERNELS_CHANNELS_H
#define MODEL_KERNELS_CHANNELS_H

#include "model/real.h"

#include <stddef.h>

/* Copies channels [from_first, from_first + count) to [to_first, to_first + count); to's others do not change. */
void channels_copy(size_t pixels, size_t count, const real *from, size_t from_block, size_t from_first, real *to,
                   size_t to_block, size_t to_first);

#endif
