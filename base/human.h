/*
 * human.h - numbers for people: sizes, durations, and numbers of a column rounded alike. Pure. number.h and json.h
 * write numbers for programs.
 */
#ifndef BASE_HUMAN_H
#define BASE_HUMAN_H

#include <stdint.h>

enum { HUMAN_TEXT_MAX = 32 };

/* "0 B", "1023 B", "1.00 KiB", "17.3 MiB": three digits, powers of 1024. Returns out, HUMAN_TEXT_MAX bytes. */
const char *human_bytes(uint64_t bytes, char *out);

/* Parses sizes as people write them: "10G", "1.5 GiB", "100 MB", "4096"; k, M, G, T are powers of 1024. 1 and *bytes,
 * or 0: not a size, or 2^63 bytes and more. */
int human_parse_bytes(const char *text, uint64_t *bytes);

/* "1 file", "2 files", "3 series": n and the plural of `one`. Returns out, HUMAN_TEXT_MAX bytes. */
const char *human_count(uint64_t n, const char *one, char *out);

/* "0 s", "45 s", "12 min", "3 h 5 min", "2 d 4 h"; below 10 s with a decimal, "4.2 s". Negative counts as 0; "-" if not
 * finite. Returns out, HUMAN_TEXT_MAX bytes. */
const char *human_duration(double seconds, char *out);

/* A single number, such as a rate: "0.0123", "75.61", "302.5", "15000". Four digits, or all before the point; an
 * exponent only from 1e15 up and below 1e-4. Returns out, HUMAN_TEXT_MAX bytes. */
const char *human_number(double value, char *out);

/* Rounds the numbers of a column so that they can be compared by eye: all with the same decimals, enough to give the
 * largest five significant digits and the smallest two; whole numbers without decimals. If that takes more than ten
 * digits, each is rounded by itself to five significant digits: 0.25, 1.2345e-07. */
struct human_rounding {
    double greatest, least; /* magnitudes of those that are finite and not 0; 0: none yet */
    int fractions;          /* 1: not all are whole numbers */
};
void human_rounding_add(struct human_rounding *r, double value);
/* value rounded for the column; "nan", "inf", "-inf". Returns out, HUMAN_TEXT_MAX bytes. */
const char *human_rounded(const struct human_rounding *r, double value, char *out);

#endif
