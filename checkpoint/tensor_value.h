/*
 * tensor_value.h - the numbers in a tensor's bytes: as double, as text, their statistics, and how two tensors differ.
 * Pure. Bytes are little-endian elements as checkpoints store them, in any alignment.
 */
#ifndef CHECKPOINT_TENSOR_VALUE_H
#define CHECKPOINT_TENSOR_VALUE_H

#include <stddef.h>
#include <stdint.h>

/* the kind of numbers in a type */
enum tensor_kind {
    TENSOR_KIND_NONE,  /* strings, variants, unknown types: not numbers */
    TENSOR_KIND_FLOAT, /* also bfloat16 and the float8 and float4 types */
    TENSOR_KIND_COMPLEX,
    TENSOR_KIND_SIGNED, /* also quantized types; bool is unsigned */
    TENSOR_KIND_UNSIGNED,
};

enum tensor_kind tensor_kind(int type);

/* Converts count elements to double; complex ones to their magnitude, 64-bit integers rounded. The type must have a
 * kind. */
void tensor_values(int type, const void *bytes, size_t count, double *out);

/* The same for a type of TENSOR_KIND_FLOAT, rounded to float32. */
void tensor_floats(int type, const void *bytes, size_t count, float *out);

/* One integer element, exactly: its two's complement bits for signed types. The type must be of an integer kind. */
uint64_t tensor_integer(int type, const void *bytes);

enum { TENSOR_VALUE_TEXT = 80 };
/* Writes one element as text to out (TENSOR_VALUE_TEXT bytes): floats as the shortest decimal of their type, "1-2i". */
void tensor_value_text(int type, const void *bytes, char *out);

/* Statistics; all zero at first. mean, least and most are over the finite elements; for complex types, over magnitudes.
 * The deviation is that of the population (divided by the count). */
struct tensor_statistics {
    uint64_t elements, finite, nan, infinite;
    double mean, squares; /* squares: sum of squared distances from the mean */
    double least, most;
    uint64_t exact_least, exact_most; /* for integers: tensor_integer() of the least and the most */
};

void tensor_statistics_add(struct tensor_statistics *s, int type, const void *bytes, size_t count);
double tensor_statistics_deviation(const struct tensor_statistics *s); /* NaN without finite elements */

/* How two tensors of the same type differ. Elements a and b are equal if their values are, or if both are NaN; within
 * tolerance if |a - b| <= absolute + relative * max(|a|, |b|). Types without a kind are compared byte by byte. */
struct tensor_difference {
    double absolute_tolerance, relative_tolerance; /* set by the caller; the rest is zero at first */
    uint64_t elements;                             /* seen so far */
    uint64_t different, outside;                   /* not equal; of these, not within tolerance */
    uint64_t other_bits;                           /* equal despite different bytes: 0 and -0, NaNs */
    double absolute, relative;   /* the largest |a - b|, and |a - b| / max(|a|, |b|); infinite where only one of two
                                     is NaN or infinite */
    double squares;              /* sum of |a - b| squared; infinite as above */
    double squares_a, squares_b; /* sums of the squares of the finite elements of each */
    uint64_t first;              /* index of the first element outside tolerance, or else of the first different one */
    unsigned char a[16], b[16];  /* its two values, as stored */
};

void tensor_difference_add(struct tensor_difference *d, int type, const void *a, const void *b, size_t count);

#endif
