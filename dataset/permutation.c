#include "dataset/permutation.h"

#include "base/random.h"

void permutation_fill(uint32_t *order, size_t count, uint64_t seed, uint32_t worker, int64_t epoch)
{
    /* "Inside-out": element i goes to an index drawn from 0..i, and the element there moves to index i. */
    for (size_t i = 0; i < count; i++) {
        struct random r;
        size_t place;

        random_init(&r, seed, RANDOM_SHUFFLE, (uint64_t)epoch, (uint64_t)worker << 32 | i);
        place = (size_t)random_below(&r, (uint64_t)i + 1);
        if (place != i)
            order[i] = order[place];
        order[place] = (uint32_t)i;
    }
}
