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
void json_text(struct buffer *b, const char *text); /* of a NUL-terminated string, not ascii; NULL: null */

/* The name of a file in a directory, reversibly: a byte that is not UTF-8 becomes /xHH, two hex digits; no such name
 * has a slash of its own. And back from the text of such a string: 1, or 0 where out (size bytes) is too small. */
void json_file_name(struct buffer *b, const char *name);
int json_file_name_read(const char *text, char *out, size_t size);

/* A double by number_text(); "NaN", "Infinity", "-Infinity" as strings, since JSON has no such numbers. */
void json_double(struct buffer *b, double x);

#endif
