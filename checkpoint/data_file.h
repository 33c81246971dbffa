/*
 * data_file.h - a new file of tensors, written from its start to its end.
 *
 * What follows the first DATA_FILE_CACHED bytes goes past the page cache (O_DIRECT) on file systems of disks: copying
 * it there costs more processor time than all else about a checkpoint, and takes memory from the training. A small file
 * stays in the cache, for the evaluator that opens it next. Where a file system refuses, all goes through the cache.
 * One thread at a time.
 */
#ifndef CHECKPOINT_DATA_FILE_H
#define CHECKPOINT_DATA_FILE_H

#include "base/error.h"
#include "base/io.h"

#include <stddef.h>
#include <stdint.h>

enum { DATA_FILE_CACHED = 4 << 20 };

struct data_file;

/* An older file at the path is removed. io and path are borrowed until data_file_free(). */
int data_file_create(struct data_file **out, const struct io *io, const char *path, struct error *e);
/* Writes past the cache from this offset on, a multiple of 256 KiB, whatever the file system; < 0: nowhere. For tests;
 * call it before anything is appended. */
void data_file_direct_from(struct data_file *f, int64_t offset);
/* crc: extended over the bytes while they are in the processor's cache; NULL: not computed. After an error the file
 * must not be used: append and finish return the first one again. */
int data_file_append(struct data_file *f, const void *bytes, size_t n, uint32_t *crc, struct error *e);
/* That error, or OK. */
int data_file_error(const struct data_file *f, struct error *e);
/* Writes what is left, syncs and closes. */
int data_file_finish(struct data_file *f, struct error *e);
/* Closes it if it is open; the file remains. NULL is fine. */
void data_file_free(struct data_file *f);

#endif
