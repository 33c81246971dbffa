/* short_value.h - the value of a small tensor as short text: counters, settings, the texts of the trainer. */
#ifndef CHECKPOINT_TOOL_SHORT_VALUE_H
#define CHECKPOINT_TOOL_SHORT_VALUE_H

#include "base/buffer.h"
#include "base/error.h"
#include "checkpoint/tool/source.h"

/* 1: a vector of bytes in which the trainer stores a text. */
int short_value_is_text(const struct source_tensor *tensor);

/* Appends one number, or a text (a string, or a vector of bytes under evalboard/), or for any other tensor its type and
 * shape: "7", "mpi", "float32 [2, 3]". Texts are appended unchanged; the caller makes them safe to print. */
int short_value(const struct source *s, const struct source_tensor *tensor, struct buffer *out, struct error *e);

#endif
