/*
 * event_wire.h - checks whether bytes are an Event that every reader accepts. event_decode() looks only at what a
 * series of numbers needs and is as lenient as Python's protobuf; TensorBoard's default loader is stricter, and gives
 * up on a file at the first message that breaks its rules. These functions walk the whole message, by a table of its
 * fields. Pure functions.
 */
#ifndef EVENTLOG_FORMAT_EVENT_WIRE_H
#define EVENTLOG_FORMAT_EVENT_WIRE_H

#include <stddef.h>
#include <stdint.h>

enum event_fault {
    EVENT_SOUND,
    EVENT_NOT_PROTOBUF,    /* truncated, a wire type that does not exist, a varint too long, nested too deep */
    EVENT_STRAY_GROUP_END, /* Python accepts it, the default loader does not */
    EVENT_OTHER_WIRE_TYPE, /* a known field in another wire type: Python skips it, the default loader gives up */
    EVENT_NOT_UTF8,        /* a field of type string; fields of type bytes may hold anything */
};

/* Checks for a GraphDef that Python's protobuf accepts, which skips known fields of another wire type. *nodes: how many
 * it has. */
enum event_fault graph_wire_check(const uint8_t *bytes, size_t n, size_t *nodes);

/* Returns the first fault; *place (may be NULL) is the offset of the field that has it. */
enum event_fault event_wire_check(const uint8_t *bytes, size_t n, size_t *place);

#endif
