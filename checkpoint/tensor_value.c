#include "checkpoint/tensor_value.h"

#include "base/bytes.h"
#include "base/number.h"
#include "checkpoint/tensor_bundle.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* DataType numbers without a name in tensor_bundle.h */
/* clang-format off */
enum {
    INT16 = 5, INT8 = 6, COMPLEX64 = 8, QINT8 = 11, QUINT8 = 12, QINT32 = 13, QINT16 = 15, QUINT16 = 16, UINT16 = 17,
    COMPLEX128 = 18, UINT32 = 22, UINT64 = 23, FLOAT8_E5M2 = 24, FLOAT8_E4M3FN = 25, FLOAT8_E4M3FNUZ = 26,
    FLOAT8_E4M3B11FNUZ = 27, FLOAT8_E5M2FNUZ = 28, INT4 = 29, UINT4 = 30, INT2 = 31, UINT2 = 32,
};
/* clang-format on */

enum { BLOCK = 1024 }; /* elements decoded at once */

enum tensor_kind tensor_kind(int type)
{
    switch (type) {
    case TENSOR_FLOAT:
    case TENSOR_DOUBLE:
    case TENSOR_HALF:
    case TENSOR_BFLOAT16:
    case FLOAT8_E5M2:
    case FLOAT8_E4M3FN:
    case FLOAT8_E4M3FNUZ:
    case FLOAT8_E4M3B11FNUZ:
    case FLOAT8_E5M2FNUZ:
    case TENSOR_FLOAT4:
    case TENSOR_E8M0: return TENSOR_KIND_FLOAT;
    case COMPLEX64:
    case COMPLEX128: return TENSOR_KIND_COMPLEX;
    case TENSOR_INT32:
    case INT16:
    case INT8:
    case TENSOR_INT64:
    case QINT8:
    case QINT32:
    case QINT16:
    case INT4:
    case INT2: return TENSOR_KIND_SIGNED;
    case TENSOR_UINT8:
    case TENSOR_BOOL:
    case QUINT8:
    case QUINT16:
    case UINT16:
    case UINT32:
    case UINT64:
    case UINT4:
    case UINT2: return TENSOR_KIND_UNSIGNED;
    default: return TENSOR_KIND_NONE;
    }
}

/* Floats of 8 bits: sign, exponent, fraction. `finite_only`: no infinity, and NaN only if all bits after the sign are
 * ones; `unsigned_zero`: no infinity, and the sign bit alone means NaN instead of -0. */
static double small_float(unsigned v, int exponent_bits, int fraction_bits, int bias, int finite_only,
                          int unsigned_zero)
{
    unsigned fraction = v & ((1u << fraction_bits) - 1), top = (1u << exponent_bits) - 1;
    unsigned exponent = v >> fraction_bits & top, sign = v >> (exponent_bits + fraction_bits) & 1;
    double magnitude;

    if (unsigned_zero && sign && !exponent && !fraction)
        return NAN;
    if (exponent == top && !unsigned_zero && (!finite_only || fraction == (1u << fraction_bits) - 1)) {
        if (finite_only || fraction)
            return NAN;
        return sign ? -INFINITY : INFINITY;
    }
    magnitude = exponent ? ldexp(1 + ldexp(fraction, -fraction_bits), (int)exponent - bias)
                         : ldexp(fraction, 1 - bias - fraction_bits);
    return sign ? -magnitude : magnitude;
}

/* OCP microscaling formats: E2M1 has neither NaN nor infinity. */
static double float4_value(unsigned v)
{
    static const double magnitudes[] = { 0, 0.5, 1, 1.5, 2, 3, 4, 6 };

    return v & 8 ? -magnitudes[v & 7] : magnitudes[v & 7];
}

