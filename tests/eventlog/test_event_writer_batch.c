/* What is written without a call for each value: many points at once, events that are encoded already; and the functions
 * that need no writer. */
#include "base/bytes.h"
#include "eventlog/write/event_writer.h"

#include "eventlog/write/kinds/histogram_limits.h"
#include "tests/check.h"
#include "tests/eventlog/event_run.h"
#include "tests/failing_io.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static const char *const tags[] = { "loss", "accuracy" };

static void test_version(void **state)
{
    char text[32];

    (void)state;
    snprintf(text, sizeof text, "%d.%d.%d", EVENTLOG_VERSION_MAJOR, EVENTLOG_VERSION_MINOR, EVENTLOG_VERSION_PATCH);
    assert_string_equal(eventlog_version(), text);
}

/* The same bytes as by single calls, directly and through a queue. */
static void test_same_bytes(void **state)
{
    (void)state;
    for (int queue = 0; queue < 2; queue++) {
        struct buffer bytes[2] = { BUFFER_EMPTY, BUFFER_EMPTY };
        struct eventlog_scalar points[1000];
        size_t accepted, skip;

        for (int i = 0; i < 1000; i++)
            points[i] = (struct eventlog_scalar){ (uint64_t)i % 2, i, 5.5 + i,
                                                  i == 7   ? NAN
                                                  : i == 8 ? 1e300
                                                           : i / 3.0 };
        for (int batch = 0; batch < 2; batch++) {
            struct eventlog_writer *w = open_with(
                (struct eventlog_writer_options){ .queue_bytes = queue ? 4096 : 0, .buffer_bytes = 300 });
            char path[4096];

            if (batch)
                assert_int_equal(eventlog_writer_scalars(w, tags, 2, points, 1000, &accepted, &error), EVENTLOG_OK);
            for (int i = 0; !batch && i < 1000; i++)
                assert_int_equal(eventlog_writer_scalar(w, tags[points[i].tag], points[i].step, points[i].wall_time,
                                                        (float)points[i].value, &error),
                                 EVENTLOG_OK);
            snprintf(path, sizeof path, "%s", eventlog_writer_path(w));
            close_well(w);
            assert_int_equal(file_read(path, 1 << 20, &bytes[batch], NULL), OK);
            remove_files();
        }
        assert_int_equal(accepted, 1000);
        assert_int_equal(bytes[0].length, bytes[1].length);
        skip = 12 + get_le64((const uint8_t *)bytes[0].data) + 4; /* the first record has its own time */
        assert_memory_equal(bytes[0].data + skip, bytes[1].data + skip, bytes[0].length - skip);
        buffer_release(&bytes[0]);
        buffer_release(&bytes[1]);
    }
}

/* A point that is refused: those before it are written, and the call can go on behind it. */
static void test_refused_point(void **state)
{
    static const char *const names[] = { "loss", "note", "\xff" };
    static const struct eventlog_scalar wrong[] = { { 3, 1, 1, 1 }, { 1, 1, 1, 1 }, { 2, 1, 1, 1 }, { 0, 1, NAN, 1 } };
    static const char *const why[] = { "no tag", "text", "UTF-8", "finite" };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct eventlog_writer *w = open_with((struct eventlog_writer_options){ 0 });
        struct eventlog_scalar points[] = { { 0, 1, 1, 1 }, wrong[i], { 0, 2, 1, 1 } };
        size_t accepted = 9;

        assert_int_equal(eventlog_writer_text(w, "note", 0, 0, "hello", NULL, NULL), EVENTLOG_OK);
        assert_int_equal(eventlog_writer_scalars(w, names, 3, points, 3, &accepted, &error), EVENTLOG_ERROR_ARGUMENT);
        assert_int_equal(accepted, 1);
        assert_non_null(strstr(error.message, why[i]));
        assert_non_null(strstr(error.message, directory));
        assert_int_equal(eventlog_writer_scalars(w, names, 3, points + 2, 1, NULL, NULL), EVENTLOG_OK);
        assert_int_equal(eventlog_writer_scalars(w, NULL, 0, NULL, 0, &accepted, &error), EVENTLOG_OK);
        assert_int_equal(accepted, 0);
        close_well(w);
        assert_int_equal(read_run().points, 3);
        remove_files();
    }
}

/* With a queue and without: the points are in the file on return, once, however often the call is made again; a refused
 * one is passed over. */
