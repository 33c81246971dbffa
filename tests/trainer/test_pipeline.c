/* Tasks on links and processors: what waits for what, and for how long. */
#include "trainer/plan/pipeline.h"

#include "tests/check.h"

#include <math.h>

enum { FIRST, SECOND, RESOURCES };

static double end_of(struct pipeline *p)
{
    double end;

    assert_int_equal(pipeline_run(p, &end, NULL), OK);
    pipeline_free(p);
    return end;
}

static struct pipeline *fresh(void)
{
    struct pipeline *p = NULL;

    assert_int_equal(pipeline_new(&p, RESOURCES, NULL), OK);
    return p;
}

static void near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-12))
        fail_msg("%.17g, wanted %.17g", value, wanted);
}

static void test_one_after_the_other(void **state)
{
    struct pipeline *p = fresh();
    size_t at;

    (void)state;
    at = pipeline_then(p, FIRST, 2, 0.5, PIPELINE_NOTHING);
    pipeline_then(p, SECOND, 3, 0.25, at);
    near(end_of(p), 2 + 0.5 + 3 + 0.25);
    near(end_of(fresh()), 0);
}

static void test_a_resource_serves_in_order(void **state)
{
    struct pipeline *p = fresh();
    size_t late, early;

    (void)state;
    late = pipeline_then(p, -1, 0, 5, PIPELINE_NOTHING);
    early = pipeline_then(p, -1, 0, 1, PIPELINE_NOTHING);
    pipeline_then(p, FIRST, 3, 0, late); /* ready at 5, served at 7 */
    pipeline_then(p, FIRST, 6, 0, early);
    near(end_of(p), 1 + 6 + 3);
}

/* Two stages of three pieces: the second stage of one goes on beside the first of the next. */
static void test_a_pipeline(void **state)
{
    struct pipeline *p = fresh();

    (void)state;
    for (int i = 0; i < 3; i++)
        pipeline_then(p, SECOND, 2, 0, pipeline_then(p, FIRST, 1, 0, PIPELINE_NOTHING));
    near(end_of(p), 1 + 3 * 2);
}

static void test_two_resources(void **state)
{
    struct pipeline *p = fresh();
    const struct pipeline_task message = { .resource = { FIRST, SECOND },
                                           .duration = { 1, 4 },
                                           .delay = 0.5,
                                           .after = { PIPELINE_NOTHING, PIPELINE_NOTHING } };
    struct pipeline_task both = { .resource = { -1, -1 } };

    (void)state;
    both.after[0] = pipeline_add(p, &message);
    pipeline_then(p, FIRST, 2, 0, PIPELINE_NOTHING);                  /* from 1 on */
    both.after[1] = pipeline_then(p, SECOND, 2, 0, PIPELINE_NOTHING); /* from 4 to 6 */
    both.delay = 1;                                                   /* after 4.5 and 6 */
    pipeline_add(p, &both);
    near(end_of(p), 7);
}

/* Ready at the same time, the one that was added first is served first; many of them keep their order. */
static void test_many(void **state)
{
    struct pipeline *p = fresh();
    size_t last = PIPELINE_NOTHING;

    (void)state;
    for (int i = 0; i < 1000; i++)
        last = pipeline_then(p, FIRST, 1, 0, PIPELINE_NOTHING);
    pipeline_then(p, SECOND, 1, 0, last); /* the last of FIRST ends at 1000 */
    near(end_of(p), 1001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_after_the_other),
        cmocka_unit_test(test_a_resource_serves_in_order),
        cmocka_unit_test(test_a_pipeline),
        cmocka_unit_test(test_two_resources),
        cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
