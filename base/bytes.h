/*
 * bytes.h - integers in byte strings, and checks of text. Pure functions; nothing here allocates or keeps a pointer.
 * Integers in files are read with these, never through a cast or a packed struct.
 */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t get_le16(const void *p)
{
    const uint8_t *b = p;
    return (uint16_t)(b[0] | b[1] << 8);
}

static inline uint32_t get_le32(const void *p)
{
    const uint8_t *b = p;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static inline uint64_t get_le64(const void *p)
{
    const uint8_t *b = p;
    return (uint64_t)get_le32(b) | (uint64_t)get_le32(b + 4) << 32;
}

static inline uint32_t get_be32(const void *p)
{
    const uint8_t *b = p;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | (uint32_t)b[3];
}

static inline void put_le16(void *p, uint16_t v)
{
    uint8_t *b = p;
    b[0] = (uint8_t)v;
    b[1] = (uint8_t)(v >> 8);
}

static inline void put_le32(void *p, uint32_t v)
{
    uint8_t *b = p;
    b[0] = (uint8_t)v;
    b[1] = (uint8_t)(v >> 8);
    b[2] = (uint8_t)(v >> 16);
    b[3] = (uint8_t)(v >> 24);
}

static inline void put_le64(void *p, uint64_t v)
{
    put_le32(p, (uint32_t)v);
    put_le32((uint8_t *)p + 4, (uint32_t)(v >> 32));
}

/* Copies n bytes to where they do not overlap; for pieces of mostly some ten bytes. Where a compiler can bound n but
 * does not know it, it makes of memcpy() an instruction that takes longer to begin than such a piece. */
static inline void bytes_copy(void *to, const void *from, size_t n)
{
    char *t = to;
    const char *f = from;

    if (n >= 16) {
        for (size_t i = 0; i + 16 <= n; i += 16)
            memcpy(t + i, f + i, 16);
        memcpy(t + n - 16, f + n - 16, 16);
    } else if (n >= 8) {
        memcpy(t, f, 8);
        memcpy(t + n - 8, f + n - 8, 8);
    } else if (n >= 4) {
        memcpy(t, f, 4);
        memcpy(t + n - 4, f + n - 4, 4);
    } else {
        for (size_t i = 0; i < n; i++)
            t[i] = f[i];
    }
}

/* IEEE bits of a value and back. */
static inline uint32_t float_bits(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

static inline uint64_t double_bits(double v)
{
    uint64_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

static inline float bits_float(uint32_t u)
{
    float v;
    memcpy(&v, &u, sizeof v);
    return v;
}

static inline double bits_double(uint64_t u)
{
    double v;
    memcpy(&v, &u, sizeof v);
    return v;
}

/* The value of an IEEE half (binary16), exactly. */
double half_double(uint16_t half);

/* Less than, equal to or greater than 0, as a is before, equal to or after b: byte by byte; a prefix comes first. */
int bytes_compare(const void *a, size_t a_length, const void *b, size_t b_length);

/* Protobuf/LEB128 varints, 1 to 10 bytes. put: p holds 10 bytes; returns the number written.
 * get: returns the number of bytes read, 0 when n bytes end inside the varint, -1 when it is longer than 10 bytes
 * or does not fit into 64 bits. */
enum { VARINT_MAX = 10 };
int put_varint(void *p, uint64_t v);
int get_varint(const void *p, size_t n, uint64_t *v);
int varint_size(uint64_t v);

/* The number of bytes of the UTF-8 character at p (n > 0 bytes left), its code point in *code_point (may be NULL);
 * 0: not a character: overlong, surrogate, above U+10FFFF, truncated. */
int utf8_character(const void *p, size_t n, uint32_t *code_point);

/* 1 if all n bytes are valid UTF-8; else 0 and the index of the first bad byte in *bad (may be NULL). */
int utf8_valid(const void *p, size_t n, size_t *bad);

#endif
