#include "model/kernels/activation.h"

#include "base/vector.h"

VECTOR_BODY void bias_body(size_t pixels, size_t block, size_t width, const real *restrict bias, int relu,
                           real *restrict x)
{
    for (size_t p = 0; p < pixels; p++)
        for (size_t c = 0; c < width; c++) {
            const real v = x[p * block + c] + bias[c];
            x[p * block + c] = relu && v < 0 ? 0 : v; /* not v > 0: that would lose a NaN */
        }
}

VECTOR_CLONES void activation_bias_forward(size_t pixels, size_t block, const real *bias, int relu, real *x)
{
    size_t c = 0;

    if (relu)
        VECTOR_EACH(c, block, width, bias_body(pixels, block, width, bias + c, 1, x + c));
    else
        VECTOR_EACH(c, block, width, bias_body(pixels, block, width, bias + c, 0, x + c));
}

VECTOR_BODY void bias_backward_body(size_t pixels, size_t block, size_t width, int relu, const real *restrict y,
                                    real *restrict gradient, double *restrict sum)
{
    real s[VECTOR_WIDTH_MAX] = { 0 };

    for (size_t p = 0; p < pixels; p++)
        for (size_t c = 0; c < width; c++) {
            const real g = !relu || y[p * block + c] > 0 ? gradient[p * block + c] : 0;
            gradient[p * block + c] = g;
            s[c] += g;
        }
    for (size_t c = 0; c < width; c++)
        sum[c] += s[c];
}

VECTOR_CLONES void activation_bias_backward(size_t pixels, size_t block, int relu, const real *y, real *gradient,
                                            double *sum)
{
    size_t c = 0;

    if (relu)
        VECTOR_EACH(c, block, width, bias_backward_body(pixels, block, width, 1, y + c, gradient + c, sum + c));
    else
        VECTOR_EACH(c, block, width, bias_backward_body(pixels, block, width, 0, y + c, gradient + c, sum + c));
}

VECTOR_CLONES void activation_relu_forward(size_t n, real *x)
{
    VECTOR_LOOP
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] < 0 ? 0 : x[i]; /* not x > 0: that would lose a NaN */
}

VECTOR_CLONES void activation_relu_backward(size_t n, const real *restrict y, real *restrict gradient)
{
    for (size_t i = 0; i < n; i++)
        gradient[i] = y[i] > 0 ? gradient[i] : 0;
}

VECTOR_CLONES void activation_leaky_forward(size_t n, const real *x, real slope, real *z)
{
    VECTOR_LOOP
    for (size_t i = 0; i < n; i++)
        z[i] = x[i] < 0 ? slope * x[i] : x[i];
}

VECTOR_CLONES void activation_leaky_backward(size_t n, const real *restrict x, real slope, enum leaky_rule rule,
                                             real *restrict gradient)
{
    if (rule == LEAKY_ONE_AT_ZERO)
        for (size_t i = 0; i < n; i++)
            gradient[i] = x[i] < 0 ? slope * gradient[i] : gradient[i];
    else
        for (size_t i = 0; i < n; i++)
            gradient[i] = x[i] > 0 ? gradient[i] : slope * gradient[i];
}

VECTOR_CLONES void activation_add(size_t n, const real *restrict x, real *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}
