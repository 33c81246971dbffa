/*
 * wire.h - reads and writes protobuf's wire format, field by field. Errors in writing are kept and reported once, at
 * the end, by wire_check(): out of memory, or a text that is not UTF-8 (at which TensorBoard's loaders give up on the
 * whole file). Texts are borrowed until then.
 */
#ifndef EVENTLOG_FORMAT_WIRE_H
#define EVENTLOG_FORMAT_WIRE_H

#include "base/buffer.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_GROUP = 3,
    WIRE_GROUP_END = 4,
    WIRE_FIXED32 = 5
};

/* ---- reading ---- */

struct wire_field {
    uint64_t number;
    enum wire_type type;
    uint64_t integer;     /* of VARINT, FIXED32, FIXED64 */
    int depth;            /* of GROUP: how deep the groups are nested, at least 1 */
    const uint8_t *bytes; /* of BYTES: length of them, borrowed */
    size_t length;
};

/* Reads the field at *p (before end) and moves *p past it (past the end of a group). 1: *f; 0: these bytes are not a
 * field, or there are none; -1: the end of a group that was never opened. For 0 and -1, *p stays. */
int wire_take(const uint8_t **p, const uint8_t *end, struct wire_field *f);

/* ---- writing ---- */

struct wire {
    struct buffer bytes;
    const char *bad_text; /* the first text that is not UTF-8 */
    size_t bad_at;
};

#define WIRE_EMPTY \
    { \
        BUFFER_EMPTY, NULL, 0 \
    }

void wire_release(struct wire *w);
/* OK if nothing went wrong; else ERR_ARG or ERR_NOMEM. `what` names the message in the error. */
int wire_check(const struct wire *w, const char *what, struct error *e);

/* Left out if they have their default value: 0, "" or NULL. Enums, bools and negative int32 are varints as well. */
void wire_integer(struct wire *w, int field, int64_t v);
void wire_number(struct wire *w, int field, double v);
void wire_text(struct wire *w, int field, const char *text);

/* Written always: members of a oneof, elements of repeated fields. A NULL text is "". */
void wire_integer_always(struct wire *w, int field, int64_t v);
void wire_number_always(struct wire *w, int field, double v);
void wire_text_always(struct wire *w, int field, const char *text);
void wire_bytes(struct wire *w, int field, const void *bytes, size_t n); /* not checked */

/* A nested message: everything written between the two calls. wire_begin() returns the mark for wire_end(). */
size_t wire_begin(struct wire *w, int field);
void wire_end(struct wire *w, size_t mark);

#endif
