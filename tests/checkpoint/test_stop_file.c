/* stop.json: written and read back, what others may write, and what cannot be understood. */
#include "checkpoint/directory/training_state.h"

#include "checkpoint_fixture.h"

#include <math.h>

static void test_there_and_back(void **state)
{
    struct stop_file s = { .reason = "no better \"loss\" in 5 evaluations",
                           .metric = "loss",
                           .best_step = 700,
                           .best_checkpoint = "model.ckpt-700",
                           .best_value = 0.25,
                           .step = 1200,
                           .written = 1.5e9 };
    struct fixture *f = *state;
    struct stop_file got;

    assert_int_equal(stop_file_read(f->directory, &got, NULL), 0);
    assert_int_equal(stop_file_write(f->directory, &s, NULL), OK);
    assert_int_equal(stop_file_read(f->directory, &got, NULL), 1);
    assert_memory_equal(&got, &s, sizeof s);
    s.best_value = NAN; /* JSON has no NaN: the member is a string then, and counts as not there */
    assert_int_equal(stop_file_write(f->directory, &s, NULL), OK);
    assert_int_equal(stop_file_read(f->directory, &got, NULL), 1);
    assert_true(got.best_value == 0 && got.best_step == 700);
    assert_int_equal(stop_file_write(fixture_path(f, "missing"), &s, NULL), ERR_IO);
    assert_int_equal(stop_file_read(fixture_path(f, "missing"), &got, NULL), 0);
    assert_int_equal(stop_file_read(fixture_path(f, "stop.json"), &got, NULL), 0); /* a file in a directory's place */
}

static void test_of_others(void **state)
{
    static const struct {
        const char *text, *reason;
        int rc;
    } cases[] = {
        { "{\"reason\":\"by hand\"}", "by hand", OK },
        { "{\"reason\":\"by hand\",\"step\":\"x\",\"metric\":7,\"more\":{}}", "by hand", OK },
        { "", "line", ERR_CORRUPT },
        { "{}", "no \"reason\"", ERR_CORRUPT },
        { "{\"reason\":7}", "no \"reason\"", ERR_CORRUPT },
        { "[\"reason\"]", "no \"reason\"", ERR_CORRUPT },
        { "{\"reason\":\"a\"", "line 1", ERR_CORRUPT },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stop_file got;

        assert_int_equal(stop_file_parse("stop.json", cases[i].text, strlen(cases[i].text), &got, NULL), cases[i].rc);
        fixture_write(f, "stop.json", cases[i].text, strlen(cases[i].text));
        assert_int_equal(stop_file_read(f->directory, &got, NULL), 1); /* whatever stands in it, it is there */
        assert_non_null(strstr(got.reason, cases[i].reason));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_there_and_back, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_of_others, fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
