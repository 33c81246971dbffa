/*
 * file_kind.h - identifies a file by its first and last bytes, so that a reader given the wrong kind can say what it
 * is. Pure, except file_kind_of().
 */
#ifndef BASE_FILE_KIND_H
#define BASE_FILE_KIND_H

#include <stddef.h>

enum file_kind {
    FILE_KIND_UNKNOWN,
    FILE_KIND_EMPTY,
    FILE_KIND_EVENT_LOG, /* records of TensorBoard or another TFRecord file: the first header has its CRC */
    FILE_KIND_TAR,
    FILE_KIND_GZIP,
    FILE_KIND_ZSTD,
    FILE_KIND_XZ,
    FILE_KIND_BZIP2,
    FILE_KIND_ZIP,   /* any but the next three, as of Stable-Baselines */
    FILE_KIND_TORCH, /* torch.save since PyTorch 1.6, also TorchScript */
    FILE_KIND_KERAS, /* .keras */
    FILE_KIND_NPZ,
    FILE_KIND_PICKLE, /* torch.save before PyTorch 1.6 */
    FILE_KIND_ONNX,
    FILE_KIND_HDF5, /* Keras .h5 */
    FILE_KIND_SQLITE,
    FILE_KIND_SAFETENSORS,
    FILE_KIND_TABLE, /* the .index of a TensorFlow V2 checkpoint, or a V1 checkpoint's file */
    FILE_KIND_NUMPY,
    FILE_KIND_PARQUET,
    FILE_KIND_GIT_LFS, /* the pointer to a file that was not fetched */
    FILE_KIND_JSON,
    FILE_KIND_TEXT,
    FILE_KIND_PROGRAM, /* ELF */
    FILE_KINDS,
};

enum { FILE_KIND_HEAD = 512, FILE_KIND_TAIL = 8 };

/* head: the first n bytes, FILE_KIND_HEAD of them or the whole file; tail: the last 8 bytes, NULL if there are
 * fewer. */
enum file_kind file_kind(const void *head, size_t n, const void *tail);

/* The kind of the regular file at path, or open as fd; FILE_KIND_UNKNOWN if it is not one or cannot be read. */
enum file_kind file_kind_of(const char *path);
enum file_kind file_kind_of_descriptor(int fd);

/* "a gzip file"; for FILE_KIND_UNKNOWN "of no kind known here". Static. */
const char *file_kind_text(enum file_kind kind);

#endif
