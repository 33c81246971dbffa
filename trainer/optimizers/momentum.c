#include "trainer/optimizers/optimizer_rule.h"

#include "base/vector.h"

VECTOR_CLONES static void momentum_update(struct optimizer_step s, const real *restrict sum, real *restrict w,
                                          real *restrict first, real *restrict second, size_t count)
{
    const real rate = (real)s.rate, momentum = (real)s.momentum;

    (void)second;
    for (size_t i = 0; i < count; i++) {
        first[i] = momentum * first[i] + optimizer_gradient(&s, sum[i], w[i]);
        w[i] -= rate * first[i];
    }
}

const struct optimizer_rule optimizer_rule_momentum = { .slots = { "Momentum" }, .update = momentum_update };
