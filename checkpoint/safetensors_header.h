/*
 * safetensors_header.h - parses the header of a safetensors file (Hugging Face), and writes it as the reference writer
 * does; parses the index of a checkpoint in several such files. The formats are described at the top of
 * safetensors_header.c. Pure.
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
    const char *name; /* UTF-8, NUL-terminated, name_length bytes (a name may hold a NUL) */
    size_t name_length;
    const char *dtype; /* "F32", or a name that is not known here, whose bytes are taken as they are; never NULL */
    int rank;
    const int64_t *shape;
    uint64_t elements;   /* product of shape */
    uint64_t begin, end; /* bytes, from the start of the data; of a checkpoint in parts, of all data in a row */
    void *memory;        /* for parsed headers, owned by the header; else NULL */
};

/* of __metadata__: text to text */
struct safetensors_pair {
    char *key, *value;
    size_t key_length, value_length;
};

struct safetensors_header {
    struct safetensors_tensor *tensors; /* in order of their bytes; in one file without a gap */
    size_t count;
    struct safetensors_pair *pairs; /* in order of their keys */
    size_t pair_count;
};

/* Reads the first 8 bytes of a file of file_size bytes; *length is set to that of the JSON. `file` names the file in
 * errors. ERR_CORRUPT: the file is shorter than 8 bytes, or the length is over the limit or beyond the file. */
int safetensors_header_length(const char *file, const void *bytes, uint64_t file_size, size_t *length, struct error *e);

/* Parses n bytes of JSON, which data_size bytes of data follow, and checks everything that the format requires. Memory
 * is a small multiple of n, whatever the JSON is. On OK *out is yours: safetensors_header_free() it. ERR_CORRUPT names
 * the byte of the file, or the tensor. Unknown fields of a tensor are skipped. */
int safetensors_header_parse(const char *file, const char *json, size_t n, uint64_t data_size,
                             struct safetensors_header **out, struct error *e);
void safetensors_header_free(struct safetensors_header *header); /* NULL is fine */

enum { SAFETENSORS_TOTAL_NONE = -1, SAFETENSORS_TOTAL_ODD = -2 };

/* model.safetensors.index.json */
struct safetensors_index {
    struct safetensors_pair *places; /* a tensor's name and the file name of its part; in order of the names */
    size_t count;                    /* 1 at least */
    int64_t total_size;              /* bytes of all tensors; NONE: not said, ODD: not a number of bytes */
};

/* Parses n bytes of JSON, in memory that is a small multiple of n. On OK *out is yours: safetensors_index_release() it.
 * ERR_CORRUPT: it is not an index, names a tensor twice, or a part that is not a file name. Unknown members are
 * skipped. */
int safetensors_index_parse(const char *file, const char *json, size_t n, struct safetensors_index *out,
                            struct error *e);
void safetensors_index_release(struct safetensors_index *index); /* fine on one that is all zero */
/* NULL: the index does not name this tensor. */
const struct safetensors_pair *safetensors_index_find(const struct safetensors_index *index, const char *name,
                                                      size_t n);

/* The enum tensor_type or DataType whose tensors have the same bytes as this dtype, 0: none; and the reverse, NULL:
 * none. */
int safetensors_tensor_type(const char *dtype);
const char *safetensors_dtype(int tensor_type);

/* For writing: sorts tensors (with name, dtype, rank and shape set) as the reference writer does - wide types first,
 * then by name - and sets elements, begin and end. A dtype that is not known keeps end - begin bytes and comes last.
 * ERR_ARG: a dtype that is no name; a tensor's name that is not UTF-8, is
 * "__metadata__" or is repeated; a shape that is too large or not a whole number of bytes. */
int safetensors_layout(struct safetensors_tensor *tensors, size_t count, struct error *e);

/* Appends the start of the file, up to the data, for tensors from safetensors_layout(). Keys and values must be
 * UTF-8. */
void safetensors_header_encode(struct buffer *out, const struct safetensors_tensor *tensors, size_t count,
                               const struct safetensors_pair *pairs, size_t pair_count);

#endif
