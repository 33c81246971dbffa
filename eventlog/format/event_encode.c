#include "eventlog/format/event_encode.h"

#include "base/bytes.h"
#include "eventlog/format/record.h"
#include "eventlog/format/wire.h"

#include <string.h>

/* Keys of the fields, (number << 3 | wire type); the numbers are in proto/event.proto. */
enum {
    EVENT_WALL_TIME = 1 << 3 | 1,
    EVENT_STEP = 2 << 3 | 0,
    EVENT_SUMMARY = 5 << 3 | 2,
    SUMMARY_VALUE = 1 << 3 | 2,
    VALUE_TAG = 1 << 3 | 2,
    VALUE_SIMPLE = 2 << 3 | 5,
};

static size_t size_of(uint64_t v)
{
    return v < 0x80 ? 1 : (size_t)varint_size(v);
}

static uint8_t *put(uint8_t *p, int key, uint64_t v)
{
    *p++ = (uint8_t)key;
    if (v < 0x80) {
        *p++ = (uint8_t)v;
        return p;
    }
    return p + put_varint(p, v);
}

size_t event_encode_scalar(uint8_t *out, const char *tag, size_t tag_length, int64_t step, double wall_time,
                           float value)
{
    size_t in_value = (tag_length ? 1 + size_of(tag_length) + tag_length : 0) + 5;
    size_t in_summary = 1 + size_of(in_value) + in_value, n;
    uint8_t *p = out + RECORD_HEADER;

    if (wall_time != 0) {
        *p = EVENT_WALL_TIME;
        put_le64(p + 1, double_bits(wall_time));
        p += 9;
    }
    if (step)
        p = put(p, EVENT_STEP, (uint64_t)step);
    p = put(p, EVENT_SUMMARY, in_summary);
    p = put(p, SUMMARY_VALUE, in_value);
    if (tag_length) {
        p = put(p, VALUE_TAG, tag_length);
        memcpy(p, tag, tag_length);
        p += tag_length;
    }
    *p = VALUE_SIMPLE;
    put_le32(p + 1, float_bits(value));
    p += 5;
    n = (size_t)(p - out) - RECORD_HEADER;
    record_seal(out, n);
    return n + RECORD_OVERHEAD;
}

void event_encode_record(struct buffer *out, const void *event, size_t n)
{
    uint8_t *record = (uint8_t *)buffer_reserve(out, n + RECORD_OVERHEAD);

    if (!record)
        return;
    if (n)
        memcpy(record + RECORD_HEADER, event, n);
    record_seal(record, n);
    out->length += n + RECORD_OVERHEAD;
}

int event_encode_start(struct buffer *out, double wall_time, const char *source, struct error *e)
{
    enum { WALL_TIME = 1, FILE_VERSION = 3, SOURCE_METADATA = 10, WRITER = 1 };
    struct wire event = WIRE_EMPTY;
    int rc;

    wire_number(&event, WALL_TIME, wall_time);
    wire_text(&event, FILE_VERSION, "brain.Event:2");
    if (*source) {
        size_t metadata = wire_begin(&event, SOURCE_METADATA);

        wire_text(&event, WRITER, source);
        wire_end(&event, metadata);
    }
    if ((rc = wire_check(&event, "the first record of an event file", e)) == OK) {
        event_encode_record(out, event.bytes.data, event.bytes.length);
        if (!buffer_ok(out))
            rc = error_memory(e, NULL, "for the first record of an event file");
    }
    wire_release(&event);
    return rc;
}