static void test_once(void **state)
{
    (void)state;
    for (int queue = 0; queue < 2; queue++) {
        struct eventlog_writer *w = open_with((struct eventlog_writer_options){ .queue_bytes = queue ? 1 << 20 : 0 });
        struct eventlog_scalar points[9];
        uint64_t done = 5;

        for (int i = 0; i < 9; i++)
            points[i] = (struct eventlog_scalar){ i == 6 ? 2 : 0, i, 5.5, 1 };
        assert_int_equal(eventlog_writer_scalars_once(w, tags, 2, points, 4, 5, &done, &error), EVENTLOG_OK);
        assert_int_equal(done, 9);
        assert_int_equal(read_run().points, 4);
        assert_int_equal(eventlog_writer_scalars_once(w, tags, 2, points, 4, 5, &done, &error), EVENTLOG_OK);
        assert_int_equal(eventlog_writer_scalars_once(w, tags, 2, points, 9, 5, &done, &error),
                         EVENTLOG_ERROR_ARGUMENT);
        assert_int_equal(done, 12);
        assert_int_equal(read_run().points, 6);
        assert_int_equal(eventlog_writer_scalars_once(w, tags, 2, points, 9, 5, &done, &error), EVENTLOG_OK);
        assert_int_equal(done, 14);
        assert_int_equal(eventlog_writer_scalars_once(w, tags, 2, points, 1, 5, &done, &error), EVENTLOG_OK);
        assert_int_equal(done, 14);
        assert_int_equal(eventlog_writer_scalar(w, "loss", 20, 5.5, 1, &error), EVENTLOG_OK);
        assert_int_equal(eventlog_writer_scalars_once(w, NULL, 0, NULL, 0, 14, &done, &error), EVENTLOG_OK);
        assert_int_equal(done, 14);
        assert_int_equal(read_run().points, 9);
        close_well(w);
        assert_int_equal(read_run().points, 9);
        remove_files();
    }
}

/* While the disk is full they wait in the queue, which writes them once there is room. */
static void test_once_on_full_disk(void **state)
{
    (void)state;
    for (int queue = 0; queue < 2; queue++)
        for (long n = 2;; n++) {
            struct io_failing f = { .fail_at = n, .error_number = ENOSPC, .short_writes = 1 };
            const struct io io = io_failing_table(&f);
            struct eventlog_writer_options options = { .queue_bytes = queue ? 1 << 20 : 0 };
            struct eventlog_scalar points[40];
            struct eventlog_writer *w;
            uint64_t done = 0;

            for (int i = 0; i < 40; i++)
                points[i] = (struct eventlog_scalar){ 0, i, 5.5, 1 };
            if (event_writer_open_io(&w, directory, &options, &io, &error) == EVENTLOG_OK) {
                for (int i = 1; i <= 8; i++)
                    assert_int_equal(eventlog_writer_scalars_once(w, tags, 2, points, (size_t)i * 5, 0, &done, &error),
                                     EVENTLOG_OK);
                assert_int_equal(done, 40);
                eventlog_writer_close(w, &error);
                assert_int_equal(read_run().points, 40);
            }
            remove_files();
            if (f.calls < n)
                break;
        }
}

/* The n-th system call fails: going on behind *accepted, every point is in the file once. */
static void test_failing_disk(void **state)
{
    (void)state;
    for (long n = 2;; n++) {
        struct io_failing f = { .fail_at = n, .error_number = ENOSPC, .short_writes = 1 };
        const struct io io = io_failing_table(&f);
        struct eventlog_writer_options options = { .buffer_bytes = 64 };
        struct eventlog_scalar points[40];
        struct eventlog_writer *w;
        size_t done = 0, accepted;

        for (int i = 0; i < 40; i++)
            points[i] = (struct eventlog_scalar){ 0, i, 5.5, 1 };
        if (event_writer_open_io(&w, directory, &options, &io, &error) == EVENTLOG_OK) {
            while (done < 40) {
                int rc = eventlog_writer_scalars(w, tags, 2, points + done, 40 - done, &accepted, &error);

                done += accepted;
                assert_true(rc == EVENTLOG_OK ? done == 40 : rc == EVENTLOG_ERROR_IO && done <= 40);
            }
            eventlog_writer_close(w, &error);
            assert_int_equal(read_run().points, 40);
        }
        remove_files();
        if (f.calls < n)
            break;
    }
}

