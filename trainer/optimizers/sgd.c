#include "trainer/optimizers/optimizer_rule.h"

#include "base/vector.h"

VECTOR_CLONES static void sgd_update(struct optimizer_step s, const real *restrict sum, real *restrict w,
                                     real *restrict first, real *restrict second, size_t count)
{
    const real rate = (real)s.rate;

    (void)first;
    (void)second;
    for (size_t i = 0; i < count; i++)
        w[i] -= rate * optimizer_gradient(&s, sum[i], w[i]);
}

const struct optimizer_rule optimizer_rule_sgd = { .still = 1, .update = sgd_update };
