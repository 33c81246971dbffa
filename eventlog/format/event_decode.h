/*
 * event_decode.h - decodes Event messages without building a tree: scans protobuf's wire format for the fields that a
 * series of numbers needs and skips the rest (pixels, buckets, graphs). Pure functions; pointers in the results are
 * borrowed from the bytes given.
 *
 * As in protobuf: fields may be in any order, the last occurrence of a singular field counts, sub-messages merge,
 * unknown fields and known ones of another wire type are skipped. A malformed message is ERR_CORRUPT as a whole.
 */
#ifndef EVENTLOG_FORMAT_EVENT_DECODE_H
#define EVENTLOG_FORMAT_EVENT_DECODE_H

#include <stddef.h>
#include <stdint.h>

/* by number of its field in the Event message */
enum event_what {
    EVENT_NOTHING = 0,
    EVENT_FILE_VERSION = 3,
    EVENT_GRAPH = 4,
    EVENT_SUMMARY = 5,
    EVENT_LOG_MESSAGE = 6,
    EVENT_SESSION_LOG = 7,
    EVENT_RUN_METADATA = 8,
    EVENT_META_GRAPH = 9,
};

enum event_session { EVENT_SESSION_NONE, EVENT_SESSION_START, EVENT_SESSION_STOP, EVENT_SESSION_CHECKPOINT };

/* of a value, by number of its field in the Value message */
enum event_kind {
    EVENT_VALUE_NONE = 0,
    EVENT_VALUE_SIMPLE = 2,
    EVENT_VALUE_OLD_HISTOGRAM = 3,
    EVENT_VALUE_IMAGE = 4,
    EVENT_VALUE_HISTOGRAM = 5,
    EVENT_VALUE_AUDIO = 6,
    EVENT_VALUE_TENSOR = 8,
};

enum event_dtype {
    EVENT_FLOAT = 1,
    EVENT_DOUBLE = 2,
    EVENT_INT32 = 3,
    EVENT_UINT8 = 4,
    EVENT_INT16 = 5,
    EVENT_INT8 = 6,
    EVENT_STRING = 7,
    EVENT_COMPLEX64 = 8,
    EVENT_INT64 = 9,
    EVENT_BOOL = 10,
    EVENT_BFLOAT16 = 14,
    EVENT_UINT16 = 17,
    EVENT_COMPLEX128 = 18,
    EVENT_HALF = 19,
    EVENT_UINT32 = 22,
    EVENT_UINT64 = 23,
};

struct event_value {
    const char *tag; /* tag_length bytes, no NUL; "" where absent */
    size_t tag_length;
    enum event_kind kind;
    int dtype;      /* of a tensor: enum event_dtype, or another of TensorFlow's numbers */
    int rank;       /* of a tensor: how many dimensions its shape has, 0 without one */
    int is_number;  /* 1: number holds the value: simple_value, or a tensor of one float, integer or bool */
    int is_rounded; /* 1: an int64 or uint64 that no double holds exactly */
    double number;
    int is_shown;       /* 1: shown is what TensorBoard's default loader reads here in a series of scalars */
    double shown;       /* usually number; if one tensor has two floats, the loaders take different ones */
    const char *plugin; /* plugin_length bytes of metadata.plugin_data.plugin_name, "" where absent */
    size_t plugin_length;
    int has_metadata;
    const uint8_t *metadata; /* metadata_length bytes of a serialized SummaryMetadata, the last if there are several */
    size_t metadata_length;
    const uint8_t *bytes; /* length bytes: the whole Summary.Value */
    size_t length;
    int is_utf8; /* 0: the tag or another string is not */
};

struct event {
    double wall_time; /* seconds since 1970; may be NaN or infinite */
    int64_t step;
    enum event_what what;
    enum event_session session; /* of EVENT_SESSION_LOG */
    int is_utf8;                /* 0: a string of the event or of one of its values is not */
    size_t values;              /* of EVENT_SUMMARY: how many; event_values_next() walks them */
    struct event_value first;   /* the first of them */
    const uint8_t *data;        /* length bytes: the whole message */
    size_t length;
    int is_usual;   /* 1: of the form that nearly all events have, in which event_wire_check() finds no
                                 * fault */
    int is_damaged; /* 0; the caller sets it to 1 for a record whose data CRC is wrong */
    /* private */
    const uint8_t *bytes, *end;
};

/* OK, or ERR_CORRUPT with the offset where the scan failed in *bad (may be NULL). */
int event_decode(const uint8_t *bytes, size_t n, struct event *event, size_t *bad);

/* Walks the values of an event that event_decode() accepted; it and its bytes must still be there. */
struct event_values {
    const struct event *event;
    /* private */
    const uint8_t *next, *inner, *inner_end;
    size_t given;
    struct event_value value;
};
void event_values_init(struct event_values *v, const struct event *event);
/* The next value, borrowed until the next call; NULL: no more. */
const struct event_value *event_values_next(struct event_values *v);

#endif
