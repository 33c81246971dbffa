/*
 * decisions.h - the decisions of a maker of files (made_*.h), from a fuzzer's bytes or from a seed.
 * From bytes, each decision takes as many as it needs, and all are 0 when the bytes are used up: so a mutation of the
 * bytes is a mutation of the structure that the maker builds, and a maker puts what is plain and small at 0.
 * From a seed (splitmix64), the same seed makes the same file everywhere.
 */
#ifndef TESTS_FUZZ_DECISIONS_H
#define TESTS_FUZZ_DECISIONS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct decisions {
    const uint8_t *bytes; /* borrowed; NULL: from the seed */
    size_t left;
    uint64_t state;
};

static inline struct decisions decisions_from_bytes(const void *bytes, size_t n)
{
    return (struct decisions){ .bytes = bytes ? bytes : (const void *)"", .left = bytes ? n : 0 };
}

static inline struct decisions decisions_from_seed(uint64_t seed)
{
    return (struct decisions){ .state = seed };
}

/* n bytes into out. */
static inline void decide_bytes(struct decisions *d, void *out, size_t n)
{
    uint8_t *to = out;

    if (d->bytes) {
        const size_t given = n < d->left ? n : d->left;

        memset(to, 0, n);
        memcpy(to, d->bytes, given);
        d->bytes += given;
        d->left -= given;
        return;
    }
    for (uint64_t word = 0; n; n--, word >>= 8) {
        if ((to - (uint8_t *)out) % 8 == 0) {
            word = d->state += 0x9e3779b97f4a7c15u;
            word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
            word = (word ^ word >> 27) * 0x94d049bb133111ebu;
            word ^= word >> 31;
        }
        *to++ = (uint8_t)word;
    }
}

/* 0 .. n - 1. One choice takes no bytes, 256 take one. */
static inline uint64_t decide(struct decisions *d, uint64_t n)
{
    uint8_t bytes[8] = { 0 };
    uint64_t value = 0;

    if (n < 2)
        return 0;
    decide_bytes(d, bytes, n <= 0x100 ? 1 : n <= 0x10000 ? 2 : 8);
    for (int i = 8; i--;)
        value = value << 8 | bytes[i];
    return value % n;
}

#endif
