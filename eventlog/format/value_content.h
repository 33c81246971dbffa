/*
 * value_content.h - what a Summary.Value holds besides single numbers: tensors of any shape, strings, histograms of
 * both generations, images and clips. Pure functions over the bytes of a value that event_decode() accepted
 * (event_value.bytes); spans are borrowed from them. Of several tensors in one value the last counts.
 */
#ifndef EVENTLOG_FORMAT_VALUE_CONTENT_H
#define EVENTLOG_FORMAT_VALUE_CONTENT_H

#include "base/buffer.h"
#include "eventlog/format/summary_metadata.h"

#include <stddef.h>
#include <stdint.h>

enum { TENSOR_RANK = 8 };

struct tensor_content {
    int dtype;               /* TensorFlow's number */
    int rank;                /* how many dimensions; beyond TENSOR_RANK only counted */
    int64_t shape[TENSOR_RANK];
    uint64_t elements;       /* the product of the shape, 1 for rank 0; UINT64_MAX where it fits nowhere */
    struct span message;     /* the TensorProto */
};

/* 1 and *t, or 0 where the value holds no tensor. */
int tensor_content_read(struct tensor_content *t, const uint8_t *value, size_t n);

/* The strings of a DT_STRING tensor one after the other. Start with *at = 0; 1: *text is the next. */
int tensor_content_string(const struct tensor_content *t, size_t *at, struct span *text);

/* How many bytes an element of a number type takes; 0 for the others (strings, quantized and four-bit types). */
size_t tensor_content_item(int dtype);

/* Appends the elements, little-endian, row by row: what tensor_content holds, or what stands in the typed list, a
 * single element standing for all. 1; 0 where there are not as many as the shape says, more than `limit` bytes, the
 * type is no number, or memory is short (see buffer_ok()). */
int tensor_content_bytes(const struct tensor_content *t, size_t limit, struct buffer *out);

struct histogram_row {
    double left, right, count;
};

/* The rows of a histogram: of a tensor [k, 3] of floats or doubles, or of the legacy message, whose empty outer
 * buckets go and whose outermost edges become its min and max, as TensorBoard reads it. Appended to out as struct
 * histogram_row; *count is how many. 1; 0 where the value is no such histogram, or memory is short. */
int histogram_content_rows(const uint8_t *value, size_t n, struct buffer *out, size_t *count);

/* The encoded file of a legacy image or audio value, as it stands. 1, or 0 where there is none. */
int image_content_read(const uint8_t *value, size_t n, struct span *file);
int audio_content_read(const uint8_t *value, size_t n, struct span *file);

/* The size that an image tells: fields of a legacy value, or the first two strings of a tensor, in decimal digits. Each
 * is 0 where there is none. */
void image_content_size(const uint8_t *value, size_t n, int64_t *width, int64_t *height);

/* What the first bytes of a file say it is, as the end of a name: ".png", ".jpg", ".gif", ".bmp", ".wav", or ".bin". */
const char *media_extension(const uint8_t *bytes, size_t n);

#endif
