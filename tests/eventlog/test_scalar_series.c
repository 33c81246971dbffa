/* Points gathered by series: what a point is, the three views, order, many tags, restarts; each view against a plain
 * model with random steps. */
#include "eventlog/read/scalar_series.h"

#include "base/bytes.h"
#include "base/random.h"
#include "eventlog/format/event_encode.h"
#include "eventlog/format/record.h"
#include "tests/check.h"
#include "tests/eventlog/hex.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void feed(struct scalar_run *r, const uint8_t *bytes, size_t n)
{
    struct event event;

    assert_int_equal(event_decode(bytes, n, &event, NULL), OK);
    assert_int_equal(scalar_run_event(r, &event, NULL), OK);
}

static void feed_hex(struct scalar_run *r, const char *hex)
{
    uint8_t bytes[200];

    feed(r, bytes, hex_bytes(hex, bytes));
}

static void scalar(struct scalar_run *r, const char *tag, int64_t step, double wall, float value)
{
    uint8_t record[200];
    size_t n = event_encode_scalar(record, tag, strlen(tag), step, wall, value);

    feed(r, record + RECORD_HEADER, n - RECORD_OVERHEAD);
}

static struct scalar_series *series(struct scalar_run *r, const char *tag)
{
    for (size_t i = 0; i < r->count; i++)
        if (!strcmp(r->series[i].tag, tag))
            return &r->series[i];
    fail_msg("no series %s", tag);
    return NULL;
}

/* "step=value " for each point. */
static void expect(struct scalar_run *r, const char *tag, const char *wanted)
{
    struct scalar_series *s = series(r, tag);
    char found[500];
    size_t n = 0;

    found[0] = '\0';
    for (size_t i = 0; i < s->count; i++)
        n += (size_t)snprintf(found + n, sizeof found - n, "%lld=%g ", (long long)s->points[i].step,
                              s->points[i].value);
    assert_string_equal(found, wanted);
}

/* A float tensor, a double tensor, a float of shape [1], two floats: of plugin scalars; one float without plugin. */
#define WALL "09 00 00 00 00 00 00 14 40 "
#define PLUGIN " 4a 0b 0a 09 0a 07 73 63 61 6c 61 72 73"
static const char tensor_float[] = WALL "10 01 2a 1e 0a 1c 0a 01 66 42 0a 08 01 12 00 22 04 00 00 00 40" PLUGIN;
static const char tensor_double[] = WALL
    "10 02 2a 22 0a 20 0a 01 66 42 0e 08 02 12 00 22 08 00 00 00 00 00 00 08 40" PLUGIN;
static const char tensor_shape_1[] = WALL
    "10 03 2a 22 0a 20 0a 01 66 42 0e 08 01 12 04 12 02 08 01 22 04 00 00 80 40" PLUGIN;
static const char tensor_two[] = WALL "10 04 2a 15 0a 13 0a 01 66 42 0e 08 01 2a 08 00 00 00 40 00 00 00 40 12 00";
static const char tensor_no_plugin[] = WALL "10 01 2a 11 0a 0f 0a 01 6e 42 0a 08 01 12 00 22 04 00 00 00 40";

static void test_what_a_point_is(void **state)
{
    struct scalar_run r;
    struct scalar_series *s;
    (void)state;

    scalar_run_init(&r, EVENTLOG_VIEW_ALL, 0, 1);
    feed_hex(&r, tensor_float);
    feed_hex(&r, tensor_double);
    feed_hex(&r, tensor_shape_1);
    feed_hex(&r, tensor_two);
    feed_hex(&r, tensor_no_plugin);
    scalar(&r, "n", 5, 5, 7); /* a simple_value is a point whatever the series began with */
    expect(&r, "f", "1=2 2=3 3=4 ");
    s = series(&r, "f");
    assert_string_equal(s->plugin, "scalars");
    assert_int_equal(s->skipped, 1);
    assert_int_equal(s->skipped_first, 4);
    assert_int_equal(s->seen, 3);
    assert_int_equal(scalar_series_from(s, 0), SCALAR_FROM_FLOAT32);
    assert_int_equal(scalar_series_from(s, 1), 0);
    assert_int_equal(scalar_series_from(s, 2), SCALAR_FROM_FLOAT32);
    expect(&r, "n", "5=7 ");
    assert_string_equal(series(&r, "n")->plugin, "");
    assert_int_equal(series(&r, "n")->skipped, 1);
    assert_int_equal(r.numbered, 4);
    scalar_run_release(&r);

    /* The default loader drops the double and the shape, but they take their place among the steps. */
    scalar_run_init(&r, EVENTLOG_VIEW_TENSORBOARD, 0, 1);
    feed_hex(&r, tensor_shape_1);
    feed_hex(&r, tensor_float);
    feed_hex(&r, tensor_double);
    scalar_run_finish(&r);
    expect(&r, "f", "1=2 ");
    assert_int_equal(r.left_out, 2);
    scalar_run_release(&r);
}

