/* utf8_text.h - texts from anywhere as valid UTF-8, which messages to TensorBoard must be. Pure. */
#ifndef EVENTLOG_SERVER_STORE_UTF8_TEXT_H
#define EVENTLOG_SERVER_STORE_UTF8_TEXT_H

#include "base/buffer.h"

#include <stddef.h>

/* Appends n bytes; each byte that is not UTF-8 becomes U+FFFD. */
void utf8_text_append(struct buffer *out, const char *text, size_t n);

#endif
