/* The learning rate of every step against its formulas, written out; and the text of --decay-at. */
#include "trainer/optimizers/schedule.h"

#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void assert_rate(const struct schedule *s, double base, int64_t step, double want)
{
    const double got = schedule_rate(s, base, step);

    if (!(fabs(got - want) <= 1e-14 * fabs(want)))
        fail_msg("the rate of step %lld is %.17g, wanted %.17g", (long long)step, got, want);
}

static const struct rate_curve at_10 = { .drops = 1, .at = { 10 }, .factors = { 0.5 } };

static double halved_at_10(double base, int64_t step)
{
    return step < 10 ? base : base * 0.5;
}

static void test_constant(void **state)
{
    const struct schedule s = { 0 };

    (void)state;
    for (int64_t t = 0; t < 3; t++)
        assert_true(schedule_rate(&s, 0.1, t) == 0.1);
    assert_true(schedule_full_rate(&s, 0.1) == 0.1);
}

/* The recipe's own bits without options, and of the scaled rate with them. */
static void test_recipe(void **state)
{
    struct schedule s = { .recipe = &at_10 };

    (void)state;
    for (int64_t t = 8; t < 12; t++)
        assert_true(schedule_rate(&s, 0.3, t) == halved_at_10(0.3, t));
    s.workers = 5;
    for (int64_t t = 8; t < 12; t++)
        assert_true(schedule_rate(&s, 0.3, t) == halved_at_10(1.5, t));
}

/* Goyal et al.: update 0 at one worker's rate, then equal increments, update W at the scaled rate. */
static void test_scaled_warmup(void **state)
{
    (void)state;
    for (int workers = 2; workers <= 64; workers = workers * 2 + 1)
        for (int64_t w = 1; w <= 100; w += 33) {
            const struct schedule s = { .workers = workers, .warmup = w };
            const double eta = 0.05, full = eta * workers;

            for (int64_t t = 0; t < w; t++)
                assert_rate(&s, eta, t, eta + (full - eta) * (double)t / (double)w);
            assert_rate(&s, eta, 0, eta);
            assert_true(schedule_rate(&s, eta, w) == full && schedule_rate(&s, eta, w + 1) == full);
            assert_true(schedule_rate(&s, eta, w - 1) < full);
        }
}

/* Not scaled: R / (W + 1), 2 R / (W + 1), ..., so that no update is at rate 0. */
static void test_plain_warmup(void **state)
{
    (void)state;
    for (int workers = 0; workers <= 1; workers++) {
        const struct schedule s = { .workers = workers, .warmup = 9 };

        for (int64_t t = 0; t < 12; t++)
            assert_rate(&s, 0.4, t, t < 9 ? 0.04 * (double)(t + 1) : 0.4);
        assert_true(schedule_rate(&s, 0.4, 9) == 0.4);
    }
}

