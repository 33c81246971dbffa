/*
 * text.h - names and texts for people: their width on a terminal, cutting, wrapping, escaping of control characters,
 * and natural order. Pure functions; the bytes may be anything.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/buffer.h"

#include <stddef.h>

/* The number of columns that n bytes take: 2 for wide East Asian characters and emoji, 0 for combining marks (ranges of
 * Unicode 15's EastAsianWidth.txt and general category Mn), 1 for all others and for each byte that is not UTF-8. */
size_t text_columns(const char *text, size_t n);

/* Appends the text with control characters and bytes that are not UTF-8 as \xHH, so that it cannot upset a terminal. */
void text_append_safe(struct buffer *out, const char *text, size_t n);

/* Maximum columns of a name where lines have no limit of their own: names come from anywhere and may be very long. */
enum { TEXT_NAME_MOST = 1000 };

/* Appends the text in at most `columns` columns: if it is wider, "…" replaces its middle, or ".." with ascii. Escapes
 * it as text_append_safe() does. */
void text_append_cut(struct buffer *out, const char *text, size_t n, size_t columns, int ascii);

/* Appends the words of text in lines of at most `columns` columns (0: no limit), each but the first indented by
 * `indent` blanks; the first starts at column `at`. A word wider than a line is broken. No newline at the end. */
void text_append_wrapped(struct buffer *out, const char *text, size_t at, size_t indent, size_t columns);

/* The number of bytes before `end`, the last ones of text's n; 0: it does not end so, or there is nothing before. */
size_t text_stem(const char *text, size_t n, const char *end);

/* Less than, equal to or greater than 0, as a is before, equal to or after b: runs of digits compare as numbers ("r2"
 * before "r10"), all else byte by byte, and paths part by part, so that the contents of a directory are adjacent. Parts
 * that differ only in leading zeros compare by bytes, so 0 means equal. */
int text_natural_order(const char *a, const char *b);

/* How many bytes must be inserted, deleted or replaced to turn a into b (Levenshtein distance); TEXT_DISTANCE_MOST if
 * one of them is longer than that. */
enum { TEXT_DISTANCE_MOST = 63 };
size_t text_distance(const char *a, const char *b);

#endif
