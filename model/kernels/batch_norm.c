#include "model/kernels/batch_norm.h"

#include "base/vector.h"

#include <float.h>

#ifdef REAL_DOUBLE
static const real least = DBL_TRUE_MIN;
#else
static const real least = FLT_TRUE_MIN;
#endif

/* The slope is that of values below this: 0, but with slope 0 the least above it, so that a ReLU stops the gradient of
 * 0, too. */
static inline real bend_of(real slope)
{
    return slope == 0 ? least : 0;
}

/* Each body does `width` neighbouring channels of a plane whose pixels are `block` reals apart. */

VECTOR_BODY void sums_body(size_t pixels, size_t block, size_t width, const real *restrict x,
                           const real *restrict shift, double *restrict sum, double *restrict square)
{
    real s[VECTOR_WIDTH_MAX] = { 0 }, q[VECTOR_WIDTH_MAX] = { 0 };

    for (size_t p = 0; p < pixels; p++)
        for (size_t c = 0; c < width; c++) {
            const real d = x[p * block + c] - shift[c];
            s[c] += d;
            q[c] += d * d;
        }
    for (size_t c = 0; c < width; c++) {
        sum[c] += s[c];
        square[c] += q[c];
    }
}

VECTOR_CLONES void batch_norm_sums(size_t pixels, size_t block, const real *x, const real *shift, double *sum,
                                   double *square)
{
    size_t c = 0;

    VECTOR_EACH(c, block, width, sums_body(pixels, block, width, x + c, shift + c, sum + c, square + c));
}

VECTOR_BODY void apply_body(size_t pixels, size_t block, size_t width, const real *x, const real *restrict scale,
                            const real *restrict offset, real slope, real *z)
{
    const real bend = bend_of(slope);

    for (size_t p = 0; p < pixels; p++)
        VECTOR_LOOP
    for (size_t c = 0; c < width; c++) {
        const real y = scale[c] * x[p * block + c] + offset[c];
        z[p * block + c] = y < bend ? slope * y : y;
    }
}

VECTOR_CLONES void batch_norm_apply(size_t pixels, size_t block, const real *x, const real *scale, const real *offset,
                                    real slope, real *z)
{
    size_t c = 0;

    VECTOR_EACH(c, block, width, apply_body(pixels, block, width, x + c, scale + c, offset + c, slope, z + c));
}

VECTOR_BODY void reduce_body(size_t pixels, size_t block, size_t width, const real *restrict x,
                             const real *restrict scale, const real *restrict offset, real slope,
                             const real *restrict mean, real *restrict gradient, double *restrict sum,
                             double *restrict product)
{
    const real bend = bend_of(slope);
    real s[VECTOR_WIDTH_MAX] = { 0 }, q[VECTOR_WIDTH_MAX] = { 0 };

    for (size_t p = 0; p < pixels; p++)
        for (size_t c = 0; c < width; c++) {
            const real v = x[p * block + c], y = scale[c] * v + offset[c], g = gradient[p * block + c];
            const real dy = y < bend ? slope * g : g;
            gradient[p * block + c] = dy;
            s[c] += dy;
            q[c] += dy * (v - mean[c]);
        }
    for (size_t c = 0; c < width; c++) {
        sum[c] += s[c];
        product[c] += q[c];
    }
}

VECTOR_CLONES void batch_norm_reduce(size_t pixels, size_t block, const real *x, const real *scale, const real *offset,
                                     real slope, const real *mean, real *gradient, double *sum, double *product)
{
    size_t c = 0;

    VECTOR_EACH(c, block, width,
                reduce_body(pixels, block, width, x + c, scale + c, offset + c, slope, mean + c, gradient + c, sum + c,
                            product + c));
}

VECTOR_BODY void backward_body(size_t pixels, size_t block, size_t width, const real *restrict x, const real *dy,
                               const real *restrict scale, const real *restrict slope_x, const real *restrict constant,
                               int add, real *dx)
{
    for (size_t p = 0; p < pixels; p++)
        VECTOR_LOOP
    for (size_t c = 0; c < width; c++) {
        const size_t i = p * block + c;
        const real d = scale[c] * dy[i] + (slope_x[c] * x[i] + constant[c]);
        dx[i] = add ? dx[i] + d : d;
    }
}

VECTOR_CLONES void batch_norm_backward(size_t pixels, size_t block, const real *x, const real *dy, const real *scale,
                                       const real *slope_x, const real *constant, int add, real *dx)
{
    size_t c = 0;

    if (add)
        VECTOR_EACH(
            c, block, width,
            backward_body(pixels, block, width, x + c, dy + c, scale + c, slope_x + c, constant + c, 1, dx + c));
    else
        VECTOR_EACH(
            c, block, width,
            backward_body(pixels, block, width, x + c, dy + c, scale + c, slope_x + c, constant + c, 0, dx + c));
}
