/*
 * safetensors.h - reads files of Hugging Face's safetensors format, and writes them as the reference writer does. Also
 * reads a checkpoint in several such files, its parts, by the index beside them (model.safetensors.index.json), as if
 * it were one file. One open file or writer is for one thread at a time.
 *
 * Before it: the header of such a file, as text.
 */
#ifndef CHECKPOINT_SAFETENSORS_H
#define CHECKPOINT_SAFETENSORS_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/io.h"

#include <stddef.h>
#include <stdint.h>

/* ---- safetensors header ------------------------------------------------------------------------------------------ */

/*
 * Parses the header of a safetensors file (Hugging Face), and writes it as the reference writer
 * does; parses the index of a checkpoint in several such files. The formats are described at the top of
 * safetensors.c. Pure.
 */

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

/* ---- safetensors ------------------------------------------------------------------------------------------------- */

struct safetensors;

/* path: a file, or an index. ERR_IO: it, or one of its parts, is missing or unreadable; ERR_CORRUPT: it is damaged, or
 * a part lacks a tensor that the index places there. Tensors that the index does not name are left out. All files
 * stay open, so they may be deleted afterwards. */
int safetensors_open(struct safetensors **out, const char *path, struct error *e);
/* As safetensors_open(), but all that is wrong between an index and its parts is reported to `problem`, also what does
 * not keep it from being read (a tensor that the index lacks, or that is in two parts; a wrong total_size); what cannot
 * be read is left out. */
typedef void safetensors_problem(void *context, const struct error *e);
int safetensors_open_damaged(struct safetensors **out, const char *path, safetensors_problem *problem, void *context,
                             struct error *e);
/* 1: the name is that of an index, "NAME.safetensors.index.json" (or ".index.VARIANT.json"). */
int safetensors_is_index(const char *path);
/* Reads an index alone, as safetensors_index_parse(). */
int safetensors_index_open(struct safetensors_index *out, const char *path, struct error *e);
void safetensors_close(struct safetensors *s);                                      /* NULL is fine */
const struct safetensors_header *safetensors_contents(const struct safetensors *s); /* borrowed until close */
/* How many files its tensors are in, in which of them a tensor is, and where in that file's data. */
size_t safetensors_parts(const struct safetensors *s);
size_t safetensors_part(const struct safetensors *s, const struct safetensors_tensor *tensor, uint64_t *offset);
uint64_t safetensors_bytes(const struct safetensors *s); /* of these files */
/* Reads n bytes of a tensor from its byte `at` on. ERR_ARG: beyond its end. */
int safetensors_read(const struct safetensors *s, const struct safetensors_tensor *tensor, uint64_t at, void *out,
                     size_t n, struct error *e);

/* The global step in the file: the tensor global_step, else global_step or step in the metadata. -1: there is none, or
 * e says why it cannot be read. */
int64_t safetensors_step(const struct safetensors *s, struct error *e);

/* 1: its metadata says that PyTorch wrote it, as safetensors.torch.save_file() does. */
int safetensors_from_torch(const struct safetensors *s);

/* Writes a file: nothing is visible under `path` until finish, which syncs and renames. */
struct safetensors_writer;
/* io may be NULL for io_real; it is borrowed until finish or abandon. tensors: as from safetensors_layout(). */
int safetensors_writer_open(struct safetensors_writer **out, const struct io *io, const char *path,
                            const struct safetensors_tensor *tensors, size_t count,
                            const struct safetensors_pair *pairs, size_t pair_count, struct error *e);
/* Appends the next bytes of the data: tensor after tensor in the order of the layout, in pieces of any size. */
int safetensors_writer_append(struct safetensors_writer *w, const void *bytes, size_t n, struct error *e);
/* Frees w, even if it fails. ERR_ARG: too few or too many bytes were appended. */
int safetensors_writer_finish(struct safetensors_writer *w, struct error *e);
void safetensors_writer_abandon(struct safetensors_writer *w); /* NULL is fine */

#endif
