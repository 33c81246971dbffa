/*
 * event_writer_value.h - one value that is not a scalar, and the bytes around those that its kind encodes. All
 * functions are pure. The field numbers are from TensorBoard's .proto files.
 */
#ifndef EVENTLOG_WRITE_EVENT_WRITER_VALUE_H
#define EVENTLOG_WRITE_EVENT_WRITER_VALUE_H

#include "base/error.h"
#include "eventlog/eventlog.h"
#include "eventlog/format/wire.h"

#include <stddef.h>
#include <stdint.h>

/* Fields of the messages that several families write. */
enum {
    EVENT_FIELD_GRAPH = 4,
    EVENT_FIELD_SUMMARY = 5,
    EVENT_FIELD_RUN_METADATA = 8,
    VALUE_FIELD_TENSOR = 8,
    TENSOR_FIELD_DTYPE = 1,
    TENSOR_FIELD_SHAPE = 2,
    TENSOR_FIELD_CONTENT = 4,
    TENSOR_FIELD_STRING = 8,
};

/* A value without its bytes. All texts are borrowed for the call. */
struct event_writer_value {
    const char *tag;
    int64_t step;
    double wall_time; /* 0: now */
    const char *plugin;
    const void *content; /* plugin_data.content */
    size_t content_length;
    int data_class; /* 0: readers take it from the plugin */
    int blob;       /* TensorBoard serves it under a key made from the tag: some characters are not allowed */
    const struct eventlog_value_options *options;
};

/* Checks what does not depend on other values: OK or ERR_ARG. */
int event_writer_value_check(const struct event_writer_value *v, struct error *e);
/* The same for a tag of n bytes alone. */
int event_writer_value_check_tag(const char *tag, size_t n, struct error *e);

/* Writes the start of a Summary.Value's tensor, up to and including its shape (empty for rank 0). Write the contents
 * next, then call wire_end() with the mark that this returns. */
size_t event_writer_value_tensor(struct wire *w, int dtype, const int64_t *shape, size_t rank);

/* The fields of a TensorShapeProto. */
void event_writer_value_shape(struct wire *w, const int64_t *shape, size_t rank);

/* A whole tensor of n bytes, which are 0 at first: where they stand, until w grows; NULL where there are none, or no
 * memory, which w knows. */
uint8_t *event_writer_value_room(struct wire *w, int dtype, const int64_t *shape, size_t rank, size_t n);

/* Appends the metadata field of a Summary.Value; either text may be NULL. wire_check() reports if memory ran out. */
void event_writer_value_metadata(struct wire *out, const struct event_writer_value *v, const char *display_name,
                                 const char *description);

/* Appends the field of an event that holds this one value: its tag, its member (the fields besides tag and metadata)
 * and its metadata. */
int event_writer_value_encode(struct wire *out, const struct event_writer_value *v, const struct wire *member,
                              const struct wire *metadata, struct error *e);

#endif
