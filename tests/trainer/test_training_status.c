/* What is made of a training.json: who lives, who died, who is silent; how long it will take. */
#include "trainer/training_status.h"

#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NOW 1700000000.0

static struct training_state says(const char *state, int64_t pid, double age)
{
    struct training_state s = { .process.pid = pid, .updated = NOW - age, .global_step = 40, .max_steps = 100 };

    snprintf(s.state, sizeof s.state, "%s", state);
    return s;
}

static void test_conditions(void **state)
{
    static const struct {
        const char *state;
        int64_t pid;
        enum process_state process;
        double age;
        enum training_condition wanted;
    } cases[] = {
        { "running", 7, PROCESS_LIVES, 3, CONDITION_RUNNING },
        { "running", 7, PROCESS_LIVES, 61, CONDITION_SILENT },
        { "running", 7, PROCESS_GONE, 3, CONDITION_DIED },
        { "running", 7, PROCESS_GONE, 1e6, CONDITION_DIED },
        { "running", 7, PROCESS_ELSEWHERE, 59, CONDITION_RUNNING },
        { "running", 7, PROCESS_ELSEWHERE, -30, CONDITION_RUNNING }, /* its clock is ahead */
        { "running", 7, PROCESS_ELSEWHERE, 3600, CONDITION_SILENT },
        { "running", 0, PROCESS_GONE, 3, CONDITION_RUNNING }, /* it names no process */
        { "running", 0, PROCESS_GONE, 61, CONDITION_SILENT },
        { "finished", 7, PROCESS_GONE, 1e6, CONDITION_FINISHED },
        { "stopped", 7, PROCESS_GONE, 3, CONDITION_STOPPED },
        { "failed", 7, PROCESS_LIVES, 3, CONDITION_FAILED },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct training_state s = says(cases[i].state, cases[i].pid, cases[i].age);
        struct training_status got;

        training_status_judge(&s, cases[i].process, NOW, &got);
        if (got.condition != cases[i].wanted)
            fail_msg("case %zu: %s, wanted %s", i, training_condition_names[got.condition],
                     training_condition_names[cases[i].wanted]);
        assert_true(got.left < 0); /* no rate */
    }
}

static void test_time_to_go(void **state)
{
    struct training_state s = says("running", 7, 2);
    struct training_status got;

    (void)state;
    s.steps_per_second = 0.5;
    training_status_judge(&s, PROCESS_LIVES, NOW, &got);
    assert_true(got.left == 120 && got.stepped_age < 0 && got.updated_age == 2);
    s.stepped = NOW - 30;
    training_status_judge(&s, PROCESS_LIVES, NOW, &got);
    assert_true(got.left == 90 && got.stepped_age == 30);
    s.stepped = NOW - 300;
    training_status_judge(&s, PROCESS_LIVES, NOW, &got);
    assert_true(got.left == 0);
    training_status_judge(&s, PROCESS_GONE, NOW, &got);
    assert_true(got.left < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_conditions), cmocka_unit_test(test_time_to_go) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
