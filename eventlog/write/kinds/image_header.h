/*
 * image_header.h - what kind of picture some bytes are, and its size. A pure function; only the first bytes are looked
 * at, so a picture can still be broken behind them.
 */
#ifndef EVENTLOG_WRITE_KINDS_IMAGE_HEADER_H
#define EVENTLOG_WRITE_KINDS_IMAGE_HEADER_H

#include <stddef.h>
#include <stdint.h>

/* The kinds that TensorBoard gives to the browser as pictures. */
enum image_kind { IMAGE_UNKNOWN, IMAGE_PNG, IMAGE_JPEG, IMAGE_GIF, IMAGE_BMP };

/* The kind, with width and height in pixels, both above 0; IMAGE_UNKNOWN when it is none of them, or cut or broken
 * before its size is told: then *width and *height are 0. */
enum image_kind image_header_read(const void *bytes, size_t n, uint32_t *width, uint32_t *height);

#endif
