/* When it ends, and when `finished` and `stopped` count. */
#include "evaluator/ending.h"

#include "tests/check.h"

#include <stdio.h>
#include <string.h>

static void test_reasons(void **state)
{
    static const struct {
        const char *name;
        struct ending_rules rules;
        struct ending_facts facts;
        const char *want;
    } cases[] = {
        { "nothing", { .until_step = -1 }, { .highest_step = 900 }, NULL },
        { "once", { .once = 1, .until_step = -1 }, { .highest_step = -1 }, "--once" },
        { "below the step", { .until_step = 700 }, { .highest_step = 699 }, NULL },
        { "the step", { .until_step = 700 }, { .highest_step = 700 }, "--until-step" },
        { "beyond the step", { .until_step = 700 }, { .highest_step = 800 }, "--until-step" },
        { "step 0", { .until_step = 0 }, { .highest_step = -1 }, NULL },
        { "step 0 evaluated", { .until_step = 0 }, { .highest_step = 0 }, "--until-step" },
        { "not idle long enough", { .until_step = -1, .idle_timeout = 5 }, { .idle_seconds = 4.9 }, NULL },
        { "idle", { .until_step = -1, .idle_timeout = 5 }, { .idle_seconds = 5 }, "--idle-timeout" },
        { "done file", { .until_step = -1, .done_file = "x" }, { .done_file_there = 1 }, "--done-file" },
        { "process gone", { .until_step = -1, .pid = 7 }, { .process_gone = 1 }, "--pid" },
        { "count", { .until_step = -1, .max_evaluations = 3 }, { .evaluations = 3 }, "--max-evaluations" },
        { "not the count", { .until_step = -1, .max_evaluations = 3 }, { .evaluations = 2 }, NULL },
        { "finished", { .until_step = -1 }, { .training = TRAINING_FINISHED }, "training.json says finished" },
        { "finished, but for ever", { .until_step = -1, .forever = 1 }, { .training = TRAINING_FINISHED }, NULL },
        { "finished, not stopped",
          { .until_step = -1, .wait_for_restart = 1 },
          { .training = TRAINING_FINISHED },
          "training.json says finished" },
        { "stopped", { .until_step = -1 }, { .training = TRAINING_STOPPED }, "training.json says stopped" },
        { "stopped, but for ever", { .until_step = -1, .forever = 1 }, { .training = TRAINING_STOPPED }, NULL },
        { "stopped, to be restarted",
          { .until_step = -1, .wait_for_restart = 1 },
          { .training = TRAINING_STOPPED },
          NULL },
        { "for ever, but idle",
          { .until_step = -1, .forever = 1, .idle_timeout = 1 },
          { .idle_seconds = 2 },
          "--idle-timeout" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *reason = ending_reason(&cases[i].rules, &cases[i].facts);

        if (!reason != !cases[i].want || (reason && !strstr(reason, cases[i].want)))
            fail_msg("%s: %s", cases[i].name, reason ? reason : "none");
    }
}

/* All hold; the one that --help lists first is the reason, and without it the next one. */
static void test_order(void **state)
{
    struct ending_rules rules = {
        .once = 1, .until_step = 7, .max_evaluations = 1, .idle_timeout = 1, .done_file = "x", .pid = 7
    };
    struct ending_facts facts = { .training = TRAINING_FINISHED,
                                  .done_file_there = 1,
                                  .process_gone = 1,
                                  .idle_seconds = 2,
                                  .highest_step = 7,
                                  .evaluations = 1 };

    (void)state;
    assert_non_null(strstr(ending_reason(&rules, &facts), "--max-evaluations"));
    rules.max_evaluations = 0;
    assert_non_null(strstr(ending_reason(&rules, &facts), "--once"));
    rules.once = 0;
    assert_non_null(strstr(ending_reason(&rules, &facts), "--until-step"));
    rules.until_step = -1;
    assert_non_null(strstr(ending_reason(&rules, &facts), "--done-file"));
    facts.done_file_there = 0;
    assert_non_null(strstr(ending_reason(&rules, &facts), "--pid"));
    facts.process_gone = 0;
    assert_non_null(strstr(ending_reason(&rules, &facts), "--idle-timeout"));
    rules.idle_timeout = 0;
    assert_non_null(strstr(ending_reason(&rules, &facts), "training.json"));
}

static struct training_state says(const char *state, int64_t pid, double updated)
{
    struct training_state s = { .process.pid = pid, .updated = updated };

    snprintf(s.state, sizeof s.state, "%s", state);
    return s;
}

static const char *const words[] = { [TRAINING_FINISHED] = "finished", [TRAINING_STOPPED] = "stopped" };

static void seen_coming(enum ending_training_end end)
{
    struct training_state running = says("running", 1, 10), finished = says(words[end], 1, 20);
    struct ending_training t = { 0 }, from_nothing = { 0 };

    assert_int_equal(ending_training_ended(&t, &running, 0), 0);
    assert_int_equal(ending_training_ended(&t, &finished, 0.1), end);
    assert_int_equal(ending_training_ended(&from_nothing, NULL, 0), 0);
    assert_int_equal(ending_training_ended(&from_nothing, &finished, 0.1), end);
    assert_int_equal(ending_training_ended(&from_nothing, NULL, 0.2), 0); /* not readable for a moment */
    assert_int_equal(ending_training_ended(&from_nothing, &finished, 0.3), end);
}

static void from_the_start(enum ending_training_end end)
{
    struct training_state old = says(words[end], 1, 20), running = says("running", 2, 30),
                          new = says(words[end], 2, 40);
    struct training_state quick = says(words[end], 3, 50), failed = says("failed", 2, 35);
    struct ending_training t = { 0 }, restarted = { 0 }, unseen = { 0 };

    assert_int_equal(ending_training_ended(&t, &old, 100), 0);
    assert_int_equal(ending_training_ended(&t, &old, 100 + ENDING_SETTLE_SECONDS - 0.1), 0);
    assert_int_equal(ending_training_ended(&t, &old, 100 + ENDING_SETTLE_SECONDS), end);
    assert_int_equal(ending_training_ended(&restarted, &old, 100), 0);
    assert_int_equal(ending_training_ended(&restarted, &running, 101), 0);
    assert_int_equal(ending_training_ended(&restarted, &failed, 101.5), 0);
    assert_int_equal(ending_training_ended(&restarted, &new, 102), end);
    assert_int_equal(ending_training_ended(&unseen, &old, 100), 0); /* so short a training that we never saw it run */
    assert_int_equal(ending_training_ended(&unseen, &quick, 101), end);
}

static void test_ends(void **state)
{
    (void)state;
    for (enum ending_training_end end = TRAINING_FINISHED; end <= TRAINING_STOPPED; end++) {
        seen_coming(end);
        from_the_start(end);
    }
}

/* Whatever differs from the file that was there first: it is of another training, or of another moment. */
static void test_another_file(void **state)
{
    const struct training_state first = says("finished", 1, 20);
    struct training_state others[6];

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        others[i] = first;
    snprintf(others[0].process.host, sizeof others[0].process.host, "another");
    others[1].process.pid = 2;
    others[2].updated = 21;
    others[3].started = 1;
    others[4].global_step = 1;
    snprintf(others[5].state, sizeof others[5].state, "stopped");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct ending_training t = { 0 };

        assert_int_equal(ending_training_ended(&t, &first, 0), 0);
        if (ending_training_ended(&t, &others[i], 0.1) != (i == 5 ? TRAINING_STOPPED : TRAINING_FINISHED))
            fail_msg("case %zu", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_another_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
