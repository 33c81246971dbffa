/*
 * json.h - writes JSON text into a buffer. Modules that read JSON use a library (jansson). Each call writes one value;
 * the caller writes separators.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/buffer.h"

/* A string with its quotes. Each byte that is not UTF-8 becomes U+FFFD. ascii: everything above 0x7e as \uxxxx.
 * (Not json_string: jansson has a function of that name, and would call ours instead of its own.) */
void json_span(struct buffer *b, const char *text, size_t n, int ascii);
void json_text(struct buffer *b, const char *text); /* of a NUL-terminated string, not ascii; NULL: null */

/* A file name as a string, reversibly: a byte that is not UTF-8 becomes /xHH, two hex digits (file names contain no
 * slash). The second reads the text of such a string: 1, or 0 if out (size bytes) is too small. */
void json_file_name(struct buffer *b, const char *name);
int json_file_name_read(const char *text, char *out, size_t size);

/* A double by number_text(); "NaN", "Infinity", "-Infinity" as strings, since JSON has no such numbers. */
void json_double(struct buffer *b, double x);

#endif
