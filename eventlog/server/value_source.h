/*
 * value_source.h - reads single records of event files again, for values that the snapshot only knows the place of. At
 * most VALUE_SOURCE_FILES files are open between calls. Any thread; several read at the same time.
 */
#ifndef EVENTLOG_SERVER_VALUE_SOURCE_H
#define EVENTLOG_SERVER_VALUE_SOURCE_H

#include "eventlog/format/event_decode.h"

#include <stddef.h>
#include <stdint.h>

enum { VALUE_SOURCE_FILES = 16 };

struct value_source;
struct value_source_file;

/* The caller's, all zero at first: the record read last. */
struct value_record {
    struct event event; /* borrowed until the next call */
    /* private */
    uint8_t *bytes;
    size_t capacity;
};
void value_record_release(struct value_record *r);

struct value_source *value_source_new(void); /* NULL: no memory */
void value_source_free(struct value_source *s);

/* The file as the path leads to it now; NULL: it cannot be opened. Give it back with value_source_done(). */
struct value_source_file *value_source_open(struct value_source *s, const char *path);
void value_source_done(struct value_source *s, struct value_source_file *f); /* NULL is fine */

/* 1 and r->event: the sound record that begins at offset; 0: there is none, or no memory. */
int value_source_read(struct value_source_file *f, uint64_t offset, struct value_record *r);

#endif
