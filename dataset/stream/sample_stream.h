/*
 * sample_stream.h - the records of a data set that stays on disk: each is read when it is wanted, by its index, so that
 * the order of the samples is that of a data set in memory, and memory does not grow with their number. Any number of
 * threads may read.
 *
 * A record that is broken (ERR_CORRUPT) ends the reading, or is left out: then the next good one of the range takes its
 * place. What a place holds is thus a function of the files alone, not of who reads, nor of what was read before.
 */
#ifndef DATASET_STREAM_SAMPLE_STREAM_H
#define DATASET_STREAM_SAMPLE_STREAM_H

#include "base/error.h"

#include <stddef.h>

struct sample_stream;

struct sample_stream_format {
    /* Writes record i to out. ERR_CORRUPT: it is broken, with a sentence that names it. */
    int (*read)(const void *context, size_t i, void *out, struct error *e);
    void (*free)(void *context);
};

/* context belongs to the stream from here on, also after an error. skip: 1: leave broken ones out. */
int sample_stream_new(struct sample_stream **out, const struct sample_stream_format *format, void *context,
                      size_t records, int skip, struct error *e);
/* Reads record i of [first, first + count), or the next good one, round the end of the range; *used: which. */
int sample_stream_read(struct sample_stream *s, size_t first, size_t count, size_t i, void *out, size_t *used,
                       struct error *e);
/* The records left out so far, each counted once. */
size_t sample_stream_bad(struct sample_stream *s);
/* 1: *why has the sentence about the next of them that was not asked for before; of many, the first thousand. */
int sample_stream_next_bad(struct sample_stream *s, struct error *why);
void sample_stream_free(struct sample_stream *s); /* NULL is fine */

#endif
