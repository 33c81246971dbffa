/*
 * One CRC instruction takes 8 bytes and has a latency of three cycles but starts every cycle, so long input is cut
 * into three equal streams whose CRCs run side by side and are joined afterwards. Joining needs "the CRC after k zero
 * bytes", a linear map over GF(2) of the 32 bits; for the two block lengths used it is a table of 4 x 256 words,
 * computed once from the polynomial.
 */
#include "base/crc32c.h"

#include "base/bytes.h"

#include <pthread.h>
#include <stdatomic.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
#endif

enum { LONG_STREAM = 4096, SHORT_STREAM = 256 }; /* bytes a stream; multiples of 8 */

static const uint32_t polynomial = 0x82f63b78u;

/* Written once under `once`, only read afterwards. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t slices[8][256];
static uint32_t skip_long[4][256], skip_short[4][256];

/* Starts as the function that initialises, so that later calls need not check for it. */
static uint32_t prepare_and_extend(uint32_t crc, const uint8_t *p, size_t n);
static uint32_t (*_Atomic extend)(uint32_t crc, const uint8_t *p, size_t n) = prepare_and_extend;

static uint32_t matrix_times(const uint32_t matrix[32], uint32_t vector)
{
    uint32_t sum = 0;

    for (int i = 0; vector; vector >>= 1, i++)
        if (vector & 1)
            sum ^= matrix[i];
    return sum;
}

/* The effect of one zero bit on the register: shift right; a 1 that is shifted out adds the polynomial. */
static void one_bit(uint32_t matrix[32])
{
    matrix[0] = polynomial;
    for (int i = 1; i < 32; i++)
        matrix[i] = 1u << (i - 1);
}

static void square(uint32_t matrix[32])
{
    uint32_t result[32];

    for (int i = 0; i < 32; i++)
        result[i] = matrix_times(matrix, matrix[i]);
    memcpy(matrix, result, sizeof result);
}

/* table[k][b]: the effect of `zeros` zero bytes (a power of two) on a register whose byte k is b. */
static void skip_table(uint32_t table[4][256], size_t zeros)
{
    uint32_t power[32];

    one_bit(power);
    for (size_t bits = 1; bits < zeros * 8; bits *= 2)
        square(power);
    for (int k = 0; k < 4; k++)
        for (uint32_t b = 0; b < 256; b++)
            table[k][b] = matrix_times(power, b << (8 * k));
}

static uint32_t portable(uint32_t crc, const uint8_t *p, size_t n)
{
    for (; n >= 8; p += 8, n -= 8) {
        uint32_t low = crc ^ get_le32(p), high = get_le32(p + 4);

        crc = slices[7][low & 255] ^ slices[6][low >> 8 & 255] ^ slices[5][low >> 16 & 255] ^ slices[4][low >> 24] ^
              slices[3][high & 255] ^ slices[2][high >> 8 & 255] ^ slices[1][high >> 16 & 255] ^ slices[0][high >> 24];
    }
    for (; n; p++, n--)
        crc = slices[0][(crc ^ *p) & 255] ^ crc >> 8;
    return crc;
}

#if defined(__x86_64__) || defined(__aarch64__)

#if defined(__x86_64__)
#define HARDWARE __attribute__((target("sse4.2")))
#define CRC_BYTE(crc, v) _mm_crc32_u8(crc, v)
#define CRC_PAIR(crc, v) _mm_crc32_u16(crc, v)
#define CRC_HALF(crc, v) _mm_crc32_u32(crc, v)
#define CRC_WORD(crc, v) (uint32_t) _mm_crc32_u64(crc, v)
#else
#define HARDWARE __attribute__((target("+crc")))
#define CRC_BYTE(crc, v) __crc32cb(crc, v)
#define CRC_PAIR(crc, v) __crc32ch(crc, v)
#define CRC_HALF(crc, v) __crc32cw(crc, v)
#define CRC_WORD(crc, v) __crc32cd(crc, v)
#endif

static uint32_t skip(uint32_t table[4][256], uint32_t crc)
{
    return table[0][crc & 255] ^ table[1][crc >> 8 & 255] ^ table[2][crc >> 16 & 255] ^ table[3][crc >> 24];
}

HARDWARE static uint32_t three_streams(uint32_t crc, const uint8_t *p, size_t stream, uint32_t table[4][256])
{
    uint32_t b = 0, c = 0;

    for (size_t i = 0; i < stream; i += 8) {
        crc = CRC_WORD(crc, get_le64(p + i));
        b = CRC_WORD(b, get_le64(p + stream + i));
        c = CRC_WORD(c, get_le64(p + 2 * stream + i));
    }
    return skip(table, skip(table, crc) ^ b) ^ c;
}

HARDWARE static uint32_t hardware(uint32_t crc, const uint8_t *p, size_t n)
{
    for (; n >= 3 * LONG_STREAM; p += 3 * LONG_STREAM, n -= 3 * LONG_STREAM)
        crc = three_streams(crc, p, LONG_STREAM, skip_long);
    for (; n >= 3 * SHORT_STREAM; p += 3 * SHORT_STREAM, n -= 3 * SHORT_STREAM)
        crc = three_streams(crc, p, SHORT_STREAM, skip_short);
    for (; n >= 8; p += 8, n -= 8)
        crc = CRC_WORD(crc, get_le64(p));
    if (n & 4) {
        crc = CRC_HALF(crc, get_le32(p));
        p += 4;
    }
    if (n & 2) {
        crc = CRC_PAIR(crc, get_le16(p));
        p += 2;
    }
    return n & 1 ? CRC_BYTE(crc, *p) : crc;
}

static int has_instruction(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("sse4.2");
#else
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#endif
}

#else
#define hardware portable
static int has_instruction(void)
{
    return 0;
}
#endif

static void crc32c_prepare(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;

        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ polynomial : crc >> 1;
        slices[0][b] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t b = 0; b < 256; b++)
            slices[k][b] = slices[0][slices[k - 1][b] & 255] ^ slices[k - 1][b] >> 8;
    skip_table(skip_long, LONG_STREAM);
    skip_table(skip_short, SHORT_STREAM);
    atomic_store_explicit(&extend, has_instruction() ? hardware : portable, memory_order_release);
}

static uint32_t prepare_and_extend(uint32_t crc, const uint8_t *p, size_t n)
{
    pthread_once(&once, crc32c_prepare);
    return atomic_load_explicit(&extend, memory_order_acquire)(crc, p, n);
}

uint32_t crc32c_extend(uint32_t crc, const void *bytes, size_t n)
{
    return ~atomic_load_explicit(&extend, memory_order_acquire)(~crc, bytes, n);
}

uint32_t crc32c_extend_portable(uint32_t crc, const void *bytes, size_t n)
{
    pthread_once(&once, crc32c_prepare);
    return ~portable(~crc, bytes, n);
}

uint32_t crc32c(const void *bytes, size_t n)
{
    return crc32c_extend(0, bytes, n);
}

uint32_t crc32c_combine(uint32_t a, uint32_t b, uint64_t n)
{
    uint32_t power[32];

    one_bit(power);
    for (int i = 0; i < 3; i++)
        square(power); /* one zero byte */
    for (; n; n >>= 1) {
        if (n & 1)
            a = matrix_times(power, a);
        square(power);
    }
    return a ^ b;
}
