#include "base/random.h"

#include <math.h>
#include <string.h>

void random_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3];

    for (int round = 0; round < 10; round++) {
        uint64_t p = (uint64_t)0xd2511f53u * a, q = (uint64_t)0xcd9e8d57u * c;
        uint32_t na = (uint32_t)(q >> 32) ^ b ^ k0, nc = (uint32_t)(p >> 32) ^ d ^ k1;

        b = (uint32_t)q;
        d = (uint32_t)p;
        a = na;
        c = nc;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

void random_init(struct random *r, uint64_t seed, enum random_purpose purpose, uint64_t step, uint64_t index)
{
    memset(r, 0, sizeof *r);
    /* Words 0, 1: index (its high word shared with the steps past 2^32); word 2: step; word 3: purpose, then 24 bits
     * that number the blocks of one sample. */
    r->key[0] = (uint32_t)seed;
    r->key[1] = (uint32_t)(seed >> 32);
    r->counter[0] = (uint32_t)index;
    r->counter[1] = (uint32_t)(index >> 32) ^ (uint32_t)(step >> 32) << 8;
    r->counter[2] = (uint32_t)step;
    r->counter[3] = (uint32_t)purpose << 24;
    r->used = 4;
}

uint32_t random_u32(struct random *r)
{
    if (r->used == 4) {
        uint32_t counter[4] = { r->counter[0], r->counter[1], r->counter[2], r->counter[3] | (r->draw & 0xffffffu) };

        random_philox(r->key, counter, r->block);
        r->draw++;
        r->used = 0;
    }
    return r->block[r->used++];
}

uint64_t random_below(struct random *r, uint64_t n)
{
    uint64_t limit = UINT64_MAX - UINT64_MAX % n, v;

    do {
        v = (uint64_t)random_u32(r) << 32;
        v |= random_u32(r);
    } while (v >= limit);
    return v % n;
}

double random_uniform(struct random *r)
{
    uint64_t high = random_u32(r) >> 5, low = random_u32(r) >> 6; /* 27 + 26 bits */

    return (double)(high << 26 | low) * 0x1p-53;
}

double random_normal(struct random *r)
{
    double u = 1 - random_uniform(r), v = random_uniform(r); /* u in (0, 1]: the logarithm is finite */

    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}
