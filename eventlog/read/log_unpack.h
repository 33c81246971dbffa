/*
 * log_unpack.h - what is in a gzip or zstd stream: bytes go in by pieces of any size, and what they unpack to comes out
 * by pieces. Members of gzip and frames of zstd that follow one another are one stream, zeros behind the last member of
 * gzip are padding. Memory: 256 KiB, and for zstd its window, which may have 128 MiB. One thread at a time.
 */
#ifndef EVENTLOG_READ_LOG_UNPACK_H
#define EVENTLOG_READ_LOG_UNPACK_H

#include "base/error.h"
#include "base/file_kind.h"

#include <stddef.h>

struct log_unpack;

typedef int log_unpack_sink(void *context, const void *bytes, size_t n, struct error *e);

/* kind: FILE_KIND_GZIP or FILE_KIND_ZSTD. ERR_IO: zstd, and this library was built without it. On OK *out is yours,
 * log_unpack_free(). */
int log_unpack_new(struct log_unpack **out, enum file_kind kind, log_unpack_sink *sink, void *context,
                   struct error *e);
void log_unpack_free(struct log_unpack *u); /* NULL is fine */

/* The next n bytes of the stream. OK also where they are damaged, and behind that place; ERR_IO: zstd with a larger
 * window; ERR_NOMEM; or what the sink returned. */
int log_unpack_feed(struct log_unpack *u, const void *bytes, size_t n, struct error *e);

/* 1 if the stream was sound and ends with what has been fed; 0 if it is damaged or cut: what came out stands before
 * that place. */
int log_unpack_whole(const struct log_unpack *u);

#endif
