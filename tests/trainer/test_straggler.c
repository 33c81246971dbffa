/* Which worker the others wait for, what that costs, and when it is worth a line. */
#include "trainer/timing/straggler.h"

#include "tests/check.h"

#include <math.h>
#include <string.h>

enum { WORKERS_MAX = 6, SECOND = 1000000000 };

/* `steps` steps of `step` milliseconds, of which the worker is busy so many, one of these in forward, and waits else. */
static struct phase_times times_of(int64_t steps, double busy, double step, enum phase phase)
{
    struct phase_times t = { .steps = steps };
    const double n = (double)steps * 1e6;

    t.nanoseconds[PHASE_FORWARD] = llround(n);
    t.nanoseconds[phase] += llround(n * (busy - 1));
    t.nanoseconds[PHASE_WAITING] = llround(n * (step - busy));
    return t;
}

static const struct row {
    const char *name;
    int count;
    double busy[WORKERS_MAX]; /* milliseconds of a step of 40; 0: no step */
    int worker, slow;
    double ratio, cost;
} rows[] = {
    { "alone", 1, { 40 }, -1, 0, 0, 0 },
    { "nobody", 0, { 0 }, -1, 0, 0, 0 },
    { "equals", 3, { 30, 30, 30 }, -1, 0, 0, 0 },
    { "noise", 3, { 30, 33, 37 }, -1, 0, 0, 0 },
    { "one of two", 2, { 10, 40 }, 1, 1, 4, 0.75 },
    { "the first", 3, { 40, 20, 20 }, 0, 1, 2, 0.5 },
    { "the last", 3, { 20, 20, 40 }, 2, 1, 2, 0.5 },
    { "at the limit", 3, { 20, 25, 20 }, 1, 1, 1.25, 0.125 },
    { "below the limit", 3, { 20, 24.9, 20 }, -1, 0, 0, 0 },
    { "slow but cheap", 3, { 1.5, 3, 1.5 }, -1, 0, 0, 0 },
    { "cheap at the limit", 3, { 2, 4, 2 }, 1, 1, 2, 0.05 },
    { "two of five", 5, { 20, 40, 20, 36, 20 }, 1, 2, 2, 0.5 },
    { "a steady middle", 3, { 20, 40, 24 }, 1, 1, 2, 0.4 },
    { "others differ", 4, { 10, 20, 40, 20 }, 2, 1, 2, 0.5 },
    { "one has ended", 4, { 0, 20, 40, 20 }, 2, 1, 2, 0.5 },
    { "one is left", 3, { 0, 40, 0 }, -1, 0, 0, 0 },
    { "hardly used", 3, { 1, 40, 2 }, 1, 1, 40, 0.95 },
    { "nearer to the slowest", 4, { 20, 40, 30, 20 }, 1, 2, 2, 0.5 },
    { "nearer to the median", 4, { 20, 40, 29, 20 }, 1, 1, 2, 0.275 },
    { "ties: the first", 4, { 10, 40, 40, 10 }, 1, 2, 4, 0.75 },
};

static void test_find(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int synchronous = 0; synchronous <= 1; synchronous++) {
            const struct row *row = &rows[i];
            struct phase_times workers[WORKERS_MAX];
            double room[WORKERS_MAX];
            struct straggler s;
            int worker = row->worker;

            for (int r = 0; r < row->count; r++)
                workers[r] = times_of(row->busy[r] > 0 ? 50 + 10 * r : 0, row->busy[r], 40, PHASE_BACKWARD);
            straggler_find(&s, workers, row->count, synchronous, room);
            if (!synchronous && !strcmp(row->name, "slow but cheap"))
                worker = 1; /* nobody waits for it, so what it costs does not matter */
            if (s.worker != worker)
                fail_msg("%s: %d, wanted %d", row->name, s.worker, worker);
            if (s.worker < 0 || row->worker < 0)
                continue;
            if (fabs(s.ratio - row->ratio) > 1e-6 || fabs(s.cost - (synchronous ? row->cost : 0)) > 1e-6 ||
                s.slow != row->slow)
                fail_msg("%s: %g times, costs %g, %d slow", row->name, s.ratio, s.cost, s.slow);
            assert_int_equal(s.since, -1);
        }
}

