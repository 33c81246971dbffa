#include "trainer/optimizers/optimizer_rule.h"

#include <math.h>

#define BETA1 0.9
#define BETA2 0.999
#define EPSILON 1e-8f /* outside the root and not corrected, as in TensorFlow 1 */

static void adam_update(struct optimizer_step s, const real *sum, real *w, real *first, real *second, size_t count)
{
    const real rate = (real)(s.rate * sqrt(1 - pow(BETA2, s.updates)) / (1 - pow(BETA1, s.updates)));

    for (size_t i = 0; i < count; i++) {
        real g = optimizer_gradient(&s, sum[i], w[i]);

        first[i] += (real)(1 - BETA1) * (g - first[i]);
        second[i] += (real)(1 - BETA2) * (g * g - second[i]);
        w[i] -= rate * first[i] / ((real)sqrt((double)second[i]) + (real)EPSILON);
    }
}

const struct optimizer_rule optimizer_rule_adam = {
    .slots = { "Adam", "Adam_1" },
    .beta1 = BETA1,
    .beta2 = BETA2,
    .update = adam_update,
};
