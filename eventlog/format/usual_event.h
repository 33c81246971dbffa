/*
 * usual_event.h - recognises nearly all events of nearly all files: wall time, step, a summary of one float with a
 * short tag, as simple_value or as TensorFlow 2 writes it. Bytes are compared with what writers produce; an event that
 * differs in any of them is not a usual one.
 *   09 <8: wall time>  10 <varint: step>  2a <n>  0a <n>  0a <n> <tag>  and then
 *   15 <4: value>, or  42 0a  08 01  12 00  22|2a 04 <4: value>  and perhaps  4a 0b  0a 09  0a 07 "scalars"
 * Pure, and inline: it runs for every point that is read.
 */
#ifndef EVENTLOG_FORMAT_USUAL_EVENT_H
#define EVENTLOG_FORMAT_USUAL_EVENT_H

#include "base/bytes.h"

enum { USUAL_EVENT_MAX = 256 }; /* none is longer */

struct usual_event {
    double wall_time; /* may be NaN or infinite */
    int64_t step;
    double number;          /* a float32, widened */
    const uint8_t *summary; /* where its field begins; borrowed from the bytes given, as are tag and metadata */
    const char *tag;        /* tag_length bytes, which may be no UTF-8 */
    size_t tag_length;
    int is_tensor;           /* 1: of type DT_FLOAT and rank 0; 0: a simple_value */
    const uint8_t *metadata; /* 11 bytes: plugin_data with plugin_name "scalars"; NULL: none */
};

/* The number behind the tag, from q to end. */
static inline int usual_event_number(const uint8_t *q, const uint8_t *end, struct usual_event *u)
{
    static const uint8_t tensor[] = { 0x42, 0x0a, 0x08, 0x01, 0x12, 0x00 };
    static const uint8_t scalars[] = { 0x4a, 0x0b, 0x0a, 0x09, 0x0a, 0x07, 's', 'c', 'a', 'l', 'a', 'r', 's' };
    const size_t left = (size_t)(end - q);

    u->metadata = NULL;
    if (left == 5 && *q == 0x15) {
        u->is_tensor = 0;
        u->number = (double)bits_float(get_le32(q + 1));
        return 1;
    }
    if ((left != 12 && left != 12 + sizeof scalars) || memcmp(q, tensor, sizeof tensor) != 0 ||
        (q[6] != 0x22 && q[6] != 0x2a) || q[7] != 4)
        return 0;
    if (left != 12) {
        if (memcmp(q + 12, scalars, sizeof scalars) != 0)
            return 0;
        u->metadata = q + 14;
    }
    u->is_tensor = 1;
    u->number = (double)bits_float(get_le32(q + 8));
    return 1;
}

/* 1 and *u if the n bytes at p are a usual event. */
static inline int usual_event(const uint8_t *p, size_t n, struct usual_event *u)
{
    const uint8_t *q = p + 10, *end = p + n;
    uint64_t step;
    size_t left;
    int size;

    if (n < 22 || p[0] != 0x09 || p[9] != 0x10)
        return 0;
    if (q[0] < 0x80) {
        step = *q++;
    } else if (q[1] < 0x80) {
        step = (q[0] & 0x7fu) | (uint64_t)q[1] << 7;
        q += 2;
    } else if (q[2] < 0x80) {
        step = (q[0] & 0x7fu) | (q[1] & 0x7fu) << 7 | (uint64_t)q[2] << 14;
        q += 3;
    } else if ((size = get_varint(q, n - 10, &step)) > 0) {
        q += size;
    } else {
        return 0;
    }
    left = (size_t)(end - q);
    if (left < 11 || left > 129 || q[0] != 0x2a || q[1] != left - 2 || q[2] != 0x0a || q[3] != left - 4 ||
        q[4] != 0x0a || q[5] > left - 11)
        return 0;
    u->wall_time = bits_double(get_le64(p + 1));
    u->step = (int64_t)step;
    u->summary = q;
    u->tag = (const char *)q + 6;
    u->tag_length = q[5];
    return usual_event_number(q + 6 + q[5], end, u);
}

#endif
