/*
 * log_merging.h - merges event files that make one run into one: reads their records once for the decision of
 * log_merge.h, and those that stay once more to write them in order. Tags become RUN/TAG on request. One thread at a
 * time; pure but for reading the files again.
 */
#ifndef EVENTLOG_REWRITE_LOG_MERGING_H
#define EVENTLOG_REWRITE_LOG_MERGING_H

#include "base/buffer.h"
#include "base/error.h"
#include "eventlog/format/event_decode.h"
#include "eventlog/read/log_input.h"
#include "eventlog/rewrite/log_merge.h"
#include "eventlog/rewrite/log_rewrite.h"

#include <stddef.h>
#include <stdint.h>

enum { LOG_MERGING_NAME_MAX = 100 };

struct log_merging;

/* prefix: 1: tags become RUN/TAG, but for those that TensorBoard needs unchanged. On OK *out is yours:
 * log_merging_free(), NULL is fine. */
int log_merging_new(struct log_merging **out, enum eventlog_overlap overlap, int prefix, struct error *e);
void log_merging_free(struct log_merging *m);

/* The next file begins, of the run of that number and name; both names are borrowed until free. */
int log_merging_file(struct log_merging *m, size_t number, const char *run, const char *path, struct error *e);
/* A record of it, which is sound. ERR_ARG: another run has the same tag. */
int log_merging_record(struct log_merging *m, uint64_t offset, const uint8_t *data, size_t n, const struct event *event,
                       struct error *e);
/* How many files have begun. */
size_t log_merging_files(const struct log_merging *m);

/* All files have been read: decides and sorts. */
int log_merging_finish(struct log_merging *m, struct error *e);

/* After finish: the name of the new file, after the time of its first record. */
void log_merging_name(const struct log_merging *m, char name[LOG_MERGING_NAME_MAX]);

/* Called when out has grown; may empty it. run: whose record was added; share: how much of all is done. */
typedef int log_merging_put(void *context, const char *run, double share, struct error *e);
/* After finish: appends the new file's records to out. ERR_CORRUPT: a file has changed. */
int log_merging_write(struct log_merging *m, struct log_input *in, struct buffer *out, log_merging_put *put,
                      void *context, struct error *e);

/* After finish: what did not stay; after write also what was written. Not bytes, damaged and torn. */
struct eventlog_merged log_merging_totals(const struct log_merging *m);

#endif
