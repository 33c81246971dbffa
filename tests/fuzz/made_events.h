/*
 * made_events.h - makes an event file in memory from decisions, sound or with one damage, and knows what a reader must
 * find in it. It has an encoder of its own (made_event_wire.h), and of the product the CRC, bytes.h and the public
 * header's enums. Running out of memory ends the program.
 *
 * What a damage costs is what the specification of event logs and record.h promise:
 * - a wrong data CRC, or data that are no Event, cost that record: the next one begins where its length says;
 * - a header that is wrong costs what lies before the next 12 bytes that are the header of a record that fits;
 * - a header that is right, of a record that goes beyond the file, is waited for: it costs the rest of the file; zeros
 *   at the end of the file are waited for in the same way.
 * So all records that no damaged byte belongs to, and that no wrong length covers, come out.
 */
#ifndef TESTS_FUZZ_MADE_EVENTS_H
#define TESTS_FUZZ_MADE_EVENTS_H

#include "base/buffer.h"
#include "base/error.h"
#include "eventlog/eventlog.h"
#include "tests/fuzz/decisions.h"

/* in made_events.kept */
struct made_span {
    size_t at, length;
};

struct made_value {
    struct made_span tag, data, plugin; /* plugin: as this value's metadata name it */
    enum eventlog_stored stored;
    int dtype;
    int is_number; /* of a tensor: one number, a point if its series is one of scalars */
    double number;
    int elements_wrong;        /* the tensor does not hold what its shape says */
    struct made_span elements; /* of a tensor of numbers: little-endian */
    size_t strings;            /* of a tensor of strings: how many */
    int has_rows;
    struct made_span rows; /* of a histogram: left, right and count of each bucket, as doubles */
    int64_t width, height; /* of pictures, 0 of others */
    size_t pictures;
    enum eventlog_kind kind; /* by its series */
    int known;               /* its series knows of it: it comes out, or is left out for its wall time alone */
};

struct made_record {
    size_t offset, size; /* in the file, as far as it is still there */
    int given;           /* readers give its event */
    int counted;         /* verify counts it as sound */
    int whole;           /* its bytes stand there, both CRCs right, whatever they hold */
    int inside;          /* it is bytes of the record before it, and comes out if that one's header is wrong */
    enum eventlog_what what;
    int starts_session;
    int64_t step;
    double wall_time;
    struct made_span data, payload;
    size_t first_value, values;
};

enum made_verdict {
    MADE_SOUND,   /* nothing is damaged */
    MADE_DAMAGED, /* one of `findings` is told of byte damage_from, and no damage outside [damage_from, damage_to) */
    MADE_EITHER,  /* nobody can know what is meant: the damaged file begins as a compressed one does, or what is left
                   * of a damaged record holds the header of another */
};

struct made_events {
    struct buffer file, kept;
    struct made_record *records;
    struct made_value *values;
    size_t record_count, value_count, record_capacity, value_capacity;
    enum made_verdict verdict;
    const char *damage;   /* its name, "none" for a sound file */
    const char *findings; /* verify's words, any of which tells it, with a blank behind each */
    size_t damage_from, damage_to;
    size_t cut;       /* where a reader finds the file's end at first; its length: the file does not grow */
    int zeros_behind; /* the file has its size from the start, and zeros behind the cut at first */
};

/* Release it in any case. */
void made_events_make(struct made_events *m, struct decisions d);
void made_events_release(struct made_events *m);

/* OK if the product says of the file what was made: verify, the reader (as the file grows from the cut on) and the
 * points of two views. Else a sentence that says what is wrong. */
int made_events_judge(const struct made_events *m, struct error *e);

static inline const char *made_bytes_of(const struct made_events *m, const struct made_span *s)
{
    return s->length ? m->kept.data + s->at : "";
}

#endif