static double float_value(int type, const uint8_t *p)
{
    switch (type) {
    case TENSOR_DOUBLE: return bits_double(get_le64(p));
    case TENSOR_HALF: return half_double(get_le16(p));
    case TENSOR_BFLOAT16: return (double)bits_float((uint32_t)get_le16(p) << 16);
    case FLOAT8_E5M2: return small_float(*p, 5, 2, 15, 0, 0);
    case FLOAT8_E4M3FN: return small_float(*p, 4, 3, 7, 1, 0);
    case FLOAT8_E4M3FNUZ: return small_float(*p, 4, 3, 8, 0, 1);
    case FLOAT8_E4M3B11FNUZ: return small_float(*p, 4, 3, 11, 0, 1);
    case FLOAT8_E5M2FNUZ: return small_float(*p, 5, 2, 16, 0, 1);
    case TENSOR_FLOAT4: return float4_value(*p);
    case TENSOR_E8M0: return *p == 0xff ? NAN : ldexp(1, *p - 127);
    default: return (double)bits_float(get_le32(p));
    }
}

static void complex_value(int type, const uint8_t *p, double *real, double *imaginary)
{
    int part = type == COMPLEX64 ? TENSOR_FLOAT : TENSOR_DOUBLE;

    *real = float_value(part, p);
    *imaginary = float_value(part, p + tensor_type_size(part));
}

/* hypot(), which is new in glibc 2.35: programs that use it by that name start with no older one. A complex number is
 * made of its two parts in memory, since clang 14 has no CMPLX(). */
static double magnitude_of(double x, double y)
{
    const double parts[2] = { x, y };
    double complex number;

    memcpy(&number, parts, sizeof number);
    return cabs(number);
}

static uint64_t extended(uint64_t v, int bits, int is_signed)
{
    uint64_t sign = (uint64_t)1 << (bits - 1);

    return is_signed ? (v ^ sign) - sign : v;
}

uint64_t tensor_integer(int type, const void *bytes)
{
    int is_signed = tensor_kind(type) == TENSOR_KIND_SIGNED;
    const uint8_t *p = bytes;

    if (type == INT4 || type == UINT4)
        return extended(*p & 15u, 4, is_signed);
    if (type == INT2 || type == UINT2)
        return extended(*p & 3u, 2, is_signed);
    switch (tensor_type_size(type)) {
    case 1: return extended(*p, 8, is_signed);
    case 2: return extended(get_le16(p), 16, is_signed);
    case 4: return extended(get_le32(p), 32, is_signed);
    default: return get_le64(p);
    }
}

void tensor_values(int type, const void *bytes, size_t count, double *out)
{
    enum tensor_kind kind = tensor_kind(type);
    size_t size = tensor_type_size(type);
    const uint8_t *p = bytes;
    double real, imaginary;

    if (type == TENSOR_FLOAT) { /* nearly all tensors: a loop of its own */
        for (size_t i = 0; i < count; i++)
            out[i] = (double)bits_float(get_le32(p + 4 * i));
        return;
    }
    for (size_t i = 0; i < count; i++, p += size)
        switch (kind) {
        case TENSOR_KIND_FLOAT: out[i] = float_value(type, p); break;
        case TENSOR_KIND_COMPLEX:
            complex_value(type, p, &real, &imaginary);
            out[i] = isnan(real) || isnan(imaginary) ? NAN : magnitude_of(real, imaginary);
            break;
        case TENSOR_KIND_SIGNED: out[i] = (double)(int64_t)tensor_integer(type, p); break;
        default: out[i] = (double)tensor_integer(type, p);
        }
}

void tensor_floats(int type, const void *bytes, size_t count, float *out)
{
    const size_t size = tensor_type_size(type);
    const uint8_t *p = bytes;

    for (size_t i = 0; i < count; i++)
        out[i] = (float)float_value(type, p + i * size);
}

