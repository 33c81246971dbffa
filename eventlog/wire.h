/*
 * wire.h - protobuf's wire format, written field by field into a growing buffer (event_wire.h is for reading it).
 * What goes wrong is kept and told once, at the end, by wire_check(): no memory, or a text that is not UTF-8 (on which
 * TensorBoard's loaders give a whole file up). Texts are borrowed until then.
 */
#ifndef EVENTLOG_WIRE_H
#define EVENTLOG_WIRE_H

#include "base/buffer.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct wire {
    struct buffer bytes;
    const char *bad_text; /* the first text that is not UTF-8 */
    size_t bad_at;
};

#define WIRE_EMPTY { BUFFER_EMPTY, NULL, 0 }

void wire_release(struct wire *w);
/* OK while nothing went wrong; else ERR_ARG or ERR_NOMEM. what names the message in the sentence. */
int wire_check(const struct wire *w, const char *what, struct error *e);

/* Left out when they have their default value: 0, "" or NULL. Enums, bools and negative int32 are varints as well. */
void wire_integer(struct wire *w, int field, int64_t v);
void wire_number(struct wire *w, int field, double v);
void wire_text(struct wire *w, int field, const char *text);

/* Written always: members of a oneof, elements of repeated fields. A NULL text is "". */
void wire_integer_always(struct wire *w, int field, int64_t v);
void wire_number_always(struct wire *w, int field, double v);
void wire_text_always(struct wire *w, int field, const char *text);
void wire_bytes(struct wire *w, int field, const void *bytes, size_t n); /* not looked at */

/* A message inside: what is written between the two calls. begin returns the mark that end takes. */
size_t wire_begin(struct wire *w, int field);
void wire_end(struct wire *w, size_t mark);

#endif