static void test_decays(void **state)
{
    const struct schedule s = { .recipe = &at_10, .decays = 3, .decay_at = { 5, 20, 21 }, .decay_factor = 0.1 };
    static const struct {
        int64_t step;
        double rate;
    } rows[] = {
        { 0, 1 }, { 4, 1 }, { 5, 0.1 }, { 10, 0.1 }, { 19, 0.1 }, { 20, 0.01 }, { 21, 0.001 }, { 1000, 0.001 }
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_rate(&s, 1, rows[i].step, rows[i].rate);
}

/* ResNet-50 as published for 8 workers: 0.1 for each 256 images, 5 warm-up epochs, a tenth at 30, 60 and 80 epochs. */
static void test_all_together(void **state)
{
    const int64_t epoch = 1000;
    const struct schedule s = { .workers = 8,
                                .warmup = 5 * epoch,
                                .decays = 3,
                                .decay_at = { 30 * epoch, 60 * epoch, 80 * epoch },
                                .decay_factor = 0.1 };

    (void)state;
    for (int64_t t = 0; t < 90 * epoch; t += 97) {
        double want = t < 5 * epoch ? 0.1 + 0.7 * (double)t / (double)(5 * epoch) : 0.8;

        want *= t >= 80 * epoch ? 1e-3 : t >= 60 * epoch ? 1e-2 : t >= 30 * epoch ? 1e-1 : 1;
        assert_rate(&s, 0.1, t, want);
    }
}

/* A decay within the warm-up: both factors count. */
static void test_decay_within_warmup(void **state)
{
    const struct schedule s = { .warmup = 9, .decays = 1, .decay_at = { 4 }, .decay_factor = 0.5 };

    (void)state;
    for (int64_t t = 0; t < 12; t++)
        assert_rate(&s, 1, t, (t < 9 ? 0.1 * (double)(t + 1) : 1) * (t < 4 ? 1 : 0.5));
}

static void test_parse(void **state)
{
    static const struct {
        const char *text, *sentence; /* NULL: read */
        int count;
        int64_t first, last;
    } rows[] = {
        { "100", NULL, 1, 100, 100 },
        { "1,2", NULL, 2, 1, 2 },
        { "30000,60000,9223372036854775807", NULL, 3, 30000, INT64_MAX },
        { "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32", NULL, 32, 1, 32 },
        { "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33", "more than 32",
          0, 0, 0 },
        { "", "'' in '' is not a step", 0, 0, 0 },
        { "0", "'0' in '0' is not a step", 0, 0, 0 },
        { "-5", "is not a step", 0, 0, 0 },
        { "5,", "'' in '5,' is not a step", 0, 0, 0 },
        { ",5", "is not a step", 0, 0, 0 },
        { "5,,6", "is not a step", 0, 0, 0 },
        { "5 ,6", "'5 ' in", 0, 0, 0 },
        { "1e3", "is not a step", 0, 0, 0 },
        { "9223372036854775808", "is not a step", 0, 0, 0 },
        { "000000000000000000000000000000000000005", "is not a step", 0, 0, 0 },
        { "6,5", "do not rise", 0, 0, 0 },
        { "5,5", "do not rise", 0, 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct schedule s = { .warmup = 3, .decays = 1, .decay_at = { 77 }, .decay_factor = 0.5 };
        const struct schedule before = s;
        struct error e = { 0 };
        const int rc = schedule_parse_decays(&s, rows[i].text, &e);

        if ((rc == OK) != !rows[i].sentence || (rc < 0 && !strstr(e.message, rows[i].sentence)))
            fail_msg("'%s': %d, %s", rows[i].text, rc, e.message);
        if (rc < 0) {
            assert_memory_equal(&s, &before, sizeof s);
            assert_int_equal(schedule_parse_decays(&s, rows[i].text, NULL), ERR_ARG);
            continue;
        }
        assert_int_equal(s.decays, rows[i].count);
        assert_int_equal(s.decay_at[0], rows[i].first);
        assert_int_equal(s.decay_at[s.decays - 1], rows[i].last);
        assert_true(s.warmup == 3 && s.decay_factor == 0.5);
    }
}

static void test_describe(void **state)
{
    const struct schedule all = {
        .workers = 4, .warmup = 500, .decays = 2, .decay_at = { 2000, 3000 }, .decay_factor = 0.1
    };
    const struct schedule none = { .recipe = &at_10, .workers = 1 };
    char text[100], small[8];

    (void)state;
    schedule_describe(&all, 0.05, text, sizeof text);
    assert_string_equal(text, "0.2 (0.05 x 4 workers), warm-up over 500 steps, x 0.1 at 2000, 3000");
    schedule_describe(&none, 0.05, text, sizeof text);
    assert_string_equal(text, "0.05");
    schedule_describe(&all, 0.05, small, sizeof small);
    assert_string_equal(small, "0.2 (0.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant),
        cmocka_unit_test(test_recipe),
        cmocka_unit_test(test_scaled_warmup),
        cmocka_unit_test(test_plain_warmup),
        cmocka_unit_test(test_decays),
        cmocka_unit_test(test_all_together),
        cmocka_unit_test(test_decay_within_warmup),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_describe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
