#include "model/kernels/channels.h"

#include <string.h>

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* A run of channels ends where either layout ends it. */
void channels_copy(size_t pixels, size_t count, const real *from, size_t from_block, size_t from_first, real *to,
                   size_t to_block, size_t to_first)
{
    for (size_t c = 0, run; c < count; c += run) {
        const size_t f = from_first + c, t = to_first + c, f_place = f % from_block, t_place = t % to_block;
        const real *in = from + (f - f_place) * pixels + f_place;
        real *out = to + (t - t_place) * pixels + t_place;

        run = smaller(count - c, smaller(from_block - f_place, to_block - t_place));
        for (size_t p = 0; p < pixels; p++)
            memcpy(out + p * to_block, in + p * from_block, run * sizeof *out);
    }
}