/* A record with a wrong CRC, whose data are these. */
static int damaged(struct scalar_run *r, const char *hex)
{
    uint8_t bytes[200];
    struct event_damage d = { .kind = EVENTLOG_DAMAGE_DATA_CRC, .data = bytes, .length = hex_bytes(hex, bytes) };
    struct event event;
    int taken = scalar_run_damage(r, &d, &event);

    if (taken)
        assert_int_equal(scalar_run_event(r, &event, NULL), OK);
    return taken;
}

static const char simple_f[] = WALL "10 02 2a 0a 0a 08 0a 01 66 15 00 00 40 40";
static const char image_f[] = WALL "10 02 2a 09 0a 07 0a 01 66 22 02 10 01";

/* What TensorBoard's default loader takes, beside what is right. */
static void test_default_loader(void **state)
{
    static const struct event_damage too_long = { .kind = EVENTLOG_DAMAGE_TOO_LONG, .found = RECORD_LENGTH_MAX };
    struct scalar_run r;
    (void)state;

    /* It checks no CRC of data; what else is wrong ends the file. */
    scalar_run_init(&r, EVENTLOG_VIEW_TENSORBOARD, 0, 1);
    assert_true(damaged(&r, simple_f));
    assert_true(series(&r, "f")->from_damage);
    scalar(&r, "f", 4, 5, 4);
    assert_false(series(&r, "f")->from_damage);
    assert_false(scalar_run_damage(&r, &too_long, NULL));
    scalar(&r, "f", 5, 5, 5);
    feed_hex(&r, "0d 00 00 00 00"); /* a wall time in another wire type */
    scalar(&r, "f", 6, 5, 6);
    assert_false(damaged(&r, simple_f));
    scalar_run_finish(&r);
    expect(&r, "f", "2=3 4=4 5=5 ");
    assert_int_equal(r.left_out, 1);
    scalar_run_restart(&r);
    assert_false(damaged(&r, "00"));
    scalar(&r, "f", 6, 5, 6);
    scalar_run_finish(&r);
    expect(&r, "f", "");
    scalar_run_release(&r);

    /* In another view damage is nothing but damage, and what a series is the first sound value says. */
    scalar_run_init(&r, EVENTLOG_VIEW_ALL, 0, 1);
    r.follow_loader = 1;
    assert_true(damaged(&r, image_f));
    assert_string_equal(series(&r, "f")->plugin, "images");
    scalar(&r, "f", 4, 5, 4);
    assert_string_equal(series(&r, "f")->plugin, "scalars");
    expect(&r, "f", "4=4 ");
    assert_int_equal(scalar_series_from(series(&r, "f"), 0), SCALAR_FROM_SIMPLE | SCALAR_FROM_FLOAT32);
    assert_int_equal(series(&r, "f")->skipped, 0);
    scalar_run_release(&r);

    /* What is no number removes points as numbers do; two numbers in one tensor; infinite times come to nothing. */
    scalar_run_init(&r, EVENTLOG_VIEW_TENSORBOARD, 0, 1);
    scalar(&r, "f", 0, INFINITY, 1);
    scalar(&r, "f", 1, 5, 1);
    scalar(&r, "f", 3, 5, 3);
    feed_hex(&r, image_f);
    feed_hex(&r, WALL "10 04 2a 19 0a 17 0a 01 66 42 12 08 01 2a 04 00 00 80 40 22 08 00 00 00 00 00 00 00 00");
    scalar_run_finish(&r);
    expect(&r, "f", "1=1 4=4 ");
    scalar_run_release(&r);
}

