/*
 * image_resize.h - brings a picture to a size: scales it, keeping its proportions, until it just covers the wanted
 * height and width, and cuts out the middle. The filter is the triangle ("bilinear"), as wide as a wanted pixel where
 * that is larger than a stored one, so that small pictures of large ones do not flicker; integers throughout, so the
 * result is the same on all machines. It is that of Pillow's BILINEAR, width first, then height, and a crop. Pure.
 */
#ifndef DATASET_STREAM_IMAGE_RESIZE_H
#define DATASET_STREAM_IMAGE_RESIZE_H

#include "dataset/stream/image_decode.h"

/* Writes (height, width, 3) bytes. A picture of that size is copied. ERR_NOMEM: name says for what. */
int image_resize(const struct image *from, const char *name, int height, int width, uint8_t *out, struct error *e);

#endif
