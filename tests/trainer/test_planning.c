/*
 * Plans from published figures: the parameters are fitted to the first measurements of a series, and the others must be
 * predicted. Sources: seed-models.md, sections 5 (ResNet-50) and 3 (a CNN of 1,014,922 weights).
 */
#include "trainer/plan/planning.h"

#include "tests/check.h"

#include <math.h>
#include <string.h>

#define RESNET50 25557032
#define CNN 1014922

static struct measured parsed(const char *text)
{
    struct error e = { 0 };
    struct measured m;

    if (measured_parse(&m, text, strlen(text), "published", &e) < 0)
        fail_msg("%s", e.message);
    return m;
}

/* On machines of which nothing but the measurements is known. */
static struct planning setting(size_t parameters, double batch)
{
    return (struct planning){
        .work = { .elements = parameters + 1, .forward = 1, .backward = 2, .batch = batch, .bucket_bytes = 61440 },
        .machine = { .memory = { 0, INFINITY }, .bus = INFINITY },
        .per_host = 1,
    };
}

static const struct plan_row *row_of(const struct planning *p, const char *strategy, int workers)
{
    for (size_t i = 0; i < p->count; i++)
        if (!strcmp(p->rows[i].strategy->name, strategy) && p->rows[i].shape.workers == workers)
            return &p->rows[i];
    fail_msg("no row of %s with %d workers", strategy, workers);
    return NULL;
}

static void within(const struct planning *p, const char *strategy, int workers, double bound)
{
    const struct plan_row *r = row_of(p, strategy, workers);

    assert_false(r->fitted);
    if (!(fabs(plan_row_error(r)) <= bound))
        fail_msg("%s, %d workers: %.4g steps/s, measured %.4g", strategy, workers, r->cost.steps, r->measured);
}

/* Steps a second of each worker process; published are 1.06, 1.98 and 2.925 of all of them together. */
static void test_resnet50_on_three_machines(void **state)
{
    struct measured m = parsed("strategy,ranks,steps_per_second\n"
                               "mpi,8,1.06\nmpi,16,0.99\nmpi,24,0.975\nmirrored,8,1.26\n");
    const struct planning_free what = { .compute = 1, .bandwidth = 1, .points = 2 };
    struct planning p = setting(RESNET50, 128);
    struct buffer about = BUFFER_EMPTY;

    (void)state;
    p.per_host = 8;
    assert_int_equal(planning_fit(&p, &what, &m, NULL, 0, &about, NULL), OK);
    assert_int_equal(p.count, 4);
    assert_true(row_of(&p, "mpi", 8)->fitted && row_of(&p, "mpi", 16)->fitted);
    assert_true(fabs(plan_row_error(row_of(&p, "mpi", 16))) < 1e-4);
    within(&p, "mpi", 24, 0.03);
    assert_non_null(strstr(buffer_text(&about), "mpi, fitted to 8, 16 workers: 943.4 ms"));
    buffer_release(&about);
    planning_release(&p);
    measured_release(&m);
}

/* Speed-ups over one device, of a batch of 1024 that is divided. */
static void test_cnn_on_devices(void **state)
{
    struct measured m = parsed("strategy,ranks,steps_per_second\n"
                               "mirrored:weights=shared,1,1\nmirrored:weights=shared,2,1.85\n"
                               "mirrored:weights=shared,4,3.13\nmirrored:weights=shared,8,3.33\n"
                               "mirrored,1,1\nmirrored,2,1.90\nmirrored,4,3.33\nmirrored,8,5.07\n");
    struct planning_free what = { .compute = 1, .bandwidth = 1, .points = 3 };
    struct planning p = setting(CNN, 1024);
    struct buffer about = BUFFER_EMPTY;

    (void)state;
    p.global_batch = 1024;
    p.machine.devices = 1;
    assert_int_equal(planning_fit(&p, &what, &m, NULL, 0, &about, NULL), OK);
    within(&p, "mirrored:weights=shared", 8, 0.15);
    within(&p, "mirrored", 8, 0.15);
    planning_release(&p);
    p.rows = NULL;
    what.points = 2; /* one device and two: what the page says of that holds */
    assert_int_equal(planning_fit(&p, &what, &m, NULL, 0, &about, NULL), OK);
    within(&p, "mirrored:weights=shared", 4, 0.15);
    within(&p, "mirrored", 4, 0.15);
    assert_true(plan_row_error(row_of(&p, "mirrored:weights=shared", 8)) < -0.15);
    buffer_release(&about);
    planning_release(&p);
    measured_release(&m);
}

/* Numbers of workers that nobody measured; one measurement leaves the network unknown. */
static void test_rows(void **state)
{
    struct measured m = parsed("strategy,ranks,steps_per_second\nmpi,4,8\nmpi,2,9\nring,2,9\n");
    const struct planning_free what = { .compute = 1, .bandwidth = 1, .points = 2 };
    const int workers[] = { 16, 1, 2 };
    static const struct {
        const char *strategy;
        int workers;
    } wanted[] = { { "mpi", 1 }, { "mpi", 2 }, { "mpi", 4 }, { "mpi", 16 }, { "ring", 2 } };
    struct planning p = setting(21840, 8);
    struct buffer about = BUFFER_EMPTY;

    (void)state;
    assert_int_equal(planning_fit(&p, &what, &m, workers, 3, &about, NULL), OK);
    assert_int_equal(p.count, sizeof wanted / sizeof *wanted);
    for (size_t i = 0; i < p.count; i++) {
        assert_string_equal(p.rows[i].strategy->name, wanted[i].strategy);
        assert_int_equal(p.rows[i].shape.workers, wanted[i].workers);
    }
    assert_true(row_of(&p, "mpi", 16)->measured == 0);
    assert_true(fabs(plan_row_error(row_of(&p, "ring", 2))) < 1e-6);
    buffer_release(&about);
    planning_release(&p);
    measured_release(&m);
}

static void test_efficiency(void **state)
{
    struct planning p = setting(21840, 8);

    (void)state;
    p.machine.network.bandwidth = 1e12;
    assert_int_equal(planning_add(&p, plan_strategy_find("mpi"), 4, 0, NULL), OK);
    assert_true(fabs(p.rows[0].efficiency - 1) < 1e-3);
    p.machine.network.latency = 3; /* two of them: twice as long as a step */
    assert_int_equal(planning_add(&p, plan_strategy_find("mpi"), 4, 0, NULL), OK);
    assert_true(fabs(p.rows[1].efficiency - 1 / 3.0) < 1e-3);
    assert_int_equal(p.rows[1].cost.limit, PLAN_LATENCY);
    planning_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resnet50_on_three_machines),
        cmocka_unit_test(test_cnn_on_devices),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_efficiency),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
