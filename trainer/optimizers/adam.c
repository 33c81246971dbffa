#include "trainer/optimizers/adam.h"

#include "base/vector.h"

#include <math.h>

#define EPSILON 1e-8f /* outside the root and not corrected, as in TensorFlow 1 */

VECTOR_CLONES void adam_update(struct optimizer_step s, const real *restrict sum, real *restrict w,
                               real *restrict first, real *restrict second, size_t count)
{
    const real rate = (real)(s.rate * sqrt(1 - pow(ADAM_BETA2, s.updates)) / (1 - pow(ADAM_BETA1, s.updates)));

    for (size_t i = 0; i < count; i++) {
        real g = optimizer_gradient(&s, sum[i], w[i]);

        first[i] += (real)(1 - ADAM_BETA1) * (g - first[i]);
        second[i] += (real)(1 - ADAM_BETA2) * (g * g - second[i]);
        w[i] -= rate * first[i] / ((real)sqrt((double)second[i]) + (real)EPSILON);
    }
}

const struct optimizer_rule optimizer_rule_adam = {
    .slots = { "Adam", "Adam_1" },
    .beta1 = ADAM_BETA1,
    .beta2 = ADAM_BETA2,
    .all_rows = 1,
    .update = adam_update,
};
