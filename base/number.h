/*
 * number.h - numbers as text, independent of the locale: the shortest decimal that reads back as the same double, laid
 * out as Python's repr() does. Checked against CPython (specification of the export formats, section 3).
 */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdint.h>

enum { NUMBER_TEXT_MAX = 32 };

/* Writes x as text to out (NUMBER_TEXT_MAX bytes); returns its length. If not finite: "nan", "inf", "-inf". */
int number_text(double x, char *out);

/* The same for x widened from a float32: the shortest decimal that reads back as that float32. */
int number_text_float(float x, char *out);

/* Writes v as text to out (NUMBER_TEXT_MAX bytes), without a NUL; returns its length. */
int number_text_integer(int64_t v, char *out);

/* Parses a number: the whole string must be a decimal number that fits. 1, or 0: not a number, or out of range. */
int number_parse_int(const char *text, int64_t *out);
int number_parse_double(const char *text, double *out);

#endif
