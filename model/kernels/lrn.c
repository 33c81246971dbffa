#include "model/kernels/lrn.h"

#include "base/vector.h"

#include <math.h>

#ifdef REAL_DOUBLE
#define real_sqrt sqrt
#define real_pow pow
#else
#define real_sqrt sqrtf
#define real_pow powf
#endif

/* Channels are in the middle of an array with zeros on both sides, so that windows need no special ends. */
struct lrn_row {
    real value[LRN_CHANNELS_MAX + 2 * LRN_RADIUS_MAX];
};

VECTOR_BODY void gather(const struct lrn_shape *s, const real *pixel, real *row)
{
    for (size_t c = 0; c < s->channels; c += s->block)
        for (size_t k = 0; k < s->block; k++)
            row[c + k] = pixel[c / s->block * s->step + k];
}

VECTOR_BODY void scatter(const struct lrn_shape *s, const real *row, real *pixel)
{
    for (size_t c = 0; c < s->channels; c += s->block)
        for (size_t k = 0; k < s->block; k++)
            pixel[c / s->block * s->step + k] = row[c + k];
}

VECTOR_BODY void clear_ends(struct lrn_row *row, size_t channels)
{
    for (size_t i = 0; i < LRN_RADIUS_MAX; i++)
        row->value[i] = row->value[LRN_RADIUS_MAX + channels + i] = 0;
}

VECTOR_BODY void window_tile(size_t width, int radius, const real *row, real *out)
{
    real sum[VECTOR_WIDTH_MAX] = { 0 };

    for (int d = -radius; d <= radius; d++)
        for (size_t k = 0; k < width; k++)
            sum[k] += row[(ptrdiff_t)k + d];
    for (size_t k = 0; k < width; k++)
        out[k] = sum[k];
}

/* out_c = sum of row over |d - c| <= radius; row is the first channel inside a struct lrn_row. */
VECTOR_BODY void window_sums(size_t channels, int radius, const real *row, real *out)
{
    size_t c = 0;

    VECTOR_EACH(c, channels, width, window_tile(width, radius, row + c, out + c));
}

/* power_c = N_c^-beta; the tutorial's 3/4 is two square roots, which cost less than a power. */
VECTOR_BODY void powers(const struct lrn_shape *s, const real *n, real *power)
{
    if (s->beta == (real)0.75)
        for (size_t c = 0; c < s->channels; c++) {
            const real root = real_sqrt(n[c]);
            power[c] = 1 / (root * real_sqrt(root));
        }
    else
        for (size_t c = 0; c < s->channels; c++)
            power[c] = real_pow(n[c], -s->beta);
}

/* x in the middle of row, and N and N^-beta. squares is scratch. */
VECTOR_BODY void norms(const struct lrn_shape *s, const real *pixel, real *x, struct lrn_row *squares, real *n,
                       real *power)
{
    real *square = squares->value + LRN_RADIUS_MAX;

    gather(s, pixel, x);
    for (size_t c = 0; c < s->channels; c++)
        square[c] = x[c] * x[c];
    window_sums(s->channels, s->radius, square, n);
    for (size_t c = 0; c < s->channels; c++)
        n[c] = s->bias + s->alpha * n[c];
    powers(s, n, power);
}

VECTOR_CLONES void lrn_forward(const struct lrn_shape *shape, const real *x, real *y)
{
    const struct lrn_shape copy = *shape, *s = &copy; /* a local copy: no store through y can change it */
    struct lrn_row squares;
    real row[LRN_CHANNELS_MAX], n[LRN_CHANNELS_MAX], power[LRN_CHANNELS_MAX];

    clear_ends(&squares, s->channels);
    for (size_t p = 0; p < s->pixels; p++) {
        norms(s, x + p * s->block, row, &squares, n, power);
        for (size_t c = 0; c < s->channels; c++)
            row[c] *= power[c];
        scatter(s, row, y + p * s->block);
    }
}

VECTOR_CLONES void lrn_backward(const struct lrn_shape *shape, const real *x, const real *dy, real *dx)
{
    const struct lrn_shape copy = *shape, *s = &copy;
    struct lrn_row squares;
    real row[LRN_CHANNELS_MAX], n[LRN_CHANNELS_MAX], power[LRN_CHANNELS_MAX], g[LRN_CHANNELS_MAX];
    real *inner = squares.value + LRN_RADIUS_MAX;
    const real factor = 2 * s->alpha * s->beta;

    clear_ends(&squares, s->channels);
    for (size_t p = 0; p < s->pixels; p++) {
        norms(s, x + p * s->block, row, &squares, n, power);
        gather(s, dy + p * s->block, g);
        for (size_t c = 0; c < s->channels; c++)
            inner[c] = g[c] * row[c] * power[c] / n[c];
        window_sums(s->channels, s->radius, inner, n);
        for (size_t c = 0; c < s->channels; c++)
            g[c] = g[c] * power[c] - factor * row[c] * n[c];
        scatter(s, g, dx + p * s->block);
    }
}
