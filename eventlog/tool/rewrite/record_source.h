/*
 * record_source.h - records of several files by their places, for writing them in another order. Files are read in
 * windows, so places that go forward in each file cost a read for many of them. What has to be unpacked first is kept
 * unpacked until close, all of it in one file without a name. One thread at a time.
 */
#ifndef EVENTLOG_TOOL_REWRITE_RECORD_SOURCE_H
#define EVENTLOG_TOOL_REWRITE_RECORD_SOURCE_H

#include "base/error.h"
#include "eventlog/read/log_input.h"

#include <stddef.h>
#include <stdint.h>

struct record_source;

/* paths: count of them, borrowed until close, as is `in`. On OK *out is yours; close takes NULL. */
int record_source_open(struct record_source **out, struct log_input *in, const char *const *paths, size_t count,
                       struct error *e);
void record_source_close(struct record_source *s);

/* The record that a whole one was found at before: data and length, borrowed until the next call. ERR_CORRUPT: it is
 * not there any more. */
int record_source_at(struct record_source *s, size_t file, uint64_t offset, struct record *r, struct error *e);

#endif
