/* Least squares of relative differences: parameters are found again, and noise is evened out. */
#include "trainer/plan/planning.h"

#include "tests/check.h"

#include <math.h>

enum { POINTS = 4 };
static const double places[POINTS] = { 1, 2, 4, 8 };

/* a + b x */
static int line(void *context, const double *parameters, double *predicted, struct error *e)
{
    (void)e;
    ++*(int *)context;
    for (int i = 0; i < POINTS; i++)
        predicted[i] = parameters[0] + parameters[1] * places[i];
    return OK;
}

static void near(double value, double wanted, double within)
{
    if (!(fabs(value / wanted - 1) <= within))
        fail_msg("%.17g, wanted %.17g", value, wanted);
}

static void test_exact(void **state)
{
    const double measured[POINTS] = { 7.25, 7.5, 8, 9 };
    double p[2] = { 1000, 1e-4 };
    int calls = 0;

    (void)state;
    assert_int_equal(fit_least_squares(p, 2, line, &calls, measured, POINTS, NULL), OK);
    near(p[0], 7, 1e-5);
    near(p[1], 0.25, 1e-4);
    assert_true(calls < 200);
}

/* The best constant for 1, 2, 4, 8 by ratios is their geometric mean. */
static int constant(void *context, const double *parameters, double *predicted, struct error *e)
{
    (void)context;
    (void)e;
    for (int i = 0; i < POINTS; i++)
        predicted[i] = parameters[0];
    return OK;
}

static void test_relative(void **state)
{
    double p = 1;

    (void)state;
    assert_int_equal(fit_least_squares(&p, 1, constant, NULL, places, POINTS, NULL), OK);
    near(p, sqrt(8), 1e-6);
}

/* The second parameter changes nothing. */
static void test_idle_parameter(void **state)
{
    double p[2] = { 1, 3 };

    (void)state;
    assert_int_equal(fit_least_squares(p, 2, constant, NULL, places, POINTS, NULL), OK);
    near(p[0], sqrt(8), 1e-6);
    near(p[1], 3, 1e-6);
}

static int fails(void *context, const double *parameters, double *predicted, struct error *e)
{
    (void)context;
    (void)parameters;
    (void)predicted;
    return error_set(e, ERR_NOMEM, "no memory");
}

static void test_errors(void **state)
{
    double p[3] = { 1, 1, 1 };
    struct error e = { 0 };

    (void)state;
    assert_int_equal(fit_least_squares(p, 2, line, NULL, places, 1, &e), ERR_ARG);
    assert_string_equal(e.message, "2 parameters cannot be found from 1 measurements");
    assert_int_equal(fit_least_squares(p, 1, fails, NULL, places, POINTS, &e), ERR_NOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_relative),
        cmocka_unit_test(test_idle_parameter),
        cmocka_unit_test(test_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