/* A tag is what the first value says that the loader reads: a data class before all else. */
static void test_data_classes(void **state)
{
    static const struct {
        const char *first, *points;
    } cases[] = {
        { WALL "2a 19 0a 17 0a 01 66 15 00 00 80 3f 4a 0d 0a 09 0a 07 73 63 61 6c 61 72 73 20 01", "0=1 5=5 " },
        { WALL "2a 19 0a 17 0a 01 66 15 00 00 80 3f 4a 0d 0a 09 0a 07 73 63 61 6c 61 72 73 20 02", "" },
        { WALL "2a 19 0a 17 0a 01 66 15 00 00 80 3f 4a 0d 0a 09 0a 07 73 63 61 6c 61 72 73 20 09", "" },
        { WALL "2a 19 0a 17 0a 01 66 15 00 00 80 3f 4a 0d 0a 09 0a 07 73 63 61 6c 61 72 65 20 01", "" },
        { WALL "2a 17 0a 15 0a 01 66 15 00 00 80 3f 4a 0b 0a 09 0a 07 73 63 61 6c 61 72 65", "0=1 5=5 " },
        { WALL "2a 18 0a 16 0a 01 66 22 02 10 01 4a 0d 0a 09 0a 07 73 63 61 6c 61 72 73 20 01", "5=5 " },
        { WALL "2a 16 0a 14 0a 01 66 22 02 10 01 4a 0b 0a 09 0a 07 73 63 61 6c 61 72 73", "" },
        { WALL "2a 12 0a 10 0a 01 66 4a 0b 0a 09 0a 07 73 63 61 6c 61 72 73", "5=5 " },
        { WALL "2a 05 0a 03 0a 01 66", "" },
    };
    struct scalar_run r;
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scalar_run_init(&r, EVENTLOG_VIEW_TENSORBOARD, 0, 1);
        feed_hex(&r, cases[i].first);
        scalar(&r, "f", 5, 5, 5);
        scalar_run_finish(&r);
        expect(&r, "f", cases[i].points);
        scalar_run_release(&r);
    }
}

static void test_views(void **state)
{
    static const enum eventlog_view views[] = { EVENTLOG_VIEW_ALL, EVENTLOG_VIEW_TENSORBOARD, EVENTLOG_VIEW_SESSION };
    static const char *const loss[] = { "0=0 1=1 2=2 3=3 1=4 2=5 7=6 8=8 ", "0=0 1=4 2=5 8=8 ",
                                        "0=0 1=4 2=5 7=6 8=8 " };
    static const char *const other[] = { "0=9 5=9 9=9 ", "0=9 5=9 ", "0=9 9=9 " };
    static const struct event_damage length = { .kind = EVENTLOG_DAMAGE_LENGTH_CRC };
    (void)state;

    for (size_t i = 0; i < 3; i++) {
        struct scalar_run r;

        scalar_run_init(&r, views[i], 0, 1);
        scalar_run_begin_file(&r);
        for (int k = 0; k < 4; k++)
            scalar(&r, "loss", k, 5 + k, (float)k);
        scalar(&r, "other", 0, 5, 9);
        scalar(&r, "other", 5, 5, 9);
        feed_hex(&r, "09 00 00 00 00 00 00 14 40 10 01 3a 02 08 01"); /* session start at step 1 */
        scalar(&r, "loss", 1, 15, 4);
        scalar(&r, "loss", 2, 15, 5);
        scalar(&r, "loss", 7, INFINITY, 6);
        assert_false(scalar_run_damage(&r, &length, NULL)); /* TensorBoard reads no further in this file */
        scalar(&r, "other", 9, 20, 9);
        scalar_run_begin_file(&r);
        scalar(&r, "loss", 8, 20, 8);
        scalar_run_finish(&r);
        expect(&r, "loss", loss[i]);
        expect(&r, "other", other[i]);
        assert_int_equal(r.left_out, i == 0 ? 0 : i == 1 ? 5 : 4);
        scalar_run_restart(&r);
        assert_int_equal(r.count, 0);
        scalar(&r, "loss", 3, 5, 1);
        expect(&r, "loss", "3=1 ");
        scalar_run_release(&r);
    }
}

