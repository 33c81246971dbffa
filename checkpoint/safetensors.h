/*
 * safetensors.h - reads files of Hugging Face's safetensors format, and writes them as the reference writer does. Also
 * reads a checkpoint in several such files, its parts, by the index beside them (model.safetensors.index.json), as if
 * it were one file. One open file or writer is for one thread at a time.
 */
#ifndef CHECKPOINT_SAFETENSORS_H
#define CHECKPOINT_SAFETENSORS_H

#include "base/error.h"
#include "base/io.h"
#include "checkpoint/safetensors_header.h"

#include <stddef.h>
#include <stdint.h>

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
