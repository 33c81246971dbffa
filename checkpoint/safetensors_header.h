/*
 * safetensors_header.h - the header of the files of Hugging Face's safetensors: taken apart, and made as the reference
 * writer makes it. The format stands on top of safetensors_header.c. Pure.
 */
#ifndef CHECKPOINT_SAFETENSORS_HEADER_H
#define CHECKPOINT_SAFETENSORS_HEADER_H

#include "base/buffer.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum {
    SAFETENSORS_HEAD = 8,               /* bytes of the header's length */
    SAFETENSORS_HEADER_MAX = 100000000, /* bytes of JSON, a limit of the format */
};

struct safetensors_tensor {
    const char *name;     /* UTF-8, NUL-terminated, name_length bytes (a name may hold a NUL) */
    size_t name_length;
    const char *dtype;    /* "F32", one of the format's own; never NULL */
    int rank;
    const int64_t *shape;
    uint64_t elements;    /* product of shape */
    uint64_t begin, end;  /* bytes, from the start of the data */
    void *memory;         /* of a header that was read: the header's; else NULL */
};

struct safetensors_pair { /* of __metadata__: text to text */
    char *key, *value;
    size_t key_length, value_length;
};

struct safetensors_header {
    struct safetensors_tensor *tensors; /* in order of their bytes, without a gap */
    size_t count;
    struct safetensors_pair *pairs;     /* in order of their keys */
    size_t pair_count;
};

/* Reads the first 8 bytes of a file of file_size bytes; *length becomes that of the JSON. `file` is what sentences call
 * it. ERR_CORRUPT: the file is shorter than 8, or the length is over the limit or beyond the file. */
int safetensors_header_length(const char *file, const void *bytes, uint64_t file_size, size_t *length,
                              struct error *e);

/* Reads n bytes of JSON, followed by data_size bytes of data, and checks all that the format says. Memory grows with n
 * by a small factor, whatever the JSON is. On OK *out is yours: safetensors_header_free(). ERR_CORRUPT names the byte
 * of the file, or the tensor. Unknown fields of a tensor are passed over. */
int safetensors_header_parse(const char *file, const char *json, size_t n, uint64_t data_size,
                             struct safetensors_header **out, struct error *e);
void safetensors_header_free(struct safetensors_header *header); /* NULL is fine */

/* The DataType whose tensors have the same bytes as those of a dtype, 0: none; and the other way, NULL: none. */
int safetensors_tensor_type(const char *dtype);
const char *safetensors_dtype(int tensor_type);

/* For writing: puts tensors (name, dtype, rank, shape set) into the reference writer's order - wide types first, then
 * names - and sets elements, begin and end. ERR_ARG: an unknown dtype, a name that is not UTF-8, is "__metadata__" or
 * comes twice, a shape too large or of no whole bytes. */
int safetensors_layout(struct safetensors_tensor *tensors, size_t count, struct error *e);

/* Appends the file's beginning, up to the data, for tensors that were laid out. Keys and values must be UTF-8. */
void safetensors_header_encode(struct buffer *out, const struct safetensors_tensor *tensors, size_t count,
                               const struct safetensors_pair *pairs, size_t pair_count);

#endif
