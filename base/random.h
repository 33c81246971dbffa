/*
 * random.h - counter-based randomness: a value is a pure function of (seed, purpose, step, index), never of what was
 * drawn before. So neither rank, thread nor order matters, and a resumed run draws what an uninterrupted one would have
 * drawn. The function is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011);
 * key = seed, counter = (index, step, purpose and draw number).
 */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

/* a seed reproduces a run only with the same values: add at the end only */
enum random_purpose {
    RANDOM_INITIAL = 1, /* step: variable number, index: element */
    RANDOM_SHUFFLE = 2, /* step: epoch, index: place */
    RANDOM_AUGMENT = 3, /* step: global step, index: global sample index */
    RANDOM_DROPOUT = 4, /* step: global step, index: global sample index */
    RANDOM_TEST = 5,
    RANDOM_SYNTHETIC = 7, /* step: part of the data, input or labels; index: image */
};

/* A sequence of draws for one (seed, purpose, step, index). Init, then draw; may be copied. */
struct random {
    uint32_t key[2], counter[4], block[4];
    int used;      /* words of block already used */
    uint32_t draw; /* number of the next block */
};

void random_init(struct random *r, uint64_t seed, enum random_purpose purpose, uint64_t step, uint64_t index);
uint32_t random_u32(struct random *r);
uint64_t random_below(struct random *r, uint64_t n); /* uniform in [0, n), n > 0, without modulo bias */
double random_uniform(struct random *r);             /* uniform in [0, 1), 53 bits */
double random_normal(struct random *r);              /* mean 0, deviation 1 (Box-Muller, one of the pair) */

/* One Philox block, for tests against the published vectors. */
void random_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);

#endif