/* The phase that explains most, whichever it is. */
static void test_phase(void **state)
{
    (void)state;
    for (int p = 0; p < PHASE_COUNT; p++) {
        struct phase_times workers[] = { times_of(10, 5, 20, PHASE_BACKWARD), times_of(10, 15, 20, (enum phase)p),
                                         times_of(10, 5, 20, PHASE_BACKWARD) };
        double room[3];
        struct straggler s;

        if (p == PHASE_WAITING)
            continue;
        workers[1].nanoseconds[PHASE_BACKWARD] += 40000000; /* what all do is no loss */
        workers[1].nanoseconds[PHASE_WAITING] -= 40000000;
        straggler_find(&s, workers, 3, 1, room);
        assert_int_equal(s.worker, 1);
        assert_int_equal(s.phase, p);
        workers[1].nanoseconds[PHASE_WAITING] += 1000000000; /* of an asynchronous one, which may wait longer, too */
        straggler_find(&s, workers, 3, 0, room);
        assert_int_equal(s.phase, p);
    }
}

static void assert_text(const struct straggler *s, int past, const char *wanted)
{
    struct buffer b = BUFFER_EMPTY;

    straggler_text(&b, s, "rank 2 on host b", past);
    assert_string_equal(buffer_text(&b), wanted);
    buffer_release(&b);
}

static void test_text(void **state)
{
    struct straggler s = { 2, 1, 1.84, 0.312, PHASE_BACKWARD, 400 };

    (void)state;
    assert_text(&s, 0,
                "rank 2 on host b is 1.8 times slower than the others since step 400, mostly in backward; waiting for "
                "it costs 31 % of the time");
    s.since = -1;
    s.slow = 2;
    assert_text(&s, 1,
                "rank 2 on host b was 1.8 times slower than the others, mostly in backward, and 1 more was slow; "
                "waiting for them cost 31 % of the time");
    s.slow = 3;
    s.cost = 0;
    s.phase = PHASE_INPUT;
    assert_text(&s, 0, "rank 2 on host b is 1.8 times slower than the others, mostly in input, and 2 more are slow");
}

/* ---- while a run goes on ----------------------------------------------------------------------------------------- */

/* A window of `seconds`, in which worker `slow` (-1: none) is busy `ratio` times as long as the others. */
static enum straggler_news window(struct straggler_watch *w, int slow, double ratio, double seconds, int64_t steps,
                                  int64_t step, struct straggler *out)
{
    struct phase_times times[WORKERS_MAX];
    const double length = seconds * 1e3 / (double)steps;

    for (int r = 0; r < w->workers; r++)
        times[r] = times_of(steps, length / ratio * (r == slow ? ratio : 1), length, PHASE_BACKWARD);
    return straggler_watch_add(w, times, step, out);
}

