/*
 * log_value.h - one value of a Summary as TensorBoard's plugins see it: its kind, the data class that its metadata
 * gives it, and whether a series of that class can show it. Pure functions; the bytes are those of an event that
 * event_wire_check() found sound.
 */
#ifndef EVENTLOG_CHECK_LOG_VALUE_H
#define EVENTLOG_CHECK_LOG_VALUE_H

#include "eventlog/check/log_finding.h"
#include "eventlog/format/event_decode.h"

enum { LOG_CLASS_NONE, LOG_CLASS_SCALAR, LOG_CLASS_TENSOR, LOG_CLASS_BLOBS };

struct log_value {
    const char *tag;
    size_t tag_length;
    enum event_kind kind;
    int has_metadata;
    int data_class; /* as given */
    const char *plugin;
    size_t plugin_length;
    const uint8_t *content; /* of the plugin's data */
    size_t content_length;
    const char *display_name, *description; /* "" if there is none */
    size_t display_name_length, description_length;
    int dtype, rank;
    uint64_t elements, last_dimension; /* of the shape: 1 without one */
    uint64_t content_bytes;            /* tensor_content */
    uint64_t listed[18];               /* how many elements the typed list with this field number has */
    size_t limits, buckets;            /* of an old histogram */
    double first_bucket, last_bucket;
    const uint8_t *image;
    size_t image_length;
    const uint8_t *bytes; /* length bytes: all of the value */
    size_t length;
    const uint8_t *number; /* 4 bytes of a float32; NULL if there are none */
};

/* Reads the value in these bytes; pointers are borrowed from them. */
void log_value_read(struct log_value *v, const uint8_t *bytes, size_t n);

/* The class that a series gets from its first value. */
int log_value_class(const struct log_value *first);

/* What is wrong with the value in a series of this class whose first value was `first` (v itself for the first): a kind
 * of finding, or LOG_KINDS if nothing. */
enum log_finding_kind log_value_fault(const struct log_value *v, const struct log_value *first, int series_class);

/* 1 if the default loader makes its own metadata for a series with this first value, and loses name and description. */
int log_value_loses_texts(const struct log_value *first);

/* What the first value alone shows to be wrong with a series: LOG_KINDS if nothing. */
enum log_finding_kind log_value_series_fault(const struct log_value *first, int series_class);

int log_value_plugin_is(const struct log_value *v, const char *name);

#endif
