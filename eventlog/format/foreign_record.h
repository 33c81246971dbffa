/*
 * foreign_record.h - tells records of TFRecord files that hold no events from those that do: event files are TFRecord
 * files, and so are data sets, whose usual record is a tf.Example. Pure.
 */
#ifndef EVENTLOG_FORMAT_FOREIGN_RECORD_H
#define EVENTLOG_FORMAT_FOREIGN_RECORD_H

#include <stddef.h>
#include <stdint.h>

enum foreign_kind {
    FOREIGN_NOT, /* an event, nothing, or no message */
    FOREIGN_EXAMPLE,
    FOREIGN_SEQUENCE_EXAMPLE,
    FOREIGN_OTHER, /* a message without any field of an event */
};

enum foreign_kind foreign_record(const uint8_t *data, size_t n);

#endif