/* An event is written as it is, whole; one that a loader would give up on is refused. */
static void test_event(void **state)
{
    static const char good[] = "\x09\0\0\0\0\0\0\x16\x40\x10\x07\x2a\x0d\x0a\x0b\x0a\x04loss\x15\0\0\x80\x3f";
    static const struct {
        const char *bytes;
        size_t n;
        const char *why;
    } bad[] = { { "\x09\0\0", 3, "not a serialized message" },
                { "\x2a\x05\x0a\x03\x0a\x01\xff", 7, "UTF-8" },
                { "\x0c", 1, "group" },
                { "\x08\x01", 2, "another type" },
                { "\x09\0\0\0\0\0\0\xf8\x7f", 9, "finite" } };
    struct eventlog_writer *w = open_with((struct eventlog_writer_options){ 0 });
    struct seen seen;

    (void)state;
    assert_int_equal(eventlog_writer_event(w, good, sizeof good - 1, &error), EVENTLOG_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(eventlog_writer_event(w, bad[i].bytes, bad[i].n, &error), EVENTLOG_ERROR_ARGUMENT);
        if (!strstr(error.message, bad[i].why))
            fail_msg("%zu: %s", i, error.message);
    }
    assert_int_equal(eventlog_writer_event(w, "", 0, &error), EVENTLOG_OK); /* an event without anything */
    close_well(w);
    seen = read_run();
    assert_int_equal(seen.points, 1);
    assert_int_equal(seen.steps[0], 7);
}

/* With few values and with many, for which a table is made: the same as by comparing one by one. */
static void test_bucket_counts(void **state)
{
    static const double close[] = { -1e300, -2, -1, -1, -0.0, 1e-12, 1.1e-12, 1, 1.0000001, 1.0000002, 3, 3 },
                        apart[] = { -1e300, -2, -1, -1e-12, -0.0, 1e-12, 1.1e-12, 1, 1.1, 1.2, 3, 1e300 };
    enum { EDGES = sizeof close / sizeof *close, MANY = 20000 };
    static double values[MANY];
    const double *edges = *state ? apart : close;

    for (size_t i = 0; i < MANY; i++)
        values[i] = i % 3 == 0   ? edges[i / 3 % EDGES]
                    : i % 3 == 1 ? nextafter(edges[i / 3 % EDGES], i % 2 ? 9 : -9)
                                 : sin((double)i) * (i % 5 ? 4 : 1e-11);
    values[1] = NAN;
    values[2] = INFINITY;
    values[3] = 0.0;
    values[4] = -0.0;
    for (size_t n = 0; n <= MANY; n += n < 100 ? 1 : MANY / 2 - 50) {
        uint64_t counts[EDGES - 1], wanted[EDGES - 1] = { 0 };

        for (size_t i = 0; i < n; i++) {
            size_t k = 0;

            if (!(values[i] >= edges[0] && values[i] <= edges[EDGES - 1]))
                continue;
            while (k + 2 < EDGES && edges[k + 1] <= values[i])
                k++;
            wanted[k]++;
        }
        assert_int_equal(eventlog_bucket_counts(values, n, edges, EDGES, counts, &error), EVENTLOG_OK);
        assert_memory_equal(counts, wanted, sizeof counts);
    }
    assert_int_equal(eventlog_bucket_counts(values, 1, edges, 1, NULL, &error), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_bucket_counts(values, 1, (double[]){ 1, 0 }, 2, NULL, &error), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_bucket_counts(values, 1, (double[]){ 1, NAN }, 2, NULL, &error), EVENTLOG_ERROR_ARGUMENT);
}

/* TensorFlow's default limits have a way of their own: the same as with an edge of those between two others, which does
 * not take it. */
static void test_default_buckets(void **state)
{
    enum { LIMITS = 1549, MANY = 5 * LIMITS + 7 };
    static double edges[LIMITS + 1], values[MANY];
    static uint64_t counts[LIMITS], wanted[LIMITS];
    double limit = 1e-12;

    (void)state;
    for (size_t i = LIMITS / 2 + 1; i < LIMITS; i++, limit *= 1.1) {
        edges[i] = limit;
        edges[LIMITS - 1 - i] = -limit;
    }
    assert_true(limit >= 1e20 && edges[LIMITS - 1] < 1e20);
    edges[LIMITS] = edges[LIMITS - 1]; /* a bucket more, for the last edge alone */
    for (size_t i = 0; i < LIMITS; i++) {
        values[5 * i] = edges[i];
        values[5 * i + 1] = nextafter(edges[i], INFINITY);
        values[5 * i + 2] = nextafter(edges[i], -INFINITY);
        values[5 * i + 3] = edges[i] * 1.05;
        values[5 * i + 4] = sin((double)i);
    }
    memcpy(values + (size_t)5 * LIMITS, (double[]){ NAN, INFINITY, -INFINITY, -0.0, DBL_MAX, -DBL_MAX, 5e-324 },
           7 * sizeof *values);
    for (size_t n = 0; n <= MANY; n += n < 20 ? 1 : MANY - 20) {
        assert_int_equal(eventlog_bucket_counts(values, n, edges, LIMITS, counts, &error), EVENTLOG_OK);
        assert_int_equal(eventlog_bucket_counts(values, n, edges, LIMITS + 1, wanted, &error), EVENTLOG_OK);
        wanted[LIMITS - 2] += wanted[LIMITS - 1];
        assert_memory_equal(counts, wanted, (LIMITS - 1) * sizeof *counts);
    }
}

