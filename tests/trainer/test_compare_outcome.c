/* What a run gave: from the texts of trainer and evaluator, and as a line of the results, there and back. */
#include "trainer/compare/outcome.h"

#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void assert_near(double found, double wanted, double off)
{
    assert_true(fabs(found - wanted) <= off);
}

static const char summary[] =
    "{\"state\": \"finished\", \"run_option\": \"ps\", \"world_size\": 3, \"workers\": 2, \"global_step\": 40, "
    "\"steps\": 40, \"seconds\": 2.0, \"steps_per_second\": 20.0, \"samples_per_second\": 640.0, \"waiting_share\": "
    "0.9, "
    "\"staleness_mean\": 0.975, \"staleness_max\": 6.0, \"gradients_dropped\": 7, \"weights\": \"f75b25318bfd2113\", "
    "\"links\": [{\"rank\": 0, \"sent_per_step\": 100.0}, {\"rank\": 2, \"sent_per_step\": 250.5}], "
    "\"busiest_link\": {\"host\": \"vm\", \"rank\": 2, \"role\": \"server\", \"sent_per_step\": 250.5, "
    "\"received_per_step\": 90.0}, "
    "\"time\": [{\"rank\": 0, \"server\": false, \"steps\": 40, \"seconds\": 2.0, \"forward\": 1.2, \"waiting\": 0.5}, "
    "{\"rank\": 1, \"server\": false, \"steps\": 40, \"seconds\": 4.0, \"forward\": 2.0, \"waiting\": 2.0}, "
    "{\"rank\": 2, \"server\": true, \"seconds\": 4.0, \"waiting\": 3.0}]}";

static void test_summary(void **state)
{
    struct outcome o = { 0 };
    struct error e = { 0 };

    (void)state;
    assert_int_equal(outcome_add_summary(&o, summary, strlen(summary), &e), OK);
    assert_int_equal(o.steps, 40);
    assert_near(o.steps_per_second, 20, 0);
    assert_near(o.samples_per_step, 32, 0);
    assert_near(o.waiting, (0.25 + 0.5) / 2, 1e-12);                /* of the workers */
    assert_near(o.phases[PHASE_FORWARD], (0.03 + 0.05) / 2, 1e-12); /* of a step */
    assert_near(o.phases[PHASE_WAITING], (0.0125 + 0.05) / 2, 1e-12);
    assert_near(o.phases[PHASE_BACKWARD], 0, 0);
    assert_near(o.serving, 0.25, 1e-12);
    assert_near(o.sent, 350.5, 0);
    assert_string_equal(o.busiest, "server 2");
    assert_near(o.busiest_sent, 250.5, 0);
    assert_near(o.busiest_received, 90, 0);
    assert_near(o.staleness_mean, 0.975, 0);
    assert_near(o.dropped, 7, 0);
    assert_string_equal(o.weights, "f75b25318bfd2113");
}

/* One rank: nobody sends, nothing is dropped. Several hosts: the busiest link is a host's. */
static void test_other_summaries(void **state)
{
    static const char alone[] = "{\"global_step\": 3, \"links\": [], \"busiest_link\": null}";
    static const char hosts[] = "{\"global_step\": 3, \"busiest_link\": {\"host\": \"b\", \"sent_per_step\": 5}}";
    static const char *const none[] = { "", "{", "[]", "null", "{\"global_step\": 1.5}", "{}" };
    struct outcome o = { 0 };
    struct error e = { 0 };

    (void)state;
    assert_int_equal(outcome_add_summary(&o, alone, strlen(alone), &e), OK);
    assert_string_equal(o.busiest, "");
    assert_near(o.sent, 0, 0);
    assert_near(o.dropped, -1, 0);
    assert_near(o.samples_per_step, 0, 0);
    assert_int_equal(outcome_add_summary(&o, hosts, strlen(hosts), &e), OK);
    assert_string_equal(o.busiest, "b");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(outcome_add_summary(&o, none[i], strlen(none[i]), &e), ERR_CORRUPT);
        assert_string_equal(e.message, "the trainer wrote no summary on standard output");
    }
}

