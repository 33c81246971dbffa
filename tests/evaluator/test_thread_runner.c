/* A scorer in a thread of its own: what it says arrives, stopping and freeing end it, nothing leaks. */
#include "base/clock.h"
#include "evaluator/score/thread_runner.h"
#include "tests/check.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEADLINE = 600 }; /* seconds */

struct fake {
    atomic_int loads, ticks, freed;
    int fail_load, fail_evaluate, endless;
};

static int fake_load(void *context, const struct runner_job *job, enum evaluation_weights *weights, struct error *e)
{
    struct fake *f = context;

    atomic_fetch_add(&f->loads, 1);
    *weights = WEIGHTS_VARIABLES;
    return f->fail_load ? error_set(e, ERR_ARG, "%s does not fit", job->path) : OK;
}

static int fake_evaluate(void *context, scorer_tick *tick, void *tick_context, struct evaluation *out, struct error *e)
{
    struct fake *f = context;

    for (int i = 0; f->endless || i < 10; i++) {
        struct timespec pause = { 0, 100000 };

        atomic_fetch_add(&f->ticks, 1);
        if (tick(tick_context, i / 10.0))
            return SCORER_STOPPED;
        nanosleep(&pause, NULL); /* a batch */
    }
    out->examples = 7;
    assert_int_equal(evaluation_metrics_add(&out->metrics, "m", 0.5, e), OK);
    return f->fail_evaluate ? error_set(e, ERR_CORRUPT, "a bad tensor") : OK;
}

static void fake_free(void *context)
{
    struct fake *f = context;

    atomic_fetch_add(&f->freed, 1);
}

static struct runner start(struct fake *f)
{
    struct scorer scorer = { "fake", fake_load, fake_evaluate, fake_free, f };
    struct runner r;

    assert_int_equal(thread_runner_new(&r, &scorer, NULL), OK);
    assert_int_equal(r.slots, 1);
    return r;
}

static enum runner_state finish(struct runner *r, struct evaluation *out, struct error *why)
{
    double deadline = clock_monotonic() + (double)DEADLINE;
    struct runner_progress progress;
    enum runner_state state;

    while ((state = r->look(r->context, 0, &progress, out, why)) == RUNNER_BUSY) {
        struct pollfd fd = { .fd = r->descriptor, .events = POLLIN };

        assert_true(clock_monotonic() < deadline);
        poll(&fd, 1, 1000);
    }
    return state;
}

static void test_outcomes(void **state)
{
    static const struct {
        int fail_load, fail_evaluate;
        enum runner_state want;
        const char *why;
    } cases[] = {
        { 0, 0, RUNNER_DONE, "" },
        { 1, 0, RUNNER_FAILED, "c-1 does not fit" },
        { 0, 1, RUNNER_FAILED, "a bad tensor" },
        { 0, 0, RUNNER_DONE, "" },
    };
    struct runner_job job = { .path = "c-1" };
    struct fake f = { 0 };
    struct runner r = start(&f);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct evaluation v = { .examples = -1 };
        struct error why = { 0 };

        f.fail_load = cases[i].fail_load;
        f.fail_evaluate = cases[i].fail_evaluate;
        assert_int_equal(r.start(r.context, 0, &job, NULL), OK);
        assert_int_equal(finish(&r, &v, &why), cases[i].want);
        assert_string_equal(why.message, cases[i].why);
        if (cases[i].want == RUNNER_DONE) {
            assert_int_equal(v.examples, 7);
            assert_int_equal(v.weights, WEIGHTS_VARIABLES);
            assert_true(evaluation_metrics_value(&v.metrics, "m") == 0.5);
        } else {
            assert_int_equal(v.metrics.count, 0);
        }
        evaluation_release(&v);
    }
    r.free(r.context);
    assert_int_equal(atomic_load(&f.freed), 1);
}

static void test_stopping(void **state)
{
    struct runner_job job = { .path = "c-1" };
    struct fake f = { .endless = 1 };
    struct runner r = start(&f);
    struct evaluation v = { .examples = -1 };

    (void)state;
    assert_int_equal(r.start(r.context, 0, &job, NULL), OK);
    r.stop(r.context, 0);
    assert_int_equal(finish(&r, &v, NULL), RUNNER_STOPPED);
    assert_int_equal(r.start(r.context, 0, &job, NULL), OK); /* and it works again */
    while (!atomic_load(&f.ticks) || atomic_load(&f.loads) < 2)
        ;
    r.free(r.context); /* in the middle of it */
    assert_int_equal(atomic_load(&f.freed), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_outcomes), cmocka_unit_test(test_stopping) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
