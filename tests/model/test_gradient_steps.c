/* The figures of steps.h, made again by the double build. With EVALBOARD_PRINT_STEPS set it prints them. */
#include "tests/model/steps.h"

#include "tests/check.h"

#include <stdio.h>

static void figures(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof step_cases / sizeof *step_cases; i++) {
        struct error e = { 0 };
        const struct step_figures f = step_figures(step_cases[i].model, &e), *want = &step_cases[i].want;
        const double got[] = { f.loss,           f.gradient_norm,  f.gradient_sum,
                               f.statistics_sum, f.inference_loss, f.first_logit };
        const double wanted[] = { want->loss,           want->gradient_norm,  want->gradient_sum,
                                  want->statistics_sum, want->inference_loss, want->first_logit };

        if (getenv("EVALBOARD_PRINT_STEPS"))
            printf("    { \"%s\", { %.12g, %.12g, %.12g, %.12g, %.12g, %.12g } },\n", step_cases[i].model, got[0],
                   got[1], got[2], got[3], got[4], got[5]);
        for (size_t k = 0; k < sizeof got / sizeof *got; k++)
            if (!(fabs(got[k] - wanted[k]) <= 1e-8 * (fabs(wanted[k]) + 1)))
                fail_msg("%s, figure %zu: %.12g instead of %.12g %s", step_cases[i].model, k, got[k], wanted[k],
                         e.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(figures) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