/* One series with random steps: kept as the rule says, and sorted with equal steps in reading order. */
static void test_random_steps(void **state)
{
    struct random random;
    (void)state;

    random_init(&random, 8, RANDOM_TEST, 0, 0);
    for (int round = 0; round < 2000; round++) {
        int64_t steps[100], kept[100], wanted[100];
        size_t n = 1 + random_u32(&random) % 99, count = 0, at = 0;
        struct scalar_run all, shown;
        struct scalar_series *s;

        scalar_run_init(&all, EVENTLOG_VIEW_ALL, round % 2, 1);
        scalar_run_init(&shown, EVENTLOG_VIEW_TENSORBOARD, 0, 1);
        for (size_t i = 0; i < n; i++) {
            steps[i] = random_u32(&random) % 8 ? (int64_t)i : (int64_t)(random_u32(&random) % 40);
            while (count && steps[kept[count - 1]] >= steps[i])
                count--;
            kept[count++] = (int64_t)i;
            scalar(&all, "t", steps[i], 5, (float)i);
            scalar(&shown, "t", steps[i], 5, (float)i);
        }
        for (int64_t step = 0; step < 100; step++)
            for (size_t i = 0; i < n; i++)
                if (steps[i] == step)
                    wanted[at++] = (int64_t)i;
        s = series(&shown, "t");
        assert_int_equal(s->count, count);
        for (size_t i = 0; i < count; i++)
            assert_int_equal((int64_t)s->points[i].value, kept[i]);
        s = series(&all, "t");
        assert_int_equal(scalar_series_sort(s, NULL), OK);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal((int64_t)s->points[i].value, wanted[i]);
            assert_true(!s->marks || s->marks[i] >> 8 == (uint64_t)wanted[i] + 1);
        }
        scalar_run_release(&all);
        scalar_run_release(&shown);
    }
}

static int even(void *context, const struct scalar_series *s, const struct eventlog_point *point)
{
    (void)s;
    ++*(int *)context;
    return point->step % 2 == 0;
}

static void test_many_tags(void **state)
{
    struct scalar_run r;
    struct random random;
    int asked = 0;
    char tag[20];
    (void)state;

    random_init(&random, 9, RANDOM_TEST, 0, 0);
    scalar_run_init(&r, EVENTLOG_VIEW_ALL, 0, 1);
    r.wanted = even;
    r.context = &asked;
    for (int i = 0; i < 30000; i++) {
        snprintf(tag, sizeof tag, "tag_%d", i < 3000 ? i : (int)(random_u32(&random) % 3000));
        scalar(&r, tag, i, 5, 1);
    }
    assert_int_equal(r.count, 3000);
    assert_int_equal(r.numbered, 30000);
    assert_int_equal(asked, 30000);
    for (size_t i = 0; i < r.count; i++) {
        snprintf(tag, sizeof tag, "tag_%d", (int)i);
        assert_string_equal(r.series[i].tag, tag);
        assert_int_equal(r.series[i].number, i);
        for (size_t k = 0; k < r.series[i].count; k++)
            assert_true(r.series[i].points[k].step % 2 == 0);
    }
    scalar_run_sort(&r);
    for (size_t i = 1; i < r.count; i++)
        assert_true(strcmp(r.series[i - 1].tag, r.series[i].tag) < 0);
    scalar_run_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_point_is), cmocka_unit_test(test_default_loader),
        cmocka_unit_test(test_data_classes),    cmocka_unit_test(test_views),
        cmocka_unit_test(test_random_steps),    cmocka_unit_test(test_many_tags),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
