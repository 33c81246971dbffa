/*
 * value_words.h - describes a value that is not a number in a few words, for a line of `tail --all`. Pure; takes any
 * bytes.
 */
#ifndef EVENTLOG_TOOL_VALUE_WORDS_H
#define EVENTLOG_TOOL_VALUE_WORDS_H

#include "base/buffer.h"
#include "eventlog/format/event_decode.h"

/* The word for the value in a series of that plugin: "image", "histogram", "audio", "text", "tensor", "pr_curve",
 * "mesh", "hparams", "layout", "graph", "scalar" (one that is not a number), or "value". */
const char *value_words_word(const struct event_value *v, const char *plugin);

/* Appends the details. json: members of an object, each after a comma: "bytes" and, if known, "width", "height",
 * "count" (images or clips of the value), "shape", "text". Otherwise words: "3x2, 2 images, 170 bytes". Texts are cut
 * to 200 bytes in words, and complete in JSON. */
void value_words_details(struct buffer *b, const struct event_value *v, const char *plugin, int json);

/* The same as value_words_word() for an event that is not a summary: "graph", "meta_graph", "session_start",
 * "session_stop", "checkpoint", "run_metadata", "log_message"; NULL: not worth a line. */
const char *value_words_event(const struct event *event);

#endif
