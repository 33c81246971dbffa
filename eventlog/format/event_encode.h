/*
 * event_encode.h - encodes events: TensorBoard's Event message in protobuf's wire format, framed as records. Pure
 * functions. Fields with their default value are left out, as in protobuf.
 */
#ifndef EVENTLOG_FORMAT_EVENT_ENCODE_H
#define EVENTLOG_FORMAT_EVENT_ENCODE_H

#include "base/buffer.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* The most that a scalar record takes in addition to its tag. */
enum { EVENT_SCALAR_OVERHEAD = 80 };

/* Writes one scalar as a whole record to out, which holds tag_length + EVENT_SCALAR_OVERHEAD bytes; returns its length.
 * tag_length is below 2^30 and the tag is UTF-8; step is the global step; wall_time is in seconds since 1970. The value
 * is a simple_value without metadata: the shortest form, which both of TensorBoard's loaders show as a scalar. */
size_t event_encode_scalar(uint8_t *out, const char *tag, size_t tag_length, int64_t step, double wall_time,
                           float value);

/* Appends a serialized event of n bytes as a whole record. Check buffer_ok() at the end. */
void event_encode_record(struct buffer *out, const void *event, size_t n);

/* Appends the record that every file starts with: file_version "brain.Event:2" and, unless source is "", who wrote
 * it. */
int event_encode_start(struct buffer *out, double wall_time, const char *source, struct error *e);

#endif
