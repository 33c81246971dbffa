#include "trainer/optimizers/optimizer_rule.h"

#include "base/vector.h"

#include <math.h>

VECTOR_CLONES static void adagrad_update(struct optimizer_step s, const real *restrict sum, real *restrict w,
                                         real *restrict first, real *restrict second, size_t count)
{
    const real rate = (real)s.rate;

    (void)second;
    for (size_t i = 0; i < count; i++) {
        const real g = optimizer_gradient(&s, sum[i], w[i]);

        first[i] += g * g;
        w[i] -= rate * g / (real)sqrt((double)first[i]);
    }
}

/* Duchi et al. 2011. The first value of the sums of squares takes the place of an epsilon, as in TensorFlow 1. */
const struct optimizer_rule optimizer_rule_adagrad = {
    .slots = { "Adagrad" },
    .initial = 0.1f,
    .still = 1,
    .update = adagrad_update,
};
