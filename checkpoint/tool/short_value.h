/* short_value.h - the value of a small tensor in a few words: counters, settings, the texts of the trainer. */
#ifndef CHECKPOINT_TOOL_SHORT_VALUE_H
#define CHECKPOINT_TOOL_SHORT_VALUE_H

#include "base/buffer.h"
#include "base/error.h"
#include "checkpoint/tool/source.h"

/* 1: a vector of bytes that the trainer keeps a text in. */
int short_value_is_text(const struct source_tensor *tensor);

/* Appends one number, or a text (a string, or a vector of bytes under evalboard/); of what is larger or no text, its
 * type and shape: "7", "mpi", "float32 [2, 3]". Texts come as they are; whoever prints them makes them safe. */
int short_value(const struct source *s, const struct source_tensor *tensor, struct buffer *out, struct error *e);

#endif
