/* All points of a log at once, in either view and filtered. */
#include "eventlog/eventlog.h"

#include "tests/eventlog/golden_log.h"

#include <math.h>
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

/* A record behind the others: n bytes from q on; broken: with a wrong data CRC. */
static void put_event(const char *path, const void *q, size_t n, int broken)
{
    uint8_t record[200] = { 0 };

    memcpy(record + RECORD_HEADER, q, n);
    record_seal(record, n);
    record[RECORD_HEADER + n] ^= (uint8_t)broken;
    put(path, O_APPEND, record, n + RECORD_OVERHEAD);
}

/* Events of every form that event_reader_take_usual() must take, or leave to the long way. */
static void put_forms(const char *path, int64_t i)
{
    static const int64_t steps[] = { 0, 127, 128, 16383, 16384, 2097151, 2097152, INT64_MAX, -1 };
    static const uint8_t tensor[] = { 0x09, 0,    0,    0x80, 0,    0x65, 0xcd, 0xcd, 0x41, 0x10,
                                      0x07, 0x2a, 0x11, 0x0a, 0x0f, 0x0a, 0x01, 't',  0x42, 0x0a,
                                      0x08, 0x01, 0x12, 0x00, 0x2a, 0x04, 0,    0,    0x80, 0x3f };
    static const uint8_t mixed[] = { 0x2a, 0x0c, 0x0a, 0x0a, 0x0a, 0x01, 'm', 0x15, 0, 0, 0, 0, 0x1a, 0 };
    uint8_t scalars[sizeof tensor + 13];

    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
        scalar(path, O_APPEND, k % 3 ? "loss" : "x", steps[k] ^ i, 1e9, (float)k);
    scalar(path, O_APPEND, "\xff", i, 1e9, 3); /* no UTF-8 */
    scalar(path, O_APPEND, "loss", i, INFINITY, 1);
    scalar(path, O_APPEND, "loss", i, NAN, 2);
    scalar(path, O_APPEND, "t", i, 1e9, 4);    /* a simple_value where tensors are */
    put_event(path, tensor, sizeof tensor, 0); /* without metadata it is a point only if the first had them */
    memcpy(scalars, tensor, sizeof tensor);
    memcpy(scalars + sizeof tensor, "\x4a\x0b\x0a\x09\x0a\x07scalars", 13);
    scalars[12] += 13;
    scalars[14] += 13;
    scalars[17] = 'u';
    put_event(path, scalars, sizeof scalars, 0);
    scalars[sizeof scalars - 1] = 'z'; /* of another plugin */
    put_event(path, scalars, sizeof scalars, 0);
    put_event(path, mixed, sizeof mixed, 0);
    put_event(path, mixed, sizeof mixed, 1);
    scalar(path, O_APPEND, "x", i, 1e9, 5);
}

static size_t of(struct eventlog_points *p, const struct eventlog_value *v, size_t seen[], struct eventlog_point *point)
{
    const struct eventlog_point *points;
    size_t index, count;

    for (index = 0; strcmp(eventlog_points_series(p, index)->tag, v->series->tag) != 0; index++)
        ;
    points = eventlog_points_of(p, index, &count);
    assert_true(seen[index] < count);
    *point = points[seen[index]++];
    return index;
}

/* The points are those that a reader finds one by one. */
static void test_same_as_reader(void **state)
{
    const struct eventlog_value *v;
    struct eventlog_points *p;
    struct eventlog_reader *r;
    size_t seen[10] = { 0 }, count, total = 0, all = 0;
    uint64_t damaged = 0;
    int rc;
    (void)state;

    for (int64_t i = 0; i < 200; i++)
        put_forms(in("1.tfevents"), i);
    assert_int_equal(eventlog_points_read(&p, directory, EVENTLOG_VIEW_ALL, NULL, NULL), EVENTLOG_OK);
    assert_int_equal(eventlog_reader_open(&r, directory, NULL, NULL), EVENTLOG_OK);
    while ((rc = eventlog_reader_next(r, NULL)) != EVENTLOG_READ_END) {
        damaged += rc == EVENTLOG_READ_DAMAGE;
        while ((v = eventlog_reader_value(r))) {
            struct eventlog_point point;

            if (v->kind != EVENTLOG_KIND_SCALAR || isinf(v->wall_time))
                continue;
            of(p, v, seen, &point);
            assert_true(point.step == v->step && point.wall_time == v->wall_time && point.value == v->number);
            total++;
        }
    }
    for (size_t i = 0; eventlog_points_series(p, i); i++, all += count)
        eventlog_points_of(p, i, &count);
    assert_int_equal(all, total);
    assert_int_equal(damaged, 200 * 4);                    /* infinite, NaN, UTF-8, CRC */
    assert_int_equal(eventlog_points_damaged(p), 200 * 3); /* an infinite wall time is only left out */
    eventlog_reader_close(r);
    eventlog_points_free(p);
}

/* The points of a long series move into pages of their own, which end where the points do. */
static void test_long_series(void **state)
{
    static const struct eventlog_reader_options some = { .has_last_step = 1, .last_step = 600 };
    const struct eventlog_point *points;
    struct eventlog_points *p;
    size_t count;
    (void)state;

    for (int i = 0; i < 3000; i++)
        scalar(in("1.tfevents"), O_APPEND, "loss", i, 1e9 + i, (float)i);
    for (int part = 0; part < 2; part++) {
        assert_int_equal(eventlog_points_read(&p, directory, EVENTLOG_VIEW_ALL, part ? &some : NULL, NULL),
                         EVENTLOG_OK);
        points = eventlog_points_of(p, 0, &count);
        assert_int_equal(count, part ? 601 : 3000);
        for (size_t i = 0; i < count; i++)
            assert_true(points[i].step == (int64_t)i && points[i].wall_time == 1e9 + (double)i &&
                        points[i].value == (double)i);
        eventlog_points_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_points, empty),
        cmocka_unit_test_teardown(test_same_as_reader, empty),
        cmocka_unit_test_teardown(test_long_series, empty),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