static void test_ledger(void **state)
{
    static const char lines[] =
        "{\"step\":0,\"status\":\"done\",\"metrics\":{\"precision\":0.1},\"point_time\":1000.5}\n"
        "{\"step\":10,\"status\":\"failed\",\"reason\":\"?\"}\n"
        "not a line\n"
        "{\"step\":20,\"status\":\"done\",\"metrics\":{\"precision\":0.5},\"point_time\":1004.75}\n"
        "{\"step\":30,\"status\":\"done\",\"metr";
    struct outcome o = { 0 };
    struct error e = { 0 };

    (void)state;
    assert_int_equal(outcome_add_ledger(&o, lines, strlen(lines), &e), OK);
    assert_int_equal(o.evaluation_count, 2);
    assert_near(o.evaluations[0].seconds, 0, 0);
    assert_int_equal(o.evaluations[1].step, 20);
    assert_near(o.evaluations[1].seconds, 4.25, 0);
    assert_near(o.evaluations[1].precision, 0.5, 0);
    outcome_release(&o);
}

static void reason_is(const char *log, const char *wanted)
{
    char reason[60];

    outcome_reason(log, reason, sizeof reason);
    assert_string_equal(reason, wanted);
}

static void test_reasons(void **state)
{
    (void)state;
    reason_is("lenet (21840 weights) on mnist\ntrainer: the loss is not finite\n----\nmpirun detected\n",
              "the loss is not finite");
    reason_is("rank 1 on vm: trainer: no memory\n", "no memory");
    reason_is("--------\n\nmpirun has detected an attempt to run as root.\nRunning",
              "mpirun has detected an attempt to run as root.");
    reason_is("", "it wrote nothing");
    reason_is("\n---\n", "it wrote nothing");
}

static void test_there_and_back(void **state)
{
    static const char ledger[] = "{\"step\":7,\"metrics\":{\"precision\":0.125},\"point_time\":3}\n";
    struct outcome o = { .cell = "ps-async-2",
                         .strategy = "ps:async",
                         .workers = 2,
                         .round = 3,
                         .ranks = 3,
                         .cores = 8,
                         .steady = 12.25,
                         .others = 0.375,
                         .reason = "said \"no\"\n" },
                   back;
    struct buffer line = BUFFER_EMPTY, again = BUFFER_EMPTY;
    struct error e = { 0 };
    char training[40];

    (void)state;
    assert_int_equal(outcome_add_summary(&o, summary, strlen(summary), &e), OK);
    assert_int_equal(outcome_add_ledger(&o, ledger, strlen(ledger), &e), OK);
    outcome_write(&o, "--model 'a b'", &line);
    assert_int_equal(outcome_read(&back, training, sizeof training, line.data, line.length, &e), OK);
    assert_string_equal(training, "--model 'a b'");
    assert_string_equal(back.reason, o.reason);
    assert_int_equal(back.evaluation_count, 1);
    assert_near(back.others, 0.375, 0);
    outcome_write(&back, training, &again);
    assert_string_equal(buffer_text(&again), buffer_text(&line));
    /* every beginning is refused, but for the newline alone */
    for (size_t n = 0; n + 1 < line.length; n++) {
        struct outcome cut;

        assert_int_equal(outcome_read(&cut, training, sizeof training, line.data, n, &e), ERR_CORRUPT);
    }
    outcome_release(&back);
    outcome_release(&o);
    buffer_release(&line);
    buffer_release(&again);
}

static void test_no_line(void **state)
{
    static const char one[] = "{\"cell\":\"a\"}";
    struct error e = { 0 };
    struct outcome o;
    char training[40];

    (void)state;
    assert_int_equal(outcome_read(&o, training, sizeof training, one, strlen(one), &e), ERR_CORRUPT);
    assert_string_equal(e.message, "not a line of results: no \"strategy\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_summary), cmocka_unit_test(test_other_summaries), cmocka_unit_test(test_ledger),
        cmocka_unit_test(test_reasons), cmocka_unit_test(test_there_and_back),  cmocka_unit_test(test_no_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
