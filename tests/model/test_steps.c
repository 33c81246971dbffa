/* One step of each model on fixed noise, in the float build. */
#include "tests/model/steps.h"

#include "tests/check.h"

/* float, with oneDNN or OpenBLAS, against what double computes. */
static void same_as_double(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof step_cases / sizeof *step_cases; i++) {
        struct error e = { 0 };
        const struct step_figures f = step_figures(step_cases[i].model, &e), *want = &step_cases[i].want;
        const double got[] = { f.loss,           f.gradient_norm,  f.gradient_sum,
                               f.statistics_sum, f.inference_loss, f.first_logit };
        const double wanted[] = { want->loss,           want->gradient_norm,  want->gradient_sum,
                                  want->statistics_sum, want->inference_loss, want->first_logit };

        for (size_t k = 0; k < sizeof got / sizeof *got; k++)
            if (!(fabs(got[k] - wanted[k]) <= 2e-5 * (fabs(wanted[k]) + 0.1)))
                fail_msg("%s, figure %zu: %.9g instead of %.9g %s", step_cases[i].model, k, got[k], wanted[k],
                         e.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(same_as_double) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
