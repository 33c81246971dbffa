#include "base/bytes.h"

int bytes_compare(const void *a, size_t a_length, const void *b, size_t b_length)
{
    size_t both = a_length < b_length ? a_length : b_length;
    int c = both ? memcmp(a, b, both) : 0;

    return c ? c : (a_length > b_length) - (a_length < b_length);
}

int put_varint(void *p, uint64_t v)
{
    uint8_t *b = p;
    int n = 0;

    while (v >= 0x80) {
        b[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    b[n++] = (uint8_t)v;
    return n;
}

int get_varint(const void *p, size_t n, uint64_t *v)
{
    const uint8_t *b = p;
    uint64_t value = 0;

    for (int i = 0; i < VARINT_MAX; i++) {
        if ((size_t)i >= n)
            return 0;
        if (i == VARINT_MAX - 1 && b[i] > 1)
            return -1;
        value |= (uint64_t)(b[i] & 0x7f) << (7 * i);
        if (b[i] < 0x80) {
            *v = value;
            return i + 1;
        }
    }
    return -1;
}

int varint_size(uint64_t v)
{
    int n = 1;

    while (v >= 0x80) {
        v >>= 7;
        n++;
    }
    return n;
}

int utf8_character(const void *bytes, size_t n, uint32_t *code_point)
{
    static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    const uint8_t *p = bytes;
    size_t length;
    uint32_t c;

    if (p[0] < 0x80)
        length = 1;
    else if ((p[0] & 0xe0) == 0xc0)
        length = 2;
    else if ((p[0] & 0xf0) == 0xe0)
        length = 3;
    else if ((p[0] & 0xf8) == 0xf0)
        length = 4;
    else
        return 0;
    if (length > n)
        return 0;
    c = length == 1 ? p[0] : p[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3fu);
    }
    if (c < least[length] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    if (code_point)
        *code_point = c;
    return (int)length;
}

/* Most texts are ASCII: takes eight bytes at a time while they are, then character by character. */
int utf8_valid(const void *bytes, size_t n, size_t *bad)
{
    const uint8_t *p = bytes;
    size_t i = 0;

    while (n - i >= 8 && !(get_le64(p + i) & 0x8080808080808080u))
        i += 8;
    if (n >= 8 && n - i < 8 && !(get_le64(p + n - 8) & 0x8080808080808080u)) /* the end, with some of it again */
        return 1;
    while (i < n) {
        int length = p[i] < 0x80 ? 1 : utf8_character(p + i, n - i, NULL);

        if (!length) {
            if (bad)
                *bad = i;
            return 0;
        }
        i += (size_t)length;
    }
    return 1;
}

double half_double(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = half >> 10 & 31u, fraction = half & 0x3ffu;

    if (exponent == 31) /* infinity, or NaN with its payload */
        return (double)bits_float(sign | 0x7f800000u | fraction << 13);
    if (exponent) /* the bias goes from 15 to 127 */
        return (double)bits_float(sign | (exponent + 112) << 23 | fraction << 13);
    return (sign ? -1 : 1) * (double)fraction / 16777216; /* subnormal: units of 2^-24 */
}
