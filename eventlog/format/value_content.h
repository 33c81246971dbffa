/*
 * value_content.h - reads what a Summary.Value holds besides single numbers: tensors of any shape, strings, histograms
 * of both generations, images and audio clips. Pure functions over the bytes of a value that event_decode() accepted
 * (event_value.bytes); spans are borrowed from them. If one value has several tensors, the last counts.
 */
#ifndef EVENTLOG_FORMAT_VALUE_CONTENT_H
#define EVENTLOG_FORMAT_VALUE_CONTENT_H

#include "base/buffer.h"
#include "eventlog/format/summary_metadata.h"

#include <stddef.h>
#include <stdint.h>

enum { TENSOR_RANK = 8 };

struct tensor_content {
    int dtype; /* TensorFlow's number */
    int rank;  /* how many dimensions; those beyond TENSOR_RANK are only counted */
    int64_t shape[TENSOR_RANK];
    uint64_t elements;   /* the product of the shape, 1 for rank 0; UINT64_MAX if it overflows */
    struct span message; /* the TensorProto */
};

/* 1 and *t, or 0 if the value has no tensor. */
int tensor_content_read(struct tensor_content *t, const uint8_t *value, size_t n);

/* Returns the strings of a DT_STRING tensor one by one. Start with *at = 0; 1: *text is the next, 0: no more. */
int tensor_content_string(const struct tensor_content *t, size_t *at, struct span *text);

/* Bytes per element of a numeric type; 0 for others (strings, quantized and four-bit types). */
size_t tensor_content_item(int dtype);

/* Appends the elements, little-endian, row by row: from tensor_content, or from the typed list, in which a single
 * element stands for all. 1; 0 if their number does not match the shape, they take more than `limit` bytes, the type is
 * not numeric, or memory runs out (see buffer_ok()). */
int tensor_content_bytes(const struct tensor_content *t, size_t limit, struct buffer *out);

struct histogram_row {
    double left, right, count;
};

/* Appends the rows of a histogram to out as struct histogram_row; *count is how many. The histogram is a tensor [k, 3]
 * of floats or doubles, or the legacy message, whose empty outer buckets are dropped and whose outermost edges become
 * its min and max, as TensorBoard reads it. 1; 0 if the value is not such a histogram, or memory runs out. */
int histogram_content_rows(const uint8_t *value, size_t n, struct buffer *out, size_t *count);

/* The encoded file of a legacy image or audio value, unchanged. 1, or 0 if there is none. */
int image_content_read(const uint8_t *value, size_t n, struct span *file);
int audio_content_read(const uint8_t *value, size_t n, struct span *file);

/* The size that an image states: in fields of a legacy value, or as decimal digits in the first two strings of a
 * tensor. Each is 0 if not stated. */
void image_content_size(const uint8_t *value, size_t n, int64_t *width, int64_t *height);

/* The file name extension for a file with these first bytes: ".png", ".jpg", ".gif", ".bmp", ".wav", or ".bin". */
const char *media_extension(const uint8_t *bytes, size_t n);

#endif
