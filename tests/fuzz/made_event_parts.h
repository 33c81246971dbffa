/* made_event_parts.h - what the parts of made_events.c share: values, events, and the damage to their records. */
#ifndef TESTS_FUZZ_MADE_EVENT_PARTS_H
#define TESTS_FUZZ_MADE_EVENT_PARTS_H

#include "tests/fuzz/made_events.h"
#include "tests/fuzz/made_event_wire.h"

struct made_span made_keep(struct made_events *m, const void *bytes, size_t n);
void *made_grow(void *list, size_t item, size_t count, size_t *capacity);

/* what a tag is for */
enum made_family {
    MADE_SIMPLE,
    MADE_NUMBER,
    MADE_OLD_BUCKETS,
    MADE_BUCKETS,
    MADE_OLD_IMAGE,
    MADE_IMAGES,
    MADE_OLD_AUDIO,
    MADE_CLIPS,
    MADE_TEXTS,
    MADE_ARRAY,
    MADE_NOTHING,
    MADE_OLDEST_BUCKETS,
    MADE_FAMILIES,
};

/* Appends one Summary.Value to m->values and its bytes to out, as a field of a Summary. tag is emptied. */
void made_value(struct made_events *m, struct maker *k, enum made_family family, struct buffer *tag, int described,
                struct made_parts *out);

enum { MADE_HEADER = 12, MADE_FOOTER = 4 };

/* The record with that data behind the bytes that are there. */
void made_append_record(struct buffer *to, const struct buffer *data);

/* damage of bytes */
enum made_framing {
    MADE_LENGTH_FLIP,
    MADE_LENGTH_CRC_FLIP,
    MADE_DATA_FLIP,
    MADE_DATA_CRC_FLIP,
    MADE_LENGTH_OVER_LIMIT,
    MADE_LENGTH_OVER_FILE,
    MADE_LENGTH_MORE,
    MADE_LENGTH_LESS,
    MADE_CUT,
    MADE_JUNK,
    MADE_HEAD_GONE,
    MADE_TAIL_GONE,
    MADE_ZEROS,
    MADE_ZEROED,
    MADE_UNWRITTEN,
    MADE_DOUBLED,
    MADE_FRAMINGS,
};

/* Does that to one of the records, and says what it costs. */
void made_damage(struct made_events *m, struct decisions *d, enum made_framing damage);

#endif