void tensor_value_text(int type, const void *bytes, char *out)
{
    char real[NUMBER_TEXT_MAX], imaginary[NUMBER_TEXT_MAX];
    const uint8_t *p = bytes;
    double x, y;

    switch (tensor_kind(type)) {
    case TENSOR_KIND_FLOAT:
        x = float_value(type, p);
        if (type == TENSOR_DOUBLE)
            number_text(x, out);
        else
            number_text_float((float)x, out);
        break;
    case TENSOR_KIND_COMPLEX:
        complex_value(type, p, &x, &y);
        if (type == COMPLEX128) {
            number_text(x, real);
            number_text(y, imaginary);
        } else {
            number_text_float((float)x, real);
            number_text_float((float)y, imaginary);
        }
        snprintf(out, TENSOR_VALUE_TEXT, "%s%s%si", real, *imaginary == '-' ? "" : "+", imaginary);
        break;
    case TENSOR_KIND_SIGNED: snprintf(out, TENSOR_VALUE_TEXT, "%lld", (long long)tensor_integer(type, p)); break;
    case TENSOR_KIND_UNSIGNED:
        snprintf(out, TENSOR_VALUE_TEXT, "%llu", (unsigned long long)tensor_integer(type, p));
        break;
    default: snprintf(out, TENSOR_VALUE_TEXT, "0x%02x", *p);
    }
}

/* ---- statistics ------------------------------------------------------------------------------------------------ */

/* Merges a block's mean and squared distances into the total (Chan, Golub and LeVeque, 1979). */
static void join(struct tensor_statistics *s, uint64_t count, double mean, double squares)
{
    double all = (double)(s->finite + count), apart = mean - s->mean;

    s->squares += squares + apart * apart * ((double)s->finite / all * (double)count);
    s->mean += apart * ((double)count / all);
    s->finite += count;
}

static void add_exact(struct tensor_statistics *s, int type, const uint8_t *p, size_t count)
{
    int is_signed = tensor_kind(type) == TENSOR_KIND_SIGNED;
    /* With the top bit flipped, signed numbers sort as unsigned ones. */
    uint64_t turn = is_signed ? (uint64_t)1 << 63 : 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t v = tensor_integer(type, p + i * tensor_type_size(type));

        if ((!s->elements && !i) || (v ^ turn) < (s->exact_least ^ turn))
            s->exact_least = v;
        if ((!s->elements && !i) || (v ^ turn) > (s->exact_most ^ turn))
            s->exact_most = v;
    }
}

static void add_block(struct tensor_statistics *s, const double *v, size_t count)
{
    double sum = 0, mean, squares = 0;
    size_t finite = 0;

    for (size_t i = 0; i < count; i++) {
        if (v[i] - v[i] == 0) {
            if (!s->finite && !finite)
                s->least = s->most = v[i];
            s->least = v[i] < s->least ? v[i] : s->least;
            s->most = v[i] > s->most ? v[i] : s->most;
            sum += v[i];
            finite++;
        } else if (isnan(v[i])) {
            s->nan++;
        } else {
            s->infinite++;
        }
    }
    if (finite) {
        mean = sum / (double)finite;
        for (size_t i = 0; i < count; i++)
            if (v[i] - v[i] == 0)
                squares += (v[i] - mean) * (v[i] - mean);
        join(s, finite, mean, squares);
    }
    s->elements += count;
}

void tensor_statistics_add(struct tensor_statistics *s, int type, const void *bytes, size_t count)
{
    enum tensor_kind kind = tensor_kind(type);
    size_t size = tensor_type_size(type);
    const uint8_t *p = bytes;
    double values[BLOCK];

    while (count) {
        size_t block = count < BLOCK ? count : BLOCK;

        tensor_values(type, p, block, values);
        if (kind == TENSOR_KIND_SIGNED || kind == TENSOR_KIND_UNSIGNED)
            add_exact(s, type, p, block);
        add_block(s, values, block);
        p += block * size;
        count -= block;
    }
}

double tensor_statistics_deviation(const struct tensor_statistics *s)
{
    return s->finite ? sqrt(s->squares / (double)s->finite) : NAN;
}

/* ---- differences ----------------------------------------------------------------------------------------------- */

