/* sha256.h - SHA-256 (FIPS 180-4) as 64 hexadecimal digits, to hold files to the sums of the test vectors. */
#ifndef TESTS_CHECKPOINT_SHA256_H
#define TESTS_CHECKPOINT_SHA256_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The first 32 bits behind the point of the square or cube root of the n-th prime. */
static inline uint32_t sha256_constant(int n, int cube)
{
    long double root;
    int prime = 1;

    for (int found = -1; found < n;) {
        int composite = 0;

        prime++;
        for (int d = 2; d * d <= prime && !composite; d++)
            composite = prime % d == 0;
        found += !composite;
    }
    root = cube ? cbrtl(prime) : sqrtl(prime);
    return (uint32_t)((root - floorl(root)) * 4294967296.0L);
}

static inline uint32_t sha256_rotate(uint32_t v, int n)
{
    return v >> n | v << (32 - n);
}

static inline void sha256_block(uint32_t h[8], const uint32_t k[64], const uint8_t *p)
{
    uint32_t w[64], s[8];

    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + (sha256_rotate(w[i - 15], 7) ^ sha256_rotate(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
               (sha256_rotate(w[i - 2], 17) ^ sha256_rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(s, h, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t one = s[7] + (sha256_rotate(s[4], 6) ^ sha256_rotate(s[4], 11) ^ sha256_rotate(s[4], 25)) +
                       ((s[4] & s[5]) ^ (~s[4] & s[6])) + k[i] + w[i];
        uint32_t two = (sha256_rotate(s[0], 2) ^ sha256_rotate(s[0], 13) ^ sha256_rotate(s[0], 22)) +
                       ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        h[i] += s[i];
}

static inline void sha256_hex(const void *bytes, size_t n, char out[65])
{
    uint32_t h[8], k[64];
    uint8_t last[128] = { 0 };
    size_t rest = n % 64, end = rest < 56 ? 64 : 128;

    for (int i = 0; i < 8; i++)
        h[i] = sha256_constant(i, 0);
    for (int i = 0; i < 64; i++)
        k[i] = sha256_constant(i, 1);
    for (size_t i = 0; i + 64 <= n; i += 64)
        sha256_block(h, k, (const uint8_t *)bytes + i);
    if (rest)
        memcpy(last, (const uint8_t *)bytes + n - rest, rest);
    last[rest] = 0x80;
    for (int i = 0; i < 8; i++)
        last[end - 1 - (size_t)i] = (uint8_t)((uint64_t)n * 8 >> (8 * i));
    for (size_t i = 0; i < end; i += 64)
        sha256_block(h, k, last + i);
    for (int i = 0; i < 8; i++)
        sprintf(out + 8 * i, "%08x", h[i]);
}

#endif
