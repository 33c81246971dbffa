/* All points of a log at once, in either view and filtered. */
#include "eventlog/eventlog.h"

#include "tests/eventlog/golden_log.h"

#include <sys/stat.h>

static void test_points(void **state)
{
    static const char *const tags[] = { "loss" };
    const struct eventlog_reader_options only = { .tags = tags, .tag_count = 1, .has_last_step = 1, .last_step = 1 };
    struct eventlog_error error = { 0 };
    const struct eventlog_point *points;
    struct eventlog_points *p;
    size_t index, count;
    (void)state;

    assert_int_equal(mkdir(in("b"), 0777), 0);
    assert_int_equal(mkdir(in("a"), 0777), 0);
    put(in("b/1.tfevents"), 0, golden, golden_size);
    scalar(in("a/1.tfevents"), 0, "t", 1, 5, 1);
    assert_int_equal(eventlog_points_read(&p, directory, EVENTLOG_VIEW_ALL, NULL, &error), EVENTLOG_OK);
    assert_string_equal(eventlog_points_run(p, 0), "a");
    assert_string_equal(eventlog_points_run(p, 1), "b");
    assert_null(eventlog_points_run(p, 2));
    assert_string_equal(eventlog_points_series(p, 0)->tag, "t");
    assert_string_equal(eventlog_points_series(p, 1)->tag, "_hparams_/session_start_info");
    assert_null(eventlog_points_series(p, 7));
    assert_int_equal(eventlog_points_find(p, "a", "loss", &index), 0);
    assert_int_equal(eventlog_points_find(p, "b", "loss", &index), 1);
    points = eventlog_points_of(p, index, &count);
    assert_int_equal(count, 4);
    assert_true(points[3].step == 1 && points[3].value == 0.75 && points[3].wall_time == 1e9 + 20);
    assert_null(eventlog_points_of(p, 1, &count));
    assert_int_equal(count, 0);
    assert_int_equal(eventlog_points_damaged(p), 0);
    eventlog_points_free(p);
    assert_int_equal(eventlog_points_read(&p, directory, EVENTLOG_VIEW_TENSORBOARD, NULL, &error), EVENTLOG_OK);
    assert_int_equal(eventlog_points_find(p, "b", "loss", &index), 1);
    points = eventlog_points_of(p, index, &count);
    assert_true(count == 2 && points[0].step == 0 && points[1].step == 1 && points[1].value == 0.75);
    eventlog_points_free(p);
    assert_int_equal(eventlog_points_read(&p, directory, EVENTLOG_VIEW_ALL, &only, &error), EVENTLOG_OK);
    assert_string_equal(eventlog_points_series(p, 0)->run, "b");
    assert_null(eventlog_points_series(p, 1));
    points = eventlog_points_of(p, 0, &count);
    assert_true(count == 3 && points[2].value == 0.75);
    eventlog_points_free(p);
    assert_int_equal(eventlog_points_read(&p, in("c"), EVENTLOG_VIEW_ALL, NULL, &error), EVENTLOG_ERROR_IO);
    assert_non_null(strstr(error.message, "/c"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_points, empty),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
