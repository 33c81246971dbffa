/*
 * feature_table.h - what a frozen encoder made of images, as a safetensors file:
 *   "features"  F32 (images, width)
 *   "image_id"  I64 (images): which image each row is of, as in the annotations
 * Any program can write one. Rows stay on disk. Any number of threads may read.
 */
#ifndef DATASET_CAPTIONS_FEATURE_TABLE_H
#define DATASET_CAPTIONS_FEATURE_TABLE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct feature_table;

enum { FEATURE_TABLE_WIDTH_MAX = 65536 };

/* ERR_IO: there is no such file. ERR_CORRUPT: it has other tensors; or two rows of one image. */
int feature_table_open(struct feature_table **out, const char *path, struct error *e);
void feature_table_close(struct feature_table *t); /* NULL is fine */

size_t feature_table_width(const struct feature_table *t); /* numbers of a row */
/* 1 and *row: the row of that image. 0: there is none. */
int feature_table_find(const struct feature_table *t, int64_t image_id, size_t *row);
/* out: (width). ERR_IO, ERR_CORRUPT: the file has become shorter, or the row is not finite. */
int feature_table_read(const struct feature_table *t, size_t row, float *out, struct error *e);

/* Writes such a file, whole or not at all: features (rows, width), image_ids (rows). */
int feature_table_write(const char *path, const float *features, const int64_t *image_ids, size_t rows, size_t width,
                        struct error *e);

#endif
