/*
 * words.h - the words of a text. Pure.
 *
 * A word is one of these; letters of ASCII are made lower case:
 *   letters, digits and all characters outside ASCII but those below; also one ' or - between two of them (don't,
 *   read-only)
 *   any other printable character of ASCII, and U+00A1 to U+00BF and U+2010 to U+206F (quotation marks, dashes), each a
 *   word of its own
 *   <unk>, as some published texts have it, which stands for an unknown word
 * Blanks, U+00A0, U+2000 to U+200F and control characters separate words. Bytes that are not UTF-8, and NUL, are
 * errors: such a file is no text.
 */
#ifndef DATASET_WORDS_H
#define DATASET_WORDS_H

#include "base/error.h"

#include <stddef.h>

#define WORDS_UNKNOWN "<unk>"

struct word {
    const char *text; /* not NUL-terminated */
    size_t length;
};

/* 1: *out is the first word at or after byte *at of the n bytes, whose letters have become lower case, and *at is the
 * byte after it. 0: there is none. ERR_CORRUPT: byte *at is not text; the sentence says what it is. */
int words_next(char *text, size_t n, size_t *at, struct word *out, struct error *e);

/* The byte after the next `lines` lines from byte `at` on; n if there are fewer. */
size_t words_skip_lines(const char *text, size_t n, size_t at, int lines);

#endif
