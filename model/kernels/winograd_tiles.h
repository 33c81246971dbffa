/*
 * winograd_tiles.h - the tiles of Winograd's algorithm, in AVX-512: from images to the left and right matrices of
 * products (winograd_product.h), and from products to images. The formulas and their letters are explained in
 * convolution_winograd.c. Images are in blocks of 16 channels.
 */
#ifndef MODEL_KERNELS_WINOGRAD_TILES_H
#define MODEL_KERNELS_WINOGRAD_TILES_H

#include "model/kernels/convolution.h"

#if BFLOAT16_AVX512_BUILT
#include <stddef.h>

enum {
    WINOGRAD_SIDE = 6, /* of a tile of x */
    WINOGRAD_POINTS = WINOGRAD_SIDE * WINOGRAD_SIDE,
    WINOGRAD_TILES = 32, /* computed together */
};

/* Points whose squares are 1/2 and 2, and whose product is 1. */
#define WINOGRAD_NEAR 0.70710678118654752F
#define WINOGRAD_FAR 1.41421356237309505F

/* A convolution of x to y, or of dy to dx: how tiles cover them. */
struct winograd_tiles {
    int height, width, channels; /* of what is read */
    int out_height, out_width, out_channels;
    int top, left;
    int tiles_down, tiles_right;
    int outputs;  /* rows of a tile of y: 4 or 2 */
    int bfloat16; /* 1: the matrices are of pairs */
};

/* Elements from one point of a matrix to the next: a real or a pair each. Without the gap, points would be a power of
 * two apart and fall out of the cache. */
static inline size_t winograd_point_step(int channels)
{
    return (size_t)(WINOGRAD_TILES * channels + 16);
}

/* B' d B of tiles [first, first + count) of all images' tiles, count <= WINOGRAD_TILES: a left matrix whose rows are
 * tiles; pairs are of two channels. */
void winograd_read_tiles(const struct winograd_tiles *d, size_t first, int count, const float *x, float *to);
/* The same for the gradient of the window: a left matrix whose rows are channels; pairs are of two tiles. */
void winograd_read_tiles_to_sum(const struct winograd_tiles *d, size_t first, int count, const float *x, float *to);
/* A dy A' of the same tiles: the right matrix, packed, beside that. */
void winograd_read_gradients(const struct winograd_tiles *d, size_t first, int count, const float *dy, float *to);
/* A' m A of the same tiles, finished as f says; NULL: left as it is. */
void winograd_write_tiles(const struct winograd_tiles *d, size_t first, int count, const float *from,
                          const struct convolution_finish *f, float *y);
#endif

#endif
