/*
 * log_unpack.h - unpacks a gzip or zstd stream: compressed bytes go in, in pieces of any size, and unpacked bytes come
 * out in pieces. Consecutive gzip members or zstd frames are one stream; zeros after the last gzip member are padding.
 * Memory: 256 KiB, plus zstd's window of up to 128 MiB. One thread at a time.
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
int log_unpack_new(struct log_unpack **out, enum file_kind kind, log_unpack_sink *sink, void *context, struct error *e);
void log_unpack_free(struct log_unpack *u); /* NULL is fine */

/* Takes the next n bytes of the stream. OK also for damaged bytes and all that follow them; ERR_IO: zstd with a larger
 * window; ERR_NOMEM; or what the sink returned. */
int log_unpack_feed(struct log_unpack *u, const void *bytes, size_t n, struct error *e);

/* 1 if the stream is sound and complete; 0 if it is damaged or truncated: then the bytes that came out precede the
 * damage. */
int log_unpack_whole(const struct log_unpack *u);

#endif