static int same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* 1 if the values are equal; else their distance and the larger magnitude. */
static int distance(int type, const uint8_t *a, const uint8_t *b, double *apart, double *magnitude)
{
    enum tensor_kind kind = tensor_kind(type);
    double x, y, x2 = 0, y2 = 0;
    uint64_t m, n;

    if (kind == TENSOR_KIND_NONE) {
        *apart = *magnitude = INFINITY;
        return *a == *b;
    }
    if (kind == TENSOR_KIND_SIGNED || kind == TENSOR_KIND_UNSIGNED) {
        m = tensor_integer(type, a);
        n = tensor_integer(type, b);
        x = kind == TENSOR_KIND_SIGNED ? (double)(int64_t)m : (double)m;
        y = kind == TENSOR_KIND_SIGNED ? (double)(int64_t)n : (double)n;
        /* The difference itself is exact, though the numbers may be too large for a double. */
        *apart = (kind == TENSOR_KIND_SIGNED ? (int64_t)m > (int64_t)n : m > n) ? (double)(m - n) : (double)(n - m);
        *magnitude = fmax(fabs(x), fabs(y));
        return m == n;
    }
    if (kind == TENSOR_KIND_COMPLEX) {
        complex_value(type, a, &x, &x2);
        complex_value(type, b, &y, &y2);
    } else {
        x = float_value(type, a);
        y = float_value(type, b);
    }
    if (same_number(x, y) && same_number(x2, y2))
        return 1;
    *apart = magnitude_of(x - y, x2 - y2);
    *magnitude = fmax(magnitude_of(x, x2), magnitude_of(y, y2));
    if (!(*apart - *apart == 0) || !(*magnitude - *magnitude == 0))
        *apart = *magnitude = INFINITY;
    return 0;
}

/* Of the finite ones; four sums, which the processor adds in parallel. */
static double sum_of_squares(int type, const void *bytes, size_t count)
{
    double v[BLOCK + 3], sums[4] = { 0 };

    tensor_values(type, bytes, count, v);
    for (size_t i = count; i % 4; i++)
        v[i] = 0;
    for (size_t i = 0; i < count; i += 4)
        for (size_t k = 0; k < 4; k++)
            sums[k] += v[i + k] - v[i + k] == 0 ? v[i + k] * v[i + k] : 0;
    return sums[0] + sums[1] + (sums[2] + sums[3]);
}

/* One pair whose bytes differ. */
static void add_pair(struct tensor_difference *d, int type, const uint8_t *p, const uint8_t *q, size_t size,
                     uint64_t at)
{
    double apart, magnitude, relative;
    int outside;

    if (distance(type, p, q, &apart, &magnitude)) {
        d->other_bits++;
        return;
    }
    relative = isinf(apart) ? INFINITY : apart / magnitude;
    outside = !(apart <= d->absolute_tolerance + d->relative_tolerance * magnitude) || isinf(apart);
    if (!d->different || (outside && !d->outside)) {
        d->first = at;
        memcpy(d->a, p, size);
        memcpy(d->b, q, size);
    }
    d->different++;
    d->outside += outside;
    d->squares += apart * apart;
    d->absolute = apart > d->absolute ? apart : d->absolute;
    d->relative = relative > d->relative ? relative : d->relative;
}

void tensor_difference_add(struct tensor_difference *d, int type, const void *a, const void *b, size_t count)
{
    int numbers = tensor_kind(type) != TENSOR_KIND_NONE;
    size_t size = numbers ? tensor_type_size(type) : 1;
    const uint8_t *p = a, *q = b;

    for (size_t at = 0, block; at < count; at += block, p += block * size, q += block * size) {
        double squares;
        int same;

        block = count - at < BLOCK ? count - at : BLOCK;
        same = memcmp(p, q, block * size) == 0; /* most pairs are equal */
        squares = numbers ? sum_of_squares(type, p, block) : 0;
        d->squares_a += squares;
        d->squares_b += same || !numbers ? squares : sum_of_squares(type, q, block);
        for (size_t i = 0; i < block && !same; i++)
            if (memcmp(p + i * size, q + i * size, size) != 0)
                add_pair(d, type, p + i * size, q + i * size, size, d->elements + at + i);
    }
    d->elements += count;
}
