/*
 * log_rewrite.h - rewrites the records of an event file: drops values, or changes their tags. What stays is copied byte
 * for byte: an unchanged record as a whole, otherwise the fields of each value except its tag. Pure: data of records
 * in, records out.
 *
 * TensorBoard expects the metadata of a series on its first value in each file. If the value that had it is dropped, or
 * comes later in the new order, the first value written gets it.
 *
 * One struct writes the files of one run, and is for one thread at a time.
 */
#ifndef EVENTLOG_REWRITE_LOG_REWRITE_H
#define EVENTLOG_REWRITE_LOG_REWRITE_H

#include "base/buffer.h"
#include "base/error.h"
#include "eventlog/format/event_decode.h"

#include <stddef.h>
#include <stdint.h>

struct log_rewrite;

/* what becomes of a value */
struct log_rewrite_choice {
    int keep;
    const char *tag; /* the new tag, tag_length bytes, valid until the next choice; NULL: keep the old one */
    size_t tag_length;
};

/* Called for each value of a record in order, and once with value NULL for an event that is not a summary: there only
 * choice->keep counts. The choice starts as keep 1, tag NULL. number: of the value in the record, from 0. OK, or an
 * error, which ends the rewriting. */
typedef int log_rewrite_choose(void *context, const struct event *event, const struct event_value *value, size_t number,
                               struct log_rewrite_choice *choice, struct error *e);

/* 1 and *event if loaders read past this record. */
int log_rewrite_sound(const uint8_t *data, size_t n, struct event *event);

/* On OK *out is yours: log_rewrite_free(), NULL is fine. */
int log_rewrite_new(struct log_rewrite **out, struct error *e);
void log_rewrite_free(struct log_rewrite *r);

/* Another file of the same run begins: its first values need their metadata again. */
void log_rewrite_next_file(struct log_rewrite *r);

/* Rewrites one record's data, which log_check_data() found sound: appends what is left of it to out as a whole record,
 * or nothing. event: as event_decode() read it. OK, or what choose returned, or ERR_NOMEM. */
int log_rewrite_record(struct log_rewrite *r, const uint8_t *data, size_t n, const struct event *event,
                       log_rewrite_choose *choose, void *context, struct buffer *out, struct error *e);

/* Remembers the metadata of a value that may be written under this tag later, unless the tag already has some. */
int log_rewrite_remember(struct log_rewrite *r, const char *tag, size_t n, const struct event_value *value,
                         struct error *e);

struct log_rewrite_totals {
    uint64_t records, values; /* written */
    uint64_t dropped;         /* values, and events that are not summaries, that were not kept */
    uint64_t renamed;         /* values */
};
struct log_rewrite_totals log_rewrite_totals(const struct log_rewrite *r);

#endif
