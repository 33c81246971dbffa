/* The time of each phase, and the spans of a trace, on a clock that the test moves. */
#include "trainer/timing/phase_clock.h"

#include "base/random.h"
#include "tests/check.h"

#include <string.h>

static int64_t now;
static int readings;

int64_t __wrap_clock_nanoseconds(void);
int64_t __wrap_clock_nanoseconds(void)
{
    readings++;
    return now;
}

static void test_phases(void **state)
{
    struct phase_clock c;

    (void)state;
    now = 1000;
    phase_clock_start(&c, PHASE_OTHER, NULL);
    now += 5;
    phase_clock_step(&c, 700, PHASE_INPUT);
    now += 10;
    assert_int_equal(phase_clock_enter(&c, PHASE_FORWARD), PHASE_INPUT);
    now += 20;
    assert_int_equal(phase_clock_enter(&c, PHASE_BACKWARD), PHASE_FORWARD);
    now += 40;
    assert_int_equal(phase_clock_enter_bucket(&c, PHASE_REDUCING, 3), PHASE_BACKWARD);
    assert_int_equal(phase_clock_phase(&c), PHASE_REDUCING);
    now += 80;
    assert_int_equal(phase_clock_enter(&c, PHASE_BACKWARD), PHASE_REDUCING);
    now += 160;
    phase_clock_stop(&c);
    assert_int_equal(c.times.steps, 1);
    assert_int_equal(c.times.nanoseconds[PHASE_OTHER], 5);
    assert_int_equal(c.times.nanoseconds[PHASE_INPUT], 10);
    assert_int_equal(c.times.nanoseconds[PHASE_FORWARD], 20);
    assert_int_equal(c.times.nanoseconds[PHASE_BACKWARD], 200);
    assert_int_equal(c.times.nanoseconds[PHASE_REDUCING], 80);
    assert_int_equal(phase_times_total(&c.times), 315);
    assert_int_equal(phase_times_busy(&c.times), 315);
    now += 7; /* after the stop: the last phase goes on */
    phase_clock_enter(&c, PHASE_WAITING);
    assert_int_equal(c.times.nanoseconds[PHASE_BACKWARD], 207);
    now += 3;
    phase_clock_stop(&c);
    assert_int_equal(phase_times_total(&c.times) - phase_times_busy(&c.times), 3);
    phase_clock_start(&c, PHASE_INPUT, NULL); /* anew */
    assert_int_equal(phase_times_total(&c.times) + c.times.steps, 0);
}

static void test_no_clock(void **state)
{
    (void)state;
    readings = 0;
    assert_int_equal(phase_clock_enter(NULL, PHASE_FORWARD), PHASE_FORWARD);
    assert_int_equal(phase_clock_enter_bucket(NULL, PHASE_FORWARD, 1), PHASE_FORWARD);
    phase_clock_step(NULL, 1, PHASE_INPUT);
    phase_clock_stop(NULL);
    assert_int_equal(phase_clock_times(NULL).steps, 0);
    phase_clock_phase(NULL);
    assert_int_equal(readings, 0);
}

/* One reading a change, none without; reading the times in the middle of a phase loses nothing. */
static void test_cost(void **state)
{
    struct phase_clock c;
    struct phase_times first, second, sum = { .steps = 0 };

    (void)state;
    phase_clock_start(&c, PHASE_INPUT, NULL);
    readings = 0;
    phase_clock_enter(&c, PHASE_INPUT);
    assert_int_equal(readings, 0);
    phase_clock_enter(&c, PHASE_FORWARD);
    phase_clock_enter(&c, PHASE_FORWARD);
    assert_int_equal(readings, 1);
    phase_clock_enter_bucket(&c, PHASE_FORWARD, 2);
    phase_clock_enter_bucket(&c, PHASE_FORWARD, 2);
    assert_int_equal(readings, 2);
    now += 11;
    first = phase_clock_times(&c);
    now += 31;
    phase_clock_step(&c, 1, PHASE_INPUT);
    second = phase_clock_times(&c);
    assert_int_equal(first.nanoseconds[PHASE_FORWARD], 11);
    assert_int_equal(second.nanoseconds[PHASE_FORWARD], 42);
    second = phase_times_since(&second, &first);
    assert_int_equal(second.nanoseconds[PHASE_FORWARD], 31);
    assert_int_equal(second.steps, 1);
    phase_times_add(&sum, &first);
    phase_times_add(&sum, &second);
    assert_memory_equal(&sum, &c.times, sizeof sum);
    sum.nanoseconds[PHASE_WAITING] = 3 * phase_times_total(&sum);
    assert_true(phase_times_share(&sum, PHASE_WAITING) == 0.75);
    assert_true(phase_times_share(&(struct phase_times){ .steps = 1 }, PHASE_WAITING) == 0);
}

