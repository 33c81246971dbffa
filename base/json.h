/*
 * json.h - writing JSON text into a buffer. Reading is left to a library (jansson), in the parts that read.
 * Separators are the caller's: these write one value each.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/buffer.h"

/* A string with its quotes. Bytes that are not UTF-8 become U+FFFD each. ascii: everything above 0x7e as \uxxxx.
 * (Not json_string: jansson has a function of that name, and would call ours instead of its own.) */
void json_span(struct buffer *b, const char *text, size_t n, int ascii);
void json_escaped(struct buffer *b, const char *text, size_t n, int ascii); /* without quotes: no control bytes in it */
void json_text(struct buffer *b, const char *text); /* a string for a NUL-terminated string, not ascii */

/* A double by number_text(); "NaN", "Infinity", "-Infinity" as strings, since JSON has no such numbers. */
void json_double(struct buffer *b, double x);

#endif
