/* Each allocation and each system call fails once while points are collected, from events and from text. */
#include "eventlog/eventlog_reader.h"

#include "eventlog/format/event_decode.h"
#include "eventlog/format/event_encode.h"
#include "eventlog/format/record.h"
#include "eventlog/read/log_filter.h"
#include "eventlog/read/point_input.h"
#include "eventlog/read/scalar_series.h"
#include "eventlog/read/step_list.h"
#include "tests/failing_calls.h"

#include <string.h>

/* Steps that fall, of more points than the heap takes, with marks and without. */
static int keep_many(struct error *e)
{
    enum { MANY = 1200 };
    int rc = OK;

    for (int keep_order = 0; keep_order < 2 && rc == OK; keep_order++) {
        struct step_list steps = STEP_LIST_EMPTY;
        struct step_figures figures;
        struct scalar_run run;
        uint8_t bytes[128];

        scalar_run_init(&run, EVENTLOG_VIEW_ALL, keep_order, 1);
        for (int i = 0; i < MANY && rc == OK; i++) {
            const size_t n = event_encode_scalar(bytes, "loss", 4, MANY - i, 5, 1);
            struct event event;

            assert_int_equal(event_decode(bytes + RECORD_HEADER, n - RECORD_OVERHEAD, &event, NULL), OK);
            rc = scalar_run_event(&run, &event, e);
            if (rc == OK && i % 100 == 0 && !step_list_add(&steps, i % 300, 0))
                rc = error_memory(e, NULL, "for a step");
        }
        if (rc == OK && !step_list_figures(&steps, &figures))
            rc = error_memory(e, NULL, "for steps");
        if (rc == OK) {
            scalar_series_fit(run.series);
            rc = scalar_series_sort(run.series, e);
        }
        scalar_run_release(&run);
        step_list_release(&steps);
    }
    return rc;
}

static int take_point(void *context, const struct point_input_point *point, struct error *e)
{
    (void)context, (void)point, (void)e;
    return OK;
}

static int read_text(struct error *e)
{
    static const char *const texts[][4] = {
        { "run,step,\"a\"\"b\",b,c", "r,1,2,3,4", "r,2,\"3\",,5", NULL },
        { "step\ta\\tb", "1\t2", NULL },
        { "tag,step,value", "\"a", "b\",1,2", NULL },
        { "{\"run\":\"r\\u00e4\",\"tag\":\"t\\n\",\"step\":1,\"value\":\"NaN\"}", "{\"step\":1,\"a\":2}", NULL },
    };
    struct point_input *p;
    int rc = OK;

    for (size_t t = 0; t < sizeof texts / sizeof *texts && rc == OK; t++) {
        if ((rc = point_input_new(&p, POINT_INPUT_AUTO, NULL, e)) != OK)
            return rc;
        for (size_t i = 0; texts[t][i] && rc == OK; i++)
            rc = point_input_line(p, texts[t][i], strlen(texts[t][i]), take_point, NULL, e);
        if (rc == OK)
            rc = point_input_end(p, e);
        point_input_free(p);
    }
    return rc;
}

static void test_failures(void **state)
{
    (void)state;
    with_each_failure(keep_many);
    with_each_failure(read_text);
}

/* In what runs several threads may read, and what filters leave all values. */
static void test_plain_runs(void **state)
{
    const struct eventlog_reader_options filters[] = {
        { .has_first_step = 1, .first_step = 1 }, { .has_last_step = 1, .last_step = 1 }, { .numbers_only = 1 }, { 0 }
    };
    struct scalar_series series = { .tag = "t", .tag_length = 1, .plugin = (char[]){ "scalars" } };

    (void)state;
    for (int i = 0; i < 6; i++) {
        struct scalar_run run;

        scalar_run_init(&run, i == 1 ? EVENTLOG_VIEW_SESSION : EVENTLOG_VIEW_ALL, i == 2, i != 3);
        run.follow_loader = i == 4;
        series.from_damage = i == 5;
        assert_int_equal(scalar_run_like(&run, &series), 0);
        assert_int_equal(scalar_run_is_plain(&run), i == 0);
        assert_int_equal(scalar_run_like(&run, &series), i == 5 ? SCALAR_RUN_NONE : 0);
        series.from_damage = 1;
        assert_int_equal(scalar_run_like(&run, &series), SCALAR_RUN_NONE);
        series.from_damage = 0;
        series.plugin[0]++;
        assert_int_equal(scalar_run_like(&run, &series), SCALAR_RUN_NONE);
        series.plugin[0]--;
        scalar_run_release(&run);
    }
    for (size_t i = 0; i < 4; i++) {
        struct log_filter filter;

        assert_int_equal(log_filter_init(&filter, &filters[i], NULL), OK);
        assert_int_equal(log_filter_all_values(&filter), i == 3);
        log_filter_release(&filter);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_plain_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
