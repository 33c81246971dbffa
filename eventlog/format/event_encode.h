/*
 * event_encode.h - events as bytes: TensorBoard's Event message in protobuf's wire format, framed as records.
 * Pure functions. Fields that have their default value are left out, as protobuf does.
 */
#ifndef EVENTLOG_FORMAT_EVENT_ENCODE_H
#define EVENTLOG_FORMAT_EVENT_ENCODE_H

#include "base/buffer.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* What a scalar record takes besides its tag, at most. */
enum { EVENT_SCALAR_OVERHEAD = 80 };

/* One scalar as a whole record into out, which holds tag_length + EVENT_SCALAR_OVERHEAD bytes; returns its length.
 * tag_length is below 2^30 and the tag UTF-8; step is the global step; wall_time is in seconds since 1970. The value is
 * a simple_value without metadata: the shortest form, and both of TensorBoard's loaders show it as a scalar. */
size_t event_encode_scalar(uint8_t *out, const char *tag, size_t tag_length, int64_t step, double wall_time,
                           float value);

/* Appends n bytes, a serialized event, as a whole record. Ask buffer_ok() in the end. */
void event_encode_record(struct buffer *out, const void *event, size_t n);

/* Appends the record that every file starts with: file_version "brain.Event:2" and, unless it is "", who wrote it. */
int event_encode_start(struct buffer *out, double wall_time, const char *source, struct error *e);

#endif
