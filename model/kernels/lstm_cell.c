#include "model/kernels/lstm_cell.h"

#include "base/vector.h"

#include <math.h>
#include <stdint.h>

#ifdef REAL_DOUBLE

VECTOR_BODY void sigmoid(size_t width, real *x)
{
    for (size_t k = 0; k < width; k++)
        x[k] = 1 / (1 + exp(-x[k]));
}

VECTOR_BODY void hyperbolic_tangent(size_t width, real *x)
{
    for (size_t k = 0; k < width; k++)
        x[k] = tanh(x[k]);
}

#else

union number {
    float value;
    uint32_t bits;
};

/* exp(r + n ln 2) = 2^n exp(r). The sum of 1.5 * 2^23 and a number is rounded to a whole one, which is in its low bits.
 * ln 2 is in two parts, the first of which has few enough bits for an exact product with n. */
struct power {
    float scale; /* 2^n */
    float part;  /* exp(r) - 1, by Taylor's series to r^7; |r| <= ln(2) / 2, so the rest is below 6e-9 */
};

VECTOR_BODY struct power power_of_e(float x)
{
    const float whole = 12582912;
    const union number rounded = { x * 1.44269504F + whole };
    const float n = rounded.value - whole;
    const float r = x - n * 0.693359375F + n * 2.12194440e-4F, r2 = r * r;
    const union number scale = { .bits = (rounded.bits + 127) << 23 };
    /* in pairs of terms, which do not wait for each other */
    const float low = r * (1.0F / 6) + 0.5F, middle = r * (1.0F / 120) + 1.0F / 24;
    const float high = r * (1.0F / 5040) + 1.0F / 720;

    return (struct power){ scale.value, r + r2 * (low + r2 * (middle + r2 * high)) };
}

/* Loops of their own, or the compiler makes branches of comparisons, and computes both. NaN, which compares as nothing,
 * stays. */
VECTOR_BODY void bound_above(size_t width, float most, float *x)
{
    for (size_t k = 0; k < width; k++)
        x[k] = x[k] > most ? most : x[k];
}

VECTOR_BODY void bound_below(size_t width, float least, float *x)
{
    for (size_t k = 0; k < width; k++)
        x[k] = x[k] < least ? least : x[k];
}

VECTOR_BODY void sigmoid(size_t width, float *x)
{
    bound_above(width, 87, x);
    bound_below(width, -87, x);
    for (size_t k = 0; k < width; k++) {
        const struct power e = power_of_e(-x[k]);
        x[k] = 1 / (1 + (e.scale + e.scale * e.part));
    }
}

/* Of t = exp(2 |x|) - 1: t / (t + 2), exact near 0, too; 1 from 9.02 on in float32. */
VECTOR_BODY void hyperbolic_tangent(size_t width, float *x)
{
    const uint32_t sign_bit = 0x80000000;
    uint32_t sign[VECTOR_WIDTH_MAX];

    for (size_t k = 0; k < width; k++) {
        union number size = { x[k] };
        sign[k] = size.bits & sign_bit;
        size.bits &= ~sign_bit;
        x[k] = size.value;
    }
    bound_above(width, 10, x);
    for (size_t k = 0; k < width; k++) {
        const struct power e = power_of_e(2 * x[k]);
        const float t = e.scale * e.part + (e.scale - 1);
        union number y = { t / (t + 2) };
        y.bits |= sign[k];
        x[k] = y.value;
    }
}

#endif

/* The functions of each gate, and what is stored in each place, in loops of their own, which a compiler turns into
 * vectors without asking whether places overlap. */
VECTOR_BODY void copy(size_t width, const real *from, real *to)
{
    for (size_t k = 0; k < width; k++)
        to[k] = from[k];
}

VECTOR_BODY void gate_input(size_t width, const real *gate, const real *recurrent, const real *bias, real more,
                            real *to)
{
    for (size_t k = 0; k < width; k++)
        to[k] = gate[k] + (recurrent ? recurrent[k] : 0) + bias[k] + more;
}

