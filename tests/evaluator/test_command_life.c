/* When a command is told to end, killed and over: each rule by facts and times, without processes. */
#include "evaluator/score/command_process.h"

#include "tests/check.h"

#include <math.h>

static const struct command_facts runs = { 0, 0, 1 }, silent = { 0, 0, 0 }, ended = { 0, 1, 1 }, read_out = { 0, 1, 0 },
                                  gone = { 1, 1, 1 }, gone_read_out = { 1, 1, 0 }, guard_gone = { 1, 0, 1 };

static struct command_life begun(double now)
{
    struct command_life l = { .late = 1, .leaving = 1 }; /* of a command before it */

    command_life_begin(&l, now);
    return l;
}

static enum command_act look(struct command_life *l, const struct command_facts *facts, double timeout, double now)
{
    return command_life_look(l, facts, timeout, now);
}

/* As long as it runs, nothing is due but its timeout; that its output ended says nothing. */
static void test_runs(void **state)
{
    struct command_life l = begun(100);

    (void)state;
    assert_true(isinf(command_life_due(&l, 0, 1e9)));
    assert_int_equal(look(&l, &runs, 0, 1e9), COMMAND_WAIT);
    assert_int_equal(look(&l, &silent, 0, 1e9), COMMAND_WAIT);
    assert_true(command_life_due(&l, 10, 103) == 7);
    assert_int_equal(look(&l, &runs, 10, 109.9), COMMAND_WAIT);
    assert_int_equal(l.late, 0);
}

/* SIGTERM once, SIGKILL when the grace is over, and no more of either. */
static void test_late(void **state)
{
    struct command_life l = begun(100);

    (void)state;
    assert_int_equal(look(&l, &runs, 10, 110), COMMAND_TERMINATE);
    assert_int_equal(l.late, 1);
    assert_true(command_life_due(&l, 10, 111) == COMMAND_GRACE_SECONDS - 1);
    assert_int_equal(look(&l, &runs, 10, 114.9), COMMAND_WAIT);
    assert_int_equal(look(&l, &runs, 10, 115), COMMAND_KILL);
    assert_true(isinf(command_life_due(&l, 10, 116)));
    assert_int_equal(look(&l, &runs, 10, 130), COMMAND_WAIT);
}

/* Who stops is in a hurry: the earlier of two ends counts, and SIGTERM is sent once. */
static void test_stop(void **state)
{
    struct command_life l = begun(100);

    (void)state;
    assert_int_equal(look(&l, &runs, 10, 110), COMMAND_TERMINATE);
    assert_int_equal(command_life_stop(&l, 1, 111), COMMAND_WAIT);
    assert_true(command_life_due(&l, 10, 111) == 1);
    assert_int_equal(look(&l, &runs, 10, 112), COMMAND_KILL);

    l = begun(100);
    assert_int_equal(command_life_stop(&l, 1, 104), COMMAND_TERMINATE);
    assert_int_equal(command_life_stop(&l, 9, 104.5), COMMAND_WAIT); /* later: no reprieve */
    assert_true(command_life_due(&l, 10, 104.5) == 0.5);
    assert_int_equal(look(&l, &runs, 10, 104.9), COMMAND_WAIT);
    assert_int_equal(look(&l, &runs, 10, 105), COMMAND_KILL);
    assert_int_equal(command_life_stop(&l, 1, 106), COMMAND_TERMINATE); /* what survived a SIGKILL is asked again */
    assert_int_equal(look(&l, &runs, 10, 107), COMMAND_KILL);

    l = begun(100); /* told to stop, and late before the grace is over */
    assert_int_equal(command_life_stop(&l, 5, 108), COMMAND_TERMINATE);
    assert_int_equal(look(&l, &runs, 10, 110), COMMAND_WAIT);
    assert_true(l.late && command_life_due(&l, 10, 110) == 3);
    l = begun(100); /* both at one look */
    assert_int_equal(command_life_stop(&l, 1, 108), COMMAND_TERMINATE);
    assert_int_equal(look(&l, &runs, 10, 110), COMMAND_KILL);
}

/* Ended in time: what it left behind has a second, or until its output is read out; it is not late any more. */
static void test_leaves(void **state)
{
    struct command_life l = begun(100);

    (void)state;
    assert_int_equal(look(&l, &ended, 10, 105), COMMAND_WAIT);
    assert_int_equal(l.leaving, 1);
    assert_true(command_life_due(&l, 10, 105.25) == 0.75); /* not its timeout */
    assert_int_equal(command_life_stop(&l, 0, 105.5), COMMAND_WAIT);
    assert_int_equal(look(&l, &ended, 0.1, 105.9), COMMAND_WAIT);
    assert_int_equal(l.late, 0);
    assert_int_equal(look(&l, &ended, 10, 106), COMMAND_KILL);
    assert_true(isinf(command_life_due(&l, 10, 106)));
    assert_int_equal(look(&l, &gone_read_out, 10, 106.1), COMMAND_OVER);

    l = begun(100);
    assert_int_equal(look(&l, &read_out, 10, 105), COMMAND_KILL); /* nobody writes: what is left is of no use */
    assert_int_equal(look(&l, &gone_read_out, 10, 105), COMMAND_OVER);
}

/* The guard is gone: others may hold its output open, which is read for a second and no longer. */
static void test_gone(void **state)
{
    struct command_life l = begun(100);

    (void)state;
    assert_int_equal(look(&l, &gone, 10, 105), COMMAND_WAIT);
    assert_true(command_life_due(&l, 10, 105.25) == 0.75);
    assert_int_equal(look(&l, &gone, 10, 105.9), COMMAND_WAIT);
    assert_int_equal(look(&l, &gone, 10, 106), COMMAND_OVER);

    l = begun(100);
    assert_int_equal(look(&l, &ended, 10, 105), COMMAND_WAIT);
    assert_int_equal(look(&l, &gone, 10, 105.5), COMMAND_WAIT); /* the second began when the command ended */
    assert_int_equal(look(&l, &gone, 10, 106), COMMAND_OVER);

    l = begun(100); /* killed with its guard, by somebody */
    assert_int_equal(look(&l, &guard_gone, 10, 105), COMMAND_WAIT);
    assert_int_equal(look(&l, &guard_gone, 10, 106), COMMAND_OVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),   cmocka_unit_test(test_late), cmocka_unit_test(test_stop),
        cmocka_unit_test(test_leaves), cmocka_unit_test(test_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
