/*
 * image_header.h - the kind and the size of a picture. A pure function; it reads only the first bytes, so the rest of
 * the picture may still be broken.
 */
#ifndef EVENTLOG_WRITE_KINDS_IMAGE_HEADER_H
#define EVENTLOG_WRITE_KINDS_IMAGE_HEADER_H

#include <stddef.h>
#include <stdint.h>

/* The kinds that TensorBoard sends to the browser as pictures. */
enum image_kind { IMAGE_UNKNOWN, IMAGE_PNG, IMAGE_JPEG, IMAGE_GIF, IMAGE_BMP };

/* The kind, with width and height in pixels, both above 0; IMAGE_UNKNOWN if it is none of them, or is truncated
 * or broken before its size: then *width and *height are 0. */
enum image_kind image_header_read(const void *bytes, size_t n, uint32_t *width, uint32_t *height);

#endif
