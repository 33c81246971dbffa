/*
 * tensor_bundle.h - TensorFlow V2 checkpoints: PREFIX.index (a table: name -> dtype, shape, shard, offset, size, CRC)
 * and PREFIX.data-SSSSS-of-NNNNN (the tensors' bytes). PREFIX is a path such as "ckpt/model.ckpt-700". V1 checkpoints
 * are read, too: PREFIX itself, or any of PREFIX-SSSSS-of-NNNNN, if there is no index. tensor_bundle_reader.c describes
 * the format. Reading does not change an open bundle, so several threads may read at once (tensor_batch.h); otherwise
 * one object is for one thread at a time.
 */
#ifndef CHECKPOINT_TENSOR_BUNDLE_H
#define CHECKPOINT_TENSOR_BUNDLE_H

#include "base/error.h"
#include "base/io.h"

#include <stddef.h>
#include <stdint.h>

/* DataType numbers of TensorFlow; others pass through by number */
enum tensor_type {
    TENSOR_FLOAT = 1,
    TENSOR_DOUBLE = 2,
    TENSOR_INT32 = 3,
    TENSOR_UINT8 = 4,
    TENSOR_STRING = 7,
    TENSOR_INT64 = 9,
    TENSOR_BOOL = 10,
    TENSOR_BFLOAT16 = 14,
    TENSOR_HALF = 19,
    TENSOR_VARIANT = 21,
    TENSOR_FLOAT4 = 33, /* E2M1, one in a byte */
    TENSOR_E8M0 = 64,   /* safetensors' F8_E8M0; no DataType, and not stored in a bundle */
};

enum { TENSOR_RANK_MAX = 254 };

/* per dimension of the full tensor: start, and length (-1: the whole dimension) */
struct tensor_slice {
    const int64_t *start, *length;
};

struct tensor_entry {
    const char *name; /* borrowed from the bundle; NUL-terminated, name_length bytes (a name may hold a NUL) */
    size_t name_length;
    int type; /* enum tensor_type or another DataType */
    int rank;
    const int64_t *shape; /* rank sizes, row-major */
    uint64_t elements;    /* product of shape */
    int32_t shard;
    int64_t offset, size; /* bytes in the shard's data file */
    uint32_t crc;         /* masked CRC-32C of those bytes */
    size_t slices;        /* > 0: a partitioned variable; its parts are listed, and it has no bytes of its own */
    const struct tensor_slice *slice;
};

struct tensor_bundle;
struct tensor_string; /* string_tensor.h */

/* Opens the index and all shards (keeping the descriptors, so the files may be deleted afterwards), and checks the
 * footer, every block's CRC, every entry, and that each shard is long enough. ERR_IO: a file is missing (e->system is
 * ENOENT). ERR_CORRUPT: e names file, offset and what was found. On OK *out is yours until tensor_bundle_close(). */
int tensor_bundle_open(struct tensor_bundle **out, const char *prefix, struct error *e);
void tensor_bundle_close(struct tensor_bundle *b); /* NULL is fine */

/* 1: a regular file that ends like an index; if its name is not that of an index, it is a V1 checkpoint or a shard of
 * one. The path is relative to directory_fd, as in openat(). */
int tensor_bundle_ends_as_index(int directory_fd, const char *path);

const char *tensor_bundle_prefix(const struct tensor_bundle *b); /* as it was opened */

/* Entries in order of their names; slices of partitioned variables are not counted, only the whole variables. */
size_t tensor_bundle_count(const struct tensor_bundle *b);
const struct tensor_entry *tensor_bundle_entry(const struct tensor_bundle *b, size_t i);
const struct tensor_entry *tensor_bundle_find(const struct tensor_bundle *b, const char *name); /* NULL: not there */

/* A digest of the index file's bytes. The index holds every tensor's CRC, so the same digest means the same values. */
uint64_t tensor_bundle_digest(const struct tensor_bundle *b);

/* How many bytes tensor_bundle_read() returns: elements x size of the type; for types without a fixed size, the stored
 * bytes. */
uint64_t tensor_entry_bytes(const struct tensor_entry *entry);

/* Reads the tensor's bytes (little-endian, row-major) into out, of exactly tensor_entry_bytes(); slices are joined. For
 * STRING these are the stored bytes, for string_tensor_split(). Checks the CRC; ERR_CORRUPT names tensor, shard file
 * and offset. ERR_ARG: wrong size, a VARIANT, or slices of strings. */
int tensor_bundle_read(struct tensor_bundle *b, const struct tensor_entry *entry, void *out, size_t bytes,
                       struct error *e);

/* The same, converted to float32 from any type that tensor_type_is_float() accepts; ERR_ARG for other types. */
int tensor_bundle_read_float(struct tensor_bundle *b, const struct tensor_entry *entry, float *out, size_t count,
                             struct error *e);

/* Reads an integer scalar (INT64, INT32, or a FLOAT with an integer value), such as `global_step`. */
int tensor_bundle_read_integer(struct tensor_bundle *b, const struct tensor_entry *entry, int64_t *out,
                               struct error *e);

/*
 * Lower-level access: pieces, single slices, and incomplete checkpoints.
 */

