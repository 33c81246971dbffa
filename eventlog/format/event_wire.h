/*
 * event_wire.h - is a string of bytes an Event that every reader takes? event_decode() looks at what a series of
 * numbers needs and is as lenient as Python's protobuf; TensorBoard's default loader is stricter, and gives a file up
 * at the first message that breaks its rules. This walks the whole message, by the table of its fields. Pure functions.
 */
#ifndef EVENTLOG_FORMAT_EVENT_WIRE_H
#define EVENTLOG_FORMAT_EVENT_WIRE_H

#include <stddef.h>
#include <stdint.h>

enum event_fault {
    EVENT_SOUND,
    EVENT_NOT_PROTOBUF,    /* cut, a wire type that does not exist, a varint too long, nested too deep */
    EVENT_STRAY_GROUP_END, /* Python takes it, the default loader does not */
    EVENT_OTHER_WIRE_TYPE, /* a known field in another wire type: Python skips it, the default loader gives up */
    EVENT_NOT_UTF8,        /* a field of type string; fields of type bytes are free */
};

/* Is it a GraphDef as Python's protobuf takes it, which skips known fields of another wire type? nodes: how many. */
enum event_fault graph_wire_check(const uint8_t *bytes, size_t n, size_t *nodes);

/* The first fault, with *place (may be NULL) the byte where the field begins that has it. */
enum event_fault event_wire_check(const uint8_t *bytes, size_t n, size_t *place);

#endif
