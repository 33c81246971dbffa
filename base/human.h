/*
 * human.h - figures as people say them: sizes, lengths of time, and numbers of a column rounded alike. Pure. What
 * programs read is written by number.h and json.h instead.
 */
#ifndef BASE_HUMAN_H
#define BASE_HUMAN_H

#include <stdint.h>

enum { HUMAN_TEXT_MAX = 32 };

/* "0 B", "1023 B", "1.00 KiB", "17.3 MiB": three digits, powers of 1024. Returns out, HUMAN_TEXT_MAX bytes. */
const char *human_bytes(uint64_t bytes, char *out);

/* The other way, as people write it: "10G", "1.5 GiB", "100 MB", "4096"; k, M, G, T are powers of 1024. 1 and *bytes,
 * or 0: not such a text, or 2^63 bytes and more. */
int human_parse_bytes(const char *text, uint64_t *bytes);

/* "1 file", "2 files", "3 series": n of what one of them is called. Returns out, HUMAN_TEXT_MAX bytes. */
const char *human_count(uint64_t n, const char *one, char *out);

/* "0 s", "45 s", "12 min", "3 h 5 min", "2 d 4 h"; below 10 s with a decimal, "4.2 s". Negative counts as 0; "-" for
 * what is not finite. Returns out, HUMAN_TEXT_MAX bytes. */
const char *human_duration(double seconds, char *out);

/* A number that stands alone, such as a rate: "0.0123", "75.61", "302.5", "15000". Four digits, all that stand before
 * the point, and an exponent only from 1e15 on and below 1e-4. Returns out, HUMAN_TEXT_MAX bytes. */
const char *human_number(double value, char *out);

/* How the numbers of one column are rounded, so that they can be compared by eye: all with as many decimals as give the
 * greatest five significant digits and the least two; whole numbers without decimals. Where that would take more than
 * ten digits, each by itself with five significant digits: 0.25, 1.2345e-07. */
struct human_rounding {
    double greatest, least; /* of the magnitudes of what is finite and not 0; 0 while there was none */
    int fractions;          /* not all are whole */
};
void human_rounding_add(struct human_rounding *r, double value);
/* value as the column has it; "nan", "inf", "-inf". Returns out, HUMAN_TEXT_MAX bytes. */
const char *human_rounded(const struct human_rounding *r, double value, char *out);

#endif