/* With edges of both ways of counting. */
static void check_range(const double *values, size_t n, double min, double max)
{
    static const double edges[] = { -1, 0, 1 };
    static uint64_t counts[HISTOGRAM_LIMITS];
    uint64_t wanted[2];

    for (int is_default = 0; is_default < 2; is_default++) {
        double found[2] = { 7, 7 };

        assert_int_equal(eventlog_bucket_counts_range(values, n, is_default ? histogram_limits()->limits + 1 : edges,
                                                      is_default ? HISTOGRAM_LIMITS - 2 : 3, counts, &found[0],
                                                      &found[1], &error),
                         EVENTLOG_OK);
        assert_memory_equal(found, ((double[]){ min, max }), sizeof found); /* the signs of zeros, too */
        if (!is_default) {
            assert_int_equal(eventlog_bucket_counts(values, n, edges, 3, wanted, &error), EVENTLOG_OK);
            assert_memory_equal(counts, wanted, sizeof wanted);
        }
    }
}

static void test_range(void **state)
{
    enum { MANY = 5000 };
    static double values[MANY];
    uint64_t counts[2];
    double min, max;

    (void)state;
    for (size_t i = 0; i < MANY; i++)
        values[i] = (double)((i * 577) % MANY) - 400;
    check_range(values, MANY, -400, MANY - 401);
    for (size_t n = 1; n < 20; n++) {
        double low = values[0], high = values[0];

        for (size_t i = 1; i < n; i++) {
            low = values[i] < low ? values[i] : low;
            high = values[i] > high ? values[i] : high;
        }
        check_range(values, n, low, high);
    }
    check_range((double[]){ 0.0, -0.0 }, 2, 0.0, 0.0);
    check_range((double[]){ -0.0, 0.0, 3 }, 3, -0.0, 3);
    check_range((double[]){ INFINITY, INFINITY }, 2, INFINITY, INFINITY);
    values[MANY - 1] = -INFINITY;
    check_range(values, MANY, -INFINITY, MANY - 401);
    values[700] = NAN;
    check_range(values, MANY, NAN, NAN);
    assert_int_equal(eventlog_bucket_counts_range(values, 0, (double[]){ 0, 1 }, 2, counts, &min, &max, &error),
                     EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_bucket_counts_range(values, 1, (double[]){ 1, 0 }, 2, counts, &min, &max, &error),
                     EVENTLOG_ERROR_ARGUMENT);
}

static void test_png(void **state)
{
    static const uint8_t pixels[] = { 1, 2, 3, 4, 5, 6 };
    void *bytes;
    size_t n;

    (void)state;
    assert_int_equal(eventlog_png(pixels, 1, 2, 3, &bytes, &n, &error), EVENTLOG_OK);
    assert_true(n > 8);
    assert_memory_equal(bytes, "\x89PNG\r\n\x1a\n", 8);
    eventlog_free(bytes);
    eventlog_free(NULL);
    assert_int_equal(eventlog_png(pixels, 1, 2, 5, &bytes, &n, &error), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_png(pixels, 0, 2, 3, &bytes, &n, &error), EVENTLOG_ERROR_ARGUMENT);
    assert_null(bytes);
}

int main(void)
{
    static int apart = 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version),
        cmocka_unit_test_setup_teardown(test_same_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused_point, setup, teardown),
        cmocka_unit_test_setup_teardown(test_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_once_on_full_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failing_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_event, setup, teardown),
        cmocka_unit_test_prestate(test_bucket_counts, NULL), /* edges close to each other, and apart */
        cmocka_unit_test_prestate(test_bucket_counts, &apart),
        cmocka_unit_test(test_default_buckets),
        cmocka_unit_test(test_range),
        cmocka_unit_test(test_png),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