static void test_watch(void **state)
{
    struct straggler_watch w;
    struct straggler s;
    int64_t step = 100;

    (void)state;
    assert_int_equal(straggler_watch_init(&w, 3, 1, step, NULL), OK);
    for (int i = 0; i < 5; i++)
        assert_int_equal(window(&w, -1, 1.5, 2, 10, step += 10, &s), STRAGGLER_NOTHING);
    /* Slow in two looks, then not: a hiccup. Another one in between: neither. */
    assert_int_equal(window(&w, 2, 3, 2, 10, step += 10, &s), STRAGGLER_NOTHING);
    assert_int_equal(window(&w, 2, 3, 2, 10, step += 10, &s), STRAGGLER_NOTHING);
    assert_int_equal(window(&w, -1, 3, 2, 10, step += 10, &s), STRAGGLER_NOTHING);
    assert_int_equal(window(&w, 2, 3, 2, 10, step += 10, &s), STRAGGLER_NOTHING);
    assert_int_equal(window(&w, 1, 3, 2, 10, step += 10, &s), STRAGGLER_NOTHING);
    assert_int_equal(window(&w, 1, 3, 2, 10, step += 10, &s), STRAGGLER_NOTHING);
    assert_int_equal(window(&w, 1, 3, 2, 10, step += 10, &s), STRAGGLER_SLOW);
    assert_int_equal(s.worker, 1);
    assert_int_equal(s.since, 190);
    assert_true(fabs(s.ratio - 3) < 1e-6 && fabs(s.cost - 2.0 / 3) < 1e-6);
    /* Reported once; again when it gets worse; over when it was not slow in as many looks. */
    for (int i = 0; i < 5; i++)
        assert_int_equal(window(&w, 1, 3, 2, 10, step += 10, &s), STRAGGLER_NOTHING);
    assert_int_equal(step, 270);
    assert_int_equal(window(&w, 1, 30, 100, 10, step += 10, &s), STRAGGLER_SLOW);
    assert_int_equal(s.since, 190);
    assert_true(s.ratio > 4.5);
    for (int i = 0; i < 2; i++)
        assert_int_equal(window(&w, -1, 3, 2, 10, step += 10, &s), STRAGGLER_NOTHING);
    assert_int_equal(window(&w, -1, 3, 2, 10, step += 10, &s), STRAGGLER_OVER);
    assert_int_equal(s.worker, 1);
    assert_int_equal(s.since, 280);
    for (int i = 0; i < 5; i++)
        assert_int_equal(window(&w, -1, 3, 2, 10, step += 10, &s), STRAGGLER_NOTHING);
    straggler_watch_release(&w);
    straggler_watch_release(&w);
}

/* Windows shorter than a look are put together: by seconds and by steps. */
static void test_short_windows(void **state)
{
    struct straggler_watch w;
    struct straggler s;
    int64_t step = 0;
    int calls = 0;

    (void)state;
    assert_int_equal(straggler_watch_init(&w, 3, 1, step, NULL), OK);
    while (window(&w, 2, 2, 0.125, 5, step += 5, &s) != STRAGGLER_SLOW)
        calls++;
    assert_int_equal(calls, 3 * 8 - 1);
    assert_int_equal(s.since, 0);
    straggler_watch_release(&w);
    assert_int_equal(straggler_watch_init(&w, 3, 1, 0, NULL), OK);
    calls = 0;
    while (window(&w, 2, 2, 50, 1, ++step, &s) != STRAGGLER_SLOW)
        calls++;
    assert_int_equal(calls, 3 * 3 - 1);
    straggler_watch_release(&w);
}

/* A worker that has ended has no more steps; the last one is not compared with itself. */
static void test_ended(void **state)
{
    struct straggler_watch w;
    struct straggler s;

    (void)state;
    assert_int_equal(straggler_watch_init(&w, 3, 0, 0, NULL), OK);
    for (int i = 1; i <= 3; i++) {
        struct phase_times times[3] = { { .steps = 0 },
                                        times_of(10, 100, 200, PHASE_INPUT),
                                        times_of(10, 200, 200, PHASE_INPUT) };

        assert_int_equal(straggler_watch_add(&w, times, i, &s), i == 3 ? STRAGGLER_SLOW : STRAGGLER_NOTHING);
    }
    assert_int_equal(s.worker, 2);
    assert_true(s.cost == 0);
    for (int i = 4; i <= 9; i++) {
        struct phase_times times[3] = { { .steps = 0 }, { .steps = 0 }, times_of(10, 200, 200, PHASE_INPUT) };

        assert_int_equal(straggler_watch_add(&w, times, i, &s), STRAGGLER_NOTHING);
    }
    straggler_watch_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),  cmocka_unit_test(test_phase),         cmocka_unit_test(test_text),
        cmocka_unit_test(test_watch), cmocka_unit_test(test_short_windows), cmocka_unit_test(test_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
