/*
 * record_source.h - reads records of several files by their offsets, for writing them in another order. Files are read
 * in windows, so one read serves many ascending offsets of a file. Files that must be unpacked stay unpacked until
 * close, all in one file without a name. One thread at a time.
 */
#ifndef EVENTLOG_REWRITE_RECORD_SOURCE_H
#define EVENTLOG_REWRITE_RECORD_SOURCE_H

#include "base/error.h"
#include "eventlog/read/log_input.h"

#include <stddef.h>
#include <stdint.h>

struct record_source;

/* paths: count of them, borrowed until close, as is `in`. On OK *out is yours; close takes NULL. */
int record_source_open(struct record_source **out, struct log_input *in, const char *const *paths, size_t count,
                       struct error *e);
void record_source_close(struct record_source *s);

/* The record at this offset, where a whole one was found before: data and length, borrowed until the next call.
 * ERR_CORRUPT: it is no longer there. */
int record_source_at(struct record_source *s, size_t file, uint64_t offset, struct record *r, struct error *e);

#endif
