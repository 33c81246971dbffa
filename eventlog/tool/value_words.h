/*
 * value_words.h - what a value that is no number is, in a few words: for a line of `tail --all`. Pure; takes any bytes.
 */
#ifndef EVENTLOG_TOOL_VALUE_WORDS_H
#define EVENTLOG_TOOL_VALUE_WORDS_H

#include "base/buffer.h"
#include "eventlog/format/event_decode.h"

/* The word for the value in a series of that plugin: "image", "histogram", "audio", "text", "tensor", "pr_curve",
 * "mesh", "hparams", "layout", "graph", "scalar" (one that is no number), or "value". */
const char *value_words_word(const struct event_value *v, const char *plugin);

/* What else there is to say. json: members of an object, a comma before each: "bytes" and, where it has them, "width",
 * "height", "count" (images or clips of the value), "shape", "text". Else words with blanks between: "3x2, 2 images,
 * 170 bytes". Texts are cut to 200 bytes in words and whole in JSON. */
void value_words_details(struct buffer *b, const struct event_value *v, const char *plugin, int json);

/* The same for an event that is no summary: "graph", "meta_graph", "session_start", "session_stop", "checkpoint",
 * "run_metadata", "log_message"; NULL: not worth a line. */
const char *value_words_event(const struct event *event);

#endif