/* Any walk through the phases: their sum is the time that passed, and spans follow each other inside their steps. */
static void test_any_walk(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        const int64_t began = now;
        int64_t at = began, steps_end = began;
        struct span_log spans;
        struct phase_clock c;
        struct random r;

        random_init(&r, seed, RANDOM_TEST, 0, 0);
        assert_int_equal(span_log_init(&spans, 5000, NULL), OK);
        phase_clock_start(&c, PHASE_OTHER, &spans);
        for (int i = 0; i < 1000; i++) {
            now += (int64_t)random_below(&r, 3000);
            switch (random_below(&r, 4)) {
            case 0: phase_clock_enter(&c, (enum phase)random_below(&r, PHASE_COUNT)); break;
            case 1:
                phase_clock_enter_bucket(&c, (enum phase)random_below(&r, PHASE_COUNT), (int)random_below(&r, 3));
                break;
            case 2: phase_clock_times(&c); break;
            default: phase_clock_step(&c, i, PHASE_INPUT); break;
            }
        }
        now += 5000;
        phase_clock_stop(&c);
        assert_int_equal(phase_times_total(&c.times), now - began);
        for (size_t i = 0; i < span_log_count(&spans); i++) {
            const struct span *s = span_log_at(&spans, i);

            if (s->kind == SPAN_STEP) {
                assert_true(s->begin >= steps_end && s->end >= at);
                steps_end = s->end;
            } else {
                assert_true(s->begin >= at && s->begin >= steps_end && s->end - s->begin >= 1000);
                at = s->end;
            }
        }
        assert_int_equal(steps_end, now);
        span_log_release(&spans);
    }
}

static void test_spans(void **state)
{
    struct span_log spans;
    struct phase_clock c;
    const struct span *s;

    (void)state;
    assert_int_equal(span_log_init(&spans, 4, NULL), OK);
    now = 0;
    phase_clock_start(&c, PHASE_OTHER, &spans);
    now = 10000;
    phase_clock_step(&c, 7, PHASE_FORWARD);
    now += 5000;
    phase_clock_enter(&c, PHASE_BACKWARD);
    now += 4000;
    phase_clock_enter(&c, PHASE_REDUCING); /* too short */
    now += 999;
    phase_clock_enter(&c, PHASE_BACKWARD);
    now += 2000;
    phase_clock_enter_bucket(&c, PHASE_WAITING, 2);
    now += 1000;
    phase_clock_stop(&c);
    assert_int_equal(span_log_count(&spans), 4); /* of five: the oldest has gone */
    s = span_log_at(&spans, 0);
    assert_int_equal(s->phase, PHASE_FORWARD);
    assert_int_equal(s->begin, 10000);
    assert_int_equal(s->end, 15000);
    assert_int_equal(s->step, 7);
    assert_int_equal(s->bucket, PHASE_NO_BUCKET);
    s = span_log_at(&spans, 1);
    assert_int_equal(s->phase, PHASE_BACKWARD);
    assert_int_equal(s->begin, 15000);
    assert_int_equal(s->end, 21999);
    s = span_log_at(&spans, 2);
    assert_int_equal(s->phase, PHASE_WAITING);
    assert_int_equal(s->bucket, 2);
    assert_int_equal(s->end, 22999);
    s = span_log_at(&spans, 3);
    assert_int_equal(s->kind, SPAN_STEP);
    assert_int_equal(s->begin, 10000);
    assert_int_equal(s->end, 22999);
    span_log_release(&spans);
    span_log_release(&spans);
}

/* What is cut, and by what, is not joined over a step, a bucket or a longer pause. */
static void test_spans_apart(void **state)
{
    static const struct span base = { 0, 2000, 5, PHASE_BACKWARD, SPAN_PHASE, 1 };
    static const struct {
        struct span second;
        size_t count;
    } rows[] = {
        { { 2999, 4000, 5, PHASE_BACKWARD, SPAN_PHASE, 1 }, 1 },
        { { 3000, 4000, 5, PHASE_BACKWARD, SPAN_PHASE, 1 }, 2 },
        { { 2000, 4000, 6, PHASE_BACKWARD, SPAN_PHASE, 1 }, 2 },
        { { 2000, 4000, 5, PHASE_BACKWARD, SPAN_PHASE, 2 }, 2 },
        { { 2000, 4000, 5, PHASE_FORWARD, SPAN_PHASE, 1 }, 2 },
        { { 0, 10, 5, PHASE_BACKWARD, SPAN_STEP, 1 }, 2 },
        { { 2000, 2999, 5, PHASE_FORWARD, SPAN_PHASE, 1 }, 1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct span_log spans;

        assert_int_equal(span_log_init(&spans, 3, NULL), OK);
        span_log_add(&spans, &base);
        span_log_add(&spans, &rows[i].second);
        assert_int_equal(span_log_count(&spans), rows[i].count);
        span_log_release(&spans);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_phases),   cmocka_unit_test(test_no_clock), cmocka_unit_test(test_cost),
        cmocka_unit_test(test_any_walk), cmocka_unit_test(test_spans),    cmocka_unit_test(test_spans_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