/* Reads n of an entry's stored bytes from byte `at` on, and extends *crc (0 before the first) over them. Nothing is
 * checked here; at the end call tensor_bundle_check_crc() (for strings and variants the entry's CRC is not that of the
 * plain bytes: string_tensor.h). ERR_ARG: a partitioned variable, or beyond the end. tensor_stream.h reads whole
 * tensors in this way. */
int tensor_bundle_read_piece(const struct tensor_bundle *b, const struct tensor_entry *entry, uint64_t at, void *out,
                             size_t n, uint32_t *crc, struct error *e);
int tensor_bundle_check_crc(const struct tensor_bundle *b, const struct tensor_entry *entry, uint32_t crc,
                            struct error *e);
/* ERR_CORRUPT: "FILE: tensor NAME, SIZE bytes at byte OFFSET: why". */
int tensor_bundle_bad_tensor(const struct tensor_bundle *b, const struct tensor_entry *entry, const char *why,
                             struct error *e);

/* All entries of slices in order of their keys; each has bytes of its own. */
size_t tensor_bundle_slice_count(const struct tensor_bundle *b);
const struct tensor_entry *tensor_bundle_slice(const struct tensor_bundle *b, size_t i);
/* The entry of slice i of a partitioned variable. ERR_CORRUPT: there is none that fits. */
int tensor_bundle_find_slice(const struct tensor_bundle *b, const struct tensor_entry *full, size_t i,
                             const struct tensor_entry **out, struct error *e);

/* Like tensor_bundle_open(), but errors in shards, lengths and slices are passed to `problem` one by one and do not end
 * the opening; an unreadable index still does. Reading from such a shard then fails. */
typedef void tensor_bundle_problem(void *context, const struct error *problem);
int tensor_bundle_open_damaged(struct tensor_bundle **out, const char *prefix, tensor_bundle_problem *problem,
                               void *context, struct error *e);

/* Like tensor_bundle_open(), but opens only the index, whether or not there are shards: no tensor can be read. */
int tensor_bundle_open_index(struct tensor_bundle **out, const char *prefix, struct error *e);

int32_t tensor_bundle_shards(const struct tensor_bundle *b); /* as the header says; unused ones may have no file */
/* The size of a shard's file; 0 if no entry refers to it, or it is missing. */
uint64_t tensor_bundle_shard_size(const struct tensor_bundle *b, int32_t shard);
int tensor_bundle_shard_path(const struct tensor_bundle *b, int32_t shard, char *out, size_t size, struct error *e);

/* Bytes per element, 0 for types without a fixed size (STRING, VARIANT) and unknown ones. */
size_t tensor_type_size(int type);
const char *tensor_type_name(int type); /* "float32"; "unknown" for unknown ones, never NULL */
int tensor_type_is_float(int type);     /* 1: FLOAT, DOUBLE, HALF or BFLOAT16 */

/*
 * Writing: one shard. Tensors may be added in any order; names must differ. Nothing is visible under PREFIX until
 * finish: data goes to a temporary name, is synced and renamed; then the index likewise; then the directory is synced.
 */
struct tensor_bundle_writer;

/* io may be NULL for io_real; it is borrowed until finish or abandon. prefix is copied. */
int tensor_bundle_writer_open(struct tensor_bundle_writer **out, const struct io *io, const char *prefix,
                              struct error *e);
/* use 1: from now on a second thread may compute the CRC of a tensor while its bytes are written; 0 (the default): none
 * does. Worth it for large tensors on fast disks. The thread has ended when the call that adds the tensor returns. */
void tensor_bundle_writer_use_thread(struct tensor_bundle_writer *w, int use);
/* bytes: the tensor's little-endian, row-major bytes, written at once, not kept; n must match type and shape. */
int tensor_bundle_writer_add(struct tensor_bundle_writer *w, const char *name, int type, int rank, const int64_t *shape,
                             const void *bytes, size_t n, struct error *e);
/* The same in pieces, for tensors that are not in memory as a whole: begin, then append until all bytes of type and
 * shape are there; until then nothing else can be added. ERR_ARG: too many bytes. */
int tensor_bundle_writer_begin(struct tensor_bundle_writer *w, const char *name, int type, int rank,
                               const int64_t *shape, struct error *e);
int tensor_bundle_writer_append(struct tensor_bundle_writer *w, const void *bytes, size_t n, struct error *e);
/* A tensor of strings, in row-major order; copied. */
int tensor_bundle_writer_add_strings(struct tensor_bundle_writer *w, const char *name, int rank, const int64_t *shape,
                                     const struct tensor_string *strings, size_t count, struct error *e);
/* One slice of a partitioned variable: shape is that of the full tensor, the same in each call for this name; start and
 * length say which part of it the bytes are (length -1: the whole dimension, start 0). finish checks that the slices
 * are disjoint and cover the variable. */
int tensor_bundle_writer_add_slice(struct tensor_bundle_writer *w, const char *name, int type, int rank,
                                   const int64_t *shape, const int64_t *start, const int64_t *length, const void *bytes,
                                   size_t n, struct error *e);
/* Makes the checkpoint visible and frees w, even if it fails. If a checkpoint with this prefix and other contents
 * exists, its index is removed before its data is replaced: a crash in between leaves none, not a mixed one. */
int tensor_bundle_writer_finish(struct tensor_bundle_writer *w, struct error *e);
/* Removes what was written and frees w. NULL is fine. */
void tensor_bundle_writer_abandon(struct tensor_bundle_writer *w);

#endif
