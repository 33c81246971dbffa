#include "model/kernels/lstm_cell.h"

#include <math.h>

static real sigmoid(real x, double shift)
{
    return (real)(1 / (1 + exp(-((double)x + shift))));
}

void lstm_cell(size_t units, double forget, const real *bias, real *gates, const real *c, real *next, real *bent,
               real *h)
{
    const size_t u = units;

    for (size_t k = 0; k < u; k++) {
        gates[k] = sigmoid(gates[k] + bias[k], 0);
        gates[u + k] = (real)tanh((double)(gates[u + k] + bias[u + k]));
        gates[2 * u + k] = sigmoid(gates[2 * u + k] + bias[2 * u + k], forget);
        gates[3 * u + k] = sigmoid(gates[3 * u + k] + bias[3 * u + k], 0);
        next[k] = gates[2 * u + k] * c[k] + gates[k] * gates[u + k];
        bent[k] = (real)tanh((double)next[k]);
        h[k] = gates[3 * u + k] * bent[k];
    }
}