VECTOR_BODY void cell_body(size_t width, size_t u, real forget, const real *bias, const real *recurrent, real *gates,
                           const real *c, real *next)
{
    real i[VECTOR_WIDTH_MAX], j[VECTOR_WIDTH_MAX], f[VECTOR_WIDTH_MAX], o[VECTOR_WIDTH_MAX], new[VECTOR_WIDTH_MAX];

    gate_input(width, gates, recurrent, bias, 0, i);
    gate_input(width, gates + u, recurrent ? recurrent + u : NULL, bias + u, 0, j);
    gate_input(width, gates + 2 * u, recurrent ? recurrent + 2 * u : NULL, bias + 2 * u, forget, f);
    gate_input(width, gates + 3 * u, recurrent ? recurrent + 3 * u : NULL, bias + 3 * u, 0, o);
    sigmoid(width, i);
    hyperbolic_tangent(width, j);
    sigmoid(width, f);
    sigmoid(width, o);
    for (size_t k = 0; k < width; k++)
        new[k] = f[k] * c[k] + i[k] * j[k];
    copy(width, i, gates);
    copy(width, j, gates + u);
    copy(width, f, gates + 2 * u);
    copy(width, o, gates + 3 * u);
    copy(width, new, next);
}

VECTOR_BODY void output_body(size_t width, const real *o, const real *next, real *bent, real *h)
{
    real y[VECTOR_WIDTH_MAX], given[VECTOR_WIDTH_MAX];

    copy(width, next, y);
    hyperbolic_tangent(width, y);
    for (size_t k = 0; k < width; k++)
        given[k] = o[k] * y[k];
    copy(width, y, bent);
    copy(width, given, h);
}

VECTOR_CLONES void lstm_cell(size_t units, double forget, const real *bias, const real *recurrent, real *gates,
                             const real *c, real *next, real *bent, real *h)
{
    const size_t u = units;
    size_t k = 0;

    if (recurrent)
        VECTOR_EACH(k, u, width,
                    cell_body(width, u, (real)forget, bias + k, recurrent + k, gates + k, c + k, next + k));
    else
        VECTOR_EACH(k, u, width, cell_body(width, u, (real)forget, bias + k, NULL, gates + k, c + k, next + k));
    k = 0; /* after all cells, so that one vector need not wait for another */
    VECTOR_EACH(k, u, width, output_body(width, gates + 3 * u + k, next + k, bent + k, h + k));
}

VECTOR_BODY void gradient_body(size_t width, size_t u, real *gates, const real *before, const real *bent, const real *h,
                               real *c)
{
    real i[VECTOR_WIDTH_MAX], j[VECTOR_WIDTH_MAX], f[VECTOR_WIDTH_MAX], o[VECTOR_WIDTH_MAX], old[VECTOR_WIDTH_MAX];

    for (size_t k = 0; k < width; k++) {
        const real sum = c[k] + h[k] * gates[3 * u + k] * (1 - bent[k] * bent[k]);

        i[k] = sum * gates[u + k] * gates[k] * (1 - gates[k]);
        j[k] = sum * gates[k] * (1 - gates[u + k] * gates[u + k]);
        f[k] = sum * before[k] * gates[2 * u + k] * (1 - gates[2 * u + k]);
        o[k] = h[k] * bent[k] * gates[3 * u + k] * (1 - gates[3 * u + k]);
        old[k] = sum * gates[2 * u + k];
    }
    copy(width, i, gates);
    copy(width, j, gates + u);
    copy(width, f, gates + 2 * u);
    copy(width, o, gates + 3 * u);
    copy(width, old, c);
}

VECTOR_CLONES void lstm_cell_gradient(size_t units, real *gates, const real *before, const real *bent, const real *h,
                                      real *c)
{
    const size_t u = units;
    size_t k = 0;

    VECTOR_EACH(k, u, width, gradient_body(width, u, gates + k, before + k, bent + k, h + k, c + k));
}
