/* A plan as text, CSV and JSON. */
#include "trainer/plan/planning.h"

#include "tests/check.h"

#include <string.h>

static const struct plan_row *rows(void)
{
    static struct plan_row all[2];

    all[0] = (struct plan_row){ .strategy = plan_strategy_find("ps"),
                                .shape = { .workers = 4, .per_host = 2, .servers = 1 },
                                .cost = { 0.25, 4, 32, 350000, PLAN_SERVER, 1 },
                                .efficiency = 0.5,
                                .measured = 5 };
    all[1] = (struct plan_row){ .strategy = plan_strategy_find("mpi"),
                                .shape = { .workers = 2, .per_host = 1 },
                                .cost = { 0.5, 2, 8, 87364, PLAN_WIRE, 0 },
                                .efficiency = 0.125 };
    return all;
}

static void test_text(void **state)
{
    struct buffer out = BUFFER_EMPTY;

    (void)state;
    plan_table_text(&out, rows(), 2, 0, 1);
    assert_string_equal(
        buffer_text(&out),
        "strategy  workers  hosts  servers   ms  samples/s  eff.   busiest  limit   measured    error\n"
        "ps              4      2        1  250         32  50 %   342 KiB  server       200  -20.0 %\n"
        "mpi             2      2        -  500          8  12 %  85.3 KiB  wire           -        -\n");
    buffer_clear(&out);
    plan_table_text(&out, rows() + 1, 1, 40, 1);
    assert_null(strstr(buffer_text(&out), "measured"));
    for (const char *at = buffer_text(&out); *at; at += strcspn(at, "\n") + 1)
        assert_true(strcspn(at, "\n") <= 40);
    buffer_release(&out);
}

/* The longest name says what it is in 80 columns, too, beside mpi. */
static void test_long_name(void **state)
{
    struct plan_row both[2] = { rows()[1], rows()[1] };
    struct buffer out = BUFFER_EMPTY;

    (void)state;
    both[1].strategy = plan_strategy_find("mpi:sparse-exchange=all-gather");
    plan_table_text(&out, both, 2, 80, 1);
    assert_non_null(strstr(buffer_text(&out), "\nmpi:all-gather        2      2        -  500 "));
    buffer_clear(&out);
    plan_table_text(&out, both, 2, 0, 1);
    assert_non_null(strstr(buffer_text(&out), "\nmpi:sparse-exchange=all-gather  "));
    buffer_release(&out);
}

static void test_fitted(void **state)
{
    struct plan_row row = rows()[0];
    struct buffer out = BUFFER_EMPTY;

    (void)state;
    row.fitted = 1;
    plan_table_text(&out, &row, 1, 0, 1);
    assert_non_null(strstr(buffer_text(&out), " fitted\n"));
    buffer_release(&out);
}

static void test_data(void **state)
{
    struct buffer out = BUFFER_EMPTY;

    (void)state;
    plan_table_csv(&out, rows(), 2);
    assert_string_equal(buffer_text(&out),
                        "strategy,ranks,hosts,servers,seconds_per_step,steps_per_second,samples_per_second,efficiency,"
                        "busiest_link_bytes,limit,measured_steps_per_second,fitted,error\n"
                        "ps,4,2,1,0.25,4.0,32.0,0.5,350000.0,server,5.0,0,-0.19999999999999996\n"
                        "mpi,2,2,0,0.5,2.0,8.0,0.125,87364.0,wire,,0,\n");
    buffer_clear(&out);
    plan_table_json(&out, rows() + 1, 1);
    assert_string_equal(buffer_text(&out),
                        "[\n{\"strategy\": \"mpi\", \"ranks\": 2, \"hosts\": 2, \"servers\": 0, "
                        "\"seconds_per_step\": 0.5, \"steps_per_second\": 2.0, \"samples_per_second\": 8.0, "
                        "\"efficiency\": 0.125, \"busiest_link_bytes\": 87364.0, \"limit\": \"wire\", "
                        "\"measured_steps_per_second\": null, \"fitted\": false, \"error\": null}]");
    buffer_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_long_name),
        cmocka_unit_test(test_fitted),
        cmocka_unit_test(test_data),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
