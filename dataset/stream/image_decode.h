/*
 * image_decode.h - JPEG (libjpeg-turbo) and PNG (libpng) in memory to pixels: red, green and blue, 8 bits each. Grey is
 * spread over the three, inks (CMYK, YCCK) become colours, transparency is left out, of 16 bits the upper 8 are kept,
 * and rotation marks (EXIF), colour profiles and gamma are ignored, as Pillow's convert("RGB") does. Any damage that
 * the library notices is an error: also a picture that ends early, which many programs fill with grey. Calls share
 * nothing.
 */
#ifndef DATASET_STREAM_IMAGE_DECODE_H
#define DATASET_STREAM_IMAGE_DECODE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* What bounds the memory of a thread that decodes. */
enum { IMAGE_PIXELS_MAX = 1 << 25, IMAGE_BYTES_MAX = 1 << 28 };

struct image {
    int height, width;
    uint8_t *pixels; /* (height, width, 3), row-major; by malloc() */
};

/* Which of the two it is is told by its first bytes. name: for errors. ERR_CORRUPT: with a sentence that begins with
 * it. ERR_NOMEM. On OK out->pixels is yours to free(); otherwise NULL. */
int image_decode(const uint8_t *bytes, size_t n, const char *name, struct image *out, struct error *e);
/* The same for height and width alone, from the head; out->pixels is NULL. */
int image_decode_size(const uint8_t *bytes, size_t n, const char *name, struct image *out, struct error *e);

#endif
