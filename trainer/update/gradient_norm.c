#include "trainer/update/gradient_norm.h"

#include <math.h>

void gradient_norm_add(struct gradient_norm *g, const real *values, size_t count)
{
    double sums[GRADIENT_NORM_BLOCK], sum;
    uint64_t bit = 0;

    for (size_t i = 0; i < count; i++)
        sums[i] = (double)values[i] * (double)values[i];
    /* Neighbours, level by level; one that has none waits for the next level. */
    for (size_t left = count; left > 1; left = (left + 1) / 2) {
        for (size_t i = 0; i < left / 2; i++)
            sums[i] = sums[2 * i] + sums[2 * i + 1];
        if (left % 2)
            sums[left / 2] = sums[left - 1];
    }
    sum = count ? sums[0] : 0;
    /* As a binary counter carries. */
    for (; g->blocks >> bit & 1; bit++)
        sum = g->sums[bit] + sum;
    g->sums[bit] = sum;
    g->blocks++;
}

double gradient_norm_squares(const struct gradient_norm *g)
{
    double sum = 0;

    for (uint64_t bit = 0; bit < 64 && g->blocks >> bit; bit++)
        if (g->blocks >> bit & 1)
            sum = g->sums[bit] + sum;
    return sum;
}

double gradient_norm_factor(double norm, double limit)
{
    return limit / fmax(limit, norm);
}
