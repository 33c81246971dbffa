/*
 * text.h - names and texts shown to people: how wide they are on a terminal, cut to fit, without control characters, in
 * natural order. Pure functions; the bytes may be anything.
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

/* How many columns a name takes where lines have no limit of their own: names come from anywhere and may be endless. */
enum { TEXT_NAME_MOST = 1000 };

/* Appends the text in at most `columns` columns: where it is wider, its middle gives way to "…", or to ".." with ascii.
 * Text is taken as text_append_safe() makes it. */
void text_append_cut(struct buffer *out, const char *text, size_t n, size_t columns, int ascii);

/* Appends the words of text in lines of at most `columns` columns (0: no limit), each but the first after `indent`
 * blanks; the first is at column `at` already. A word that is wider than a line is broken. No line feed at the end. */
void text_append_wrapped(struct buffer *out, const char *text, size_t at, size_t indent, size_t columns);

/* Below, at or above 0 as a comes before, is, or comes behind b: runs of digits compare as numbers ("r2" before "r10"),
 * all else byte by byte, and paths part by part, so that what is below a directory stands together. Parts that differ
 * only in leading zeros compare by bytes, so 0 means equal. */
int text_natural_order(const char *a, const char *b);

/* How many letters must be put in, taken out or replaced to make b of a (Levenshtein's distance, of bytes);
 * TEXT_DISTANCE_MOST where one of them is longer than that. */
enum { TEXT_DISTANCE_MOST = 63 };
size_t text_distance(const char *a, const char *b);

#endif
