/*
 * made_event_wire.h - protobuf as any writer may put it, for made_events.c: fields in any order, unknown ones among
 * them, varints longer than they must be, zeros written out; and messages that are broken on purpose, in one place. It
 * has nothing from the product's own encoder and decoder, so that it can be held against them.
 */
#ifndef TESTS_FUZZ_MADE_EVENT_WIRE_H
#define TESTS_FUZZ_MADE_EVENT_WIRE_H

#include "base/buffer.h"
#include "tests/fuzz/decisions.h"

/* the messages inside an event that readers look into */
enum made_message {
    MADE_EVENT,
    MADE_SUMMARY,
    MADE_VALUE,
    MADE_METADATA,
    MADE_PLUGIN_DATA,
    MADE_TENSOR,
    MADE_SHAPE,
    MADE_DIM,
    MADE_IMAGE,
    MADE_HISTOGRAM,
    MADE_AUDIO,
    MADE_SESSION,
    MADE_LOG_MESSAGE,
    MADE_RUN_METADATA,
    MADE_SOURCE,
    MADE_MESSAGES,
};

/* one of the event at hand */
enum made_fault {
    MADE_NO_FAULT,
    MADE_VARINT_CUT,
    MADE_VARINT_LONG,
    MADE_KEY_LONG,
    MADE_SIZE_LONG,
    MADE_SIZE_OVER,
    MADE_FIXED_CUT,
    MADE_TYPE_UNKNOWN,
    MADE_FIELD_ZERO,
    MADE_GROUP_OPEN,
    MADE_GROUP_CROSSED,
    MADE_GROUP_DEEP,
    MADE_GROUP_END,
    MADE_TYPE_OTHER,        /* a known field in another wire type, beside the right one */
    MADE_GROUP_DEEP_INSIDE, /* groups that are too deep for where they are, inside of messages */
    MADE_NOT_UTF8,
    MADE_LIST_CUT,         /* a packed list of numbers that ends inside one: of a scalar's types */
    MADE_SKIPPED_LIST_CUT, /* the same of complex numbers, or of a histogram's buckets */
    MADE_ELEMENTS_OTHER,   /* not as many elements as the shape says */
    MADE_BUCKETS_OTHER,    /* not as many buckets as limits */
    MADE_WALL_NAN,
    MADE_WALL_INFINITE,
};

struct maker {
    struct decisions *d;
    int overlong, shuffled, unknown, zeros; /* how this file is written: 0 plain, 1 with such */
    enum made_fault fault;                  /* still to be put in; MADE_NO_FAULT when that is done */
    enum made_message fault_in;             /* for faults that may be in any message: in which */
};

/* 1 once in n on average, never when the decisions are used up. */
int made_rarely(struct maker *k, uint64_t n);

/* One field each, appended to b. */
void made_integer(struct maker *k, struct buffer *b, uint64_t field, uint64_t v);
void made_fixed64(struct maker *k, struct buffer *b, uint64_t field, uint64_t bits);
void made_fixed32(struct maker *k, struct buffer *b, uint64_t field, uint32_t bits);
void made_bytes(struct maker *k, struct buffer *b, uint64_t field, const void *bytes, size_t n);
/* A string; MADE_NOT_UTF8 puts its bytes into the text, where it stays. */
void made_text(struct maker *k, struct buffer *b, uint64_t field, struct buffer *text);
/* A varint without its key, of at most that many bytes. */
void made_varint(struct maker *k, struct buffer *b, uint64_t v, int most);

/* A message by its parts: what stands between two calls of made_part_end() keeps its order, the parts may change
 * theirs. All zero at first. */
enum { MADE_PARTS = 24 };
struct made_parts {
    struct buffer bytes;
    size_t ends[MADE_PARTS];
    size_t count;
};
void made_part_end(struct made_parts *m);
/* Appends the message to out, with the fault that is meant for it, and empties the parts. */
void made_finish(struct maker *k, struct made_parts *m, enum made_message message, struct buffer *out);
/* The same as a field of another message. */
void made_inside(struct maker *k, struct made_parts *m, enum made_message message, uint64_t field, struct buffer *out);

#endif
