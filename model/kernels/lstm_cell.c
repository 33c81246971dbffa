#include "model/kernels/lstm_cell.h"

#include "base/vector.h"

#include <math.h>
#include <stdint.h>

#ifdef REAL_DOUBLE

VECTOR_BODY real sigmoid(real x)
{
    return 1 / (1 + exp(-x));
}

VECTOR_BODY real hyperbolic_tangent(real x)
{
    return tanh(x);
}

#else

/* exp(r + n ln 2) = 2^n exp(r). The sum of 1.5 * 2^23 and a number is rounded to a whole one, which is in its low bits.
 * ln 2 is in two parts, the first of which has few enough bits for an exact product with n. */
struct power {
    float scale; /* 2^n */
    float part;  /* exp(r) - 1, by Taylor's series to r^7; |r| <= ln(2) / 2, so the rest is below 6e-9 */
};

VECTOR_BODY struct power power_of_e(float x)
{
    const float whole = 12582912;
    const union {
        float value;
        uint32_t bits;
    } rounded = { x * 1.44269504F + whole };
    const float n = rounded.value - whole;
    const float r = x - n * 0.693359375F + n * 2.12194440e-4F;
    union {
        uint32_t bits;
        float value;
    } scale = { (rounded.bits + 127) << 23 };
    float p = 1.0F / 5040;

    p = p * r + 1.0F / 720;
    p = p * r + 1.0F / 120;
    p = p * r + 1.0F / 24;
    p = p * r + 1.0F / 6;
    p = p * r + 0.5F;
    return (struct power){ scale.value, r + r * r * p };
}

/* Both return NaN for NaN, which compares as nothing. */
VECTOR_BODY float sigmoid(float x)
{
    const float less = x > 87 ? 87 : x, bounded = less < -87 ? -87 : less;
    const struct power e = power_of_e(-bounded);

    return 1 / (1 + (e.scale + e.scale * e.part));
}

/* Of t = exp(2 |x|) - 1: t / (t + 2), exact near 0, too; 1 from 9.02 on in float32. */
VECTOR_BODY float hyperbolic_tangent(float x)
{
    const float size = x < 0 ? -x : x, bounded = size > 10 ? 10 : size;
    const struct power e = power_of_e(2 * bounded);
    const float t = e.scale * e.part + (e.scale - 1), y = t / (t + 2);

    return x < 0 ? -y : y;
}

#endif

/* The functions of each gate in loops of their own, which a compiler makes vectors of. */
VECTOR_BODY void cell_body(size_t width, size_t u, real forget, const real *restrict bias, const real *recurrent,
                           real *restrict gates, const real *c, real *next, real *restrict bent, real *restrict h)
{
    real i[VECTOR_WIDTH_MAX], j[VECTOR_WIDTH_MAX], f[VECTOR_WIDTH_MAX], o[VECTOR_WIDTH_MAX], new[VECTOR_WIDTH_MAX];

    for (size_t k = 0; k < width; k++) {
        i[k] = gates[k] + (recurrent ? recurrent[k] : 0) + bias[k];
        j[k] = gates[u + k] + (recurrent ? recurrent[u + k] : 0) + bias[u + k];
        f[k] = gates[2 * u + k] + (recurrent ? recurrent[2 * u + k] : 0) + bias[2 * u + k] + forget;
        o[k] = gates[3 * u + k] + (recurrent ? recurrent[3 * u + k] : 0) + bias[3 * u + k];
    }
    for (size_t k = 0; k < width; k++)
        i[k] = sigmoid(i[k]);
    for (size_t k = 0; k < width; k++)
        j[k] = hyperbolic_tangent(j[k]);
    for (size_t k = 0; k < width; k++)
        f[k] = sigmoid(f[k]);
    for (size_t k = 0; k < width; k++)
        o[k] = sigmoid(o[k]);
    for (size_t k = 0; k < width; k++)
        new[k] = f[k] * c[k] + i[k] * j[k];
    for (size_t k = 0; k < width; k++) {
        gates[k] = i[k];
        gates[u + k] = j[k];
        gates[2 * u + k] = f[k];
        gates[3 * u + k] = o[k];
        next[k] = new[k];
    }
    for (size_t k = 0; k < width; k++)
        bent[k] = hyperbolic_tangent(new[k]);
    for (size_t k = 0; k < width; k++)
        h[k] = o[k] * bent[k];
}

VECTOR_CLONES void lstm_cell(size_t units, double forget, const real *bias, const real *recurrent, real *gates,
                             const real *c, real *next, real *bent, real *h)
{
    const size_t u = units;
    size_t k = 0;

    if (recurrent)
        VECTOR_EACH(
            k, u, width,
            cell_body(width, u, (real)forget, bias + k, recurrent + k, gates + k, c + k, next + k, bent + k, h + k));
    else
        VECTOR_EACH(k, u, width,
                    cell_body(width, u, (real)forget, bias + k, NULL, gates + k, c + k, next + k, bent + k, h + k));
}

VECTOR_BODY void gradient_body(size_t width, size_t u, real *restrict gates, const real *restrict before,
                               const real *restrict bent, const real *restrict h, real *restrict c)
{
    for (size_t k = 0; k < width; k++) {
        const real i = gates[k], j = gates[u + k], f = gates[2 * u + k], o = gates[3 * u + k];
        const real sum = c[k] + h[k] * o * (1 - bent[k] * bent[k]);

        gates[k] = sum * j * i * (1 - i);
        gates[u + k] = sum * i * (1 - j * j);
        gates[2 * u + k] = sum * before[k] * f * (1 - f);
        gates[3 * u + k] = h[k] * bent[k] * o * (1 - o);
        c[k] = sum * f;
    }
}

VECTOR_CLONES void lstm_cell_gradient(size_t units, real *gates, const real *before, const real *bent, const real *h,
                                      real *c)
{
    const size_t u = units;
    size_t k = 0;

    VECTOR_EACH(k, u, width, gradient_body(width, u, gates + k, before + k, bent + k, h + k, c + k));
}
