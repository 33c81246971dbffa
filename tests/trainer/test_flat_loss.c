/* Losses that stay flat, and those that only seem to; and the warning of momentum with stale gradients. */
#include "trainer/advice.h"

#include "base/random.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

enum { NEVER = -1, MOST = 6000 };

typedef double curve(int64_t step); /* the loss of a step */

/* The step at which it is told, of every `stride`-th step from `first` on; told once. */
static int64_t told_at(curve *loss, int classes, int64_t first, int64_t stride)
{
    struct flat_loss f = { .classes = classes };
    int64_t told = NEVER;

    for (int64_t step = first; step < first + MOST; step += stride)
        if (flat_loss_add(&f, step, loss(step - first))) {
            assert_int_equal(told, NEVER);
            told = step;
        }
    return told;
}

static double noise(int64_t step)
{
    struct random r;

    random_init(&r, 4, RANDOM_TEST, (uint64_t)step, 0);
    return 0.1 * (random_uniform(&r) - 0.5);
}

static double guessing(int64_t step)
{
    return 2.31 + noise(step);
}

/* As 4 asynchronous workers with momentum: a moment of learning, then none. */
static double relapsing(int64_t step)
{
    return step < 90 ? 2.31 - 0.003 * (double)step : 2.32 + noise(step);
}

static double learning(int64_t step)
{
    return 0.3 + 2 * exp(-(double)step / 200) + noise(step);
}

/* From far above down to guessing's loss, and below it later. */
static double from_above(int64_t step)
{
    return 1.5 + 20 * exp(-(double)step / 150) + noise(step);
}

/* Slowly, but it falls: 1 % in 400 steps and more. */
static double slow(int64_t step)
{
    return 2.3026 - 0.0001 * (double)step;
}

/* Still, but better than guessing. */
static double plateau(int64_t step)
{
    return 2.2 + noise(step);
}

static double diverged(int64_t step)
{
    return step < 300 ? 2.0 : 1e6;
}

static void test_curves(void **state)
{
    (void)state;
    assert_int_equal(told_at(guessing, 10, 1, 1), 500);
    assert_int_equal(told_at(guessing, 10, 70001, 1), 70500); /* resumed: steps of this run count */
    assert_int_equal(told_at(relapsing, 10, 1, 1), 500);
    assert_int_equal(told_at(relapsing, 10, 1, 4), 501);              /* a worker of four */
    assert_int_equal(told_at(guessing, 10, 1, 50), 20 * 5 * 50 - 49); /* one of many: 20 losses a window */
    assert_int_equal(told_at(diverged, 10, 1, 1), 500);
    assert_int_equal(told_at(learning, 10, 1, 1), NEVER);
    assert_int_equal(told_at(from_above, 10, 1, 1), NEVER);
    assert_int_equal(told_at(slow, 10, 1, 1), NEVER);
    assert_int_equal(told_at(plateau, 10, 1, 1), NEVER);
    assert_int_equal(told_at(guessing, 100, 1, 1), NEVER); /* 2.3 is good among 100 classes */
    assert_int_equal(told_at(guessing, 1, 1, 1), NEVER);
}

/* What is not finite ends the training elsewhere, and does not spoil the mean here. */
static void test_not_finite(void **state)
{
    struct flat_loss f = { .classes = 10 };

    (void)state;
    for (int64_t step = 1; step < 500; step++)
        assert_int_equal(flat_loss_add(&f, step, step == 7 ? NAN : 2.4), 0);
    assert_int_equal(flat_loss_add(&f, 500, INFINITY), 0);
    assert_int_equal(flat_loss_add(&f, 501, 2.4), 1);
}

static void test_text(void **state)
{
    struct flat_loss f = { .classes = 10, .first = 100, .means[FLAT_LOSS_WINDOWS - 1] = 2.3166 };
    char text[320], small[9];

    (void)state;
    assert_string_equal(flat_loss_text(&f, 600, 0, text, sizeof text),
                        "the loss is 2.317 after 500 steps and does not fall: no better than guessing among 10 classes "
                        "(2.303); stop, and try a lower --learning-rate, or --warmup");
    assert_non_null(strstr(flat_loss_text(&f, 600, 1, text, sizeof text), "try --momentum 0, or a tenth"));
    assert_string_equal(flat_loss_text(&f, 600, 0, small, sizeof small), "the loss");
}

static void test_stale_momentum(void **state)
{
    static const struct {
        int workers;
        double momentum;
        int warns;
    } rows[] = { { 1, 0.99, 0 }, { 2, 0.9, 0 }, { 3, 0.9, 1 }, { 4, 0.9, 1 }, { 4, 0.89, 0 }, { 64, 0, 0 } };
    char text[400];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(stale_momentum_text(rows[i].workers, rows[i].momentum, text, sizeof text) != NULL,
                         rows[i].warns);
    assert_ptr_equal(stale_momentum_text(4, 0.9, text, sizeof text), text);
    assert_non_null(strstr(text, "with 4 asynchronous workers gradients are about 3 updates old, and momentum 0.9"));
    assert_true(strlen(text) + 1 < sizeof text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_curves),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_stale_momentum),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
