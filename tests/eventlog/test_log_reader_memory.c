/*
 * The n-th allocation fails while a log is read, n = 1, 2, ... until none does: no call crashes or leaks
 * (AddressSanitizer looks), each says ERROR_MEMORY or does its work, and the reader can be used afterwards.
 */
#include "eventlog/eventlog.h"

#include "tests/check.h"
#include "tests/failing_allocation.h"
#include "tests/eventlog/remove_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CALLS_MAX = 10000, VALUES = 2 * (4 + 40) };

static char directory[64];

/* Two runs: values of each kind, and points of so many tags that every table grows. */
static void write_run(const char *name)
{
    static const double numbers[] = { 1, 2, 3, 4, 5, 6 };
    static const uint8_t pixels[12] = { 1 };
    static const int64_t shape[] = { 2, 3 };
    const struct eventlog_value_options o = { .display_name = "Name", .description = "text" };
    struct eventlog_writer *w;
    char path[128], tag[20];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    assert_int_equal(eventlog_writer_open(&w, path, NULL, NULL), 0);
    assert_int_equal(
        eventlog_writer_tensor(w, "tensor", 1, 5, EVENTLOG_DTYPE_DOUBLE, shape, 2, numbers, sizeof numbers, &o, NULL),
        0);
    assert_int_equal(eventlog_writer_histogram_doubles(w, "histogram", 1, 5, numbers, 6, NULL, NULL), 0);
    assert_int_equal(eventlog_writer_image(w, "image", 1, 5, pixels, 1, 2, 2, 3, NULL, NULL), 0);
    assert_int_equal(eventlog_writer_text(w, "text", 1, 5, "hello", NULL, NULL), 0);
    for (int i = 0; i < 40; i++) {
        snprintf(tag, sizeof tag, "tag_%d", i % 20);
        assert_int_equal(eventlog_writer_scalar(w, tag, i / 20, 5, 1, NULL), 0);
    }
    assert_int_equal(eventlog_writer_close(w, NULL), 0);
}

static int setup(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/test_reader_memory.XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    write_run("a");
    write_run("b/c");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return remove_tree(directory);
}

static void good_or_memory(int rc)
{
    if (rc < 0 && rc != EVENTLOG_ERROR_MEMORY)
        fail_msg("allocation %ld: code %d", (long)fail_at, rc);
}

/* Goes on to the end, errors or not; how many values there were. */
static size_t read_all(struct eventlog_reader *r)
{
    size_t values = 0;
    int rc;

    for (int i = 0; (rc = eventlog_reader_next(r, NULL)) != EVENTLOG_READ_END && i < CALLS_MAX; i++) {
        const struct eventlog_value *v;
        const struct eventlog_bucket *rows;
        struct eventlog_tensor tensor;
        struct eventlog_blobs blobs;
        size_t count;

        good_or_memory(rc);
        for (; rc == EVENTLOG_READ_EVENT && (v = eventlog_reader_value(r)); values++) {
            if (v->kind == EVENTLOG_KIND_TENSOR)
                good_or_memory(eventlog_reader_tensor(r, &tensor, NULL));
            if (v->kind == EVENTLOG_KIND_HISTOGRAM)
                good_or_memory(eventlog_reader_histogram(r, &rows, &count, NULL));
            if (v->kind == EVENTLOG_KIND_IMAGE || v->kind == EVENTLOG_KIND_TEXT)
                good_or_memory(eventlog_reader_blobs(r, &blobs, NULL));
        }
    }
    assert_int_equal(rc, EVENTLOG_READ_END);
    return values;
}

static void test_reader(void **state)
{
    static const char *const tags[] = { "*" };
    const struct eventlog_reader_options o = { .tags = tags, .tag_count = 1, .runs = tags, .run_count = 1 };
    long reached = 1;
    (void)state;

    for (long n = 1; reached; n++) {
        struct eventlog_reader *r;
        size_t values = 0;
        int rc;

        fail_at = n;
        calls = 0;
        if ((rc = eventlog_reader_open(&r, directory, &o, NULL)) == EVENTLOG_OK) {
            values = read_all(r);
            eventlog_reader_descriptor(r);
            read_all(r); /* a second round, with another listing */
            reached = calls >= n;
            fail_at = 0;
            assert_int_equal(read_all(r), 0);
            eventlog_reader_close(r);
        }
        fail_at = 0;
        good_or_memory(rc);
        if (!reached)
            assert_int_equal(values, VALUES);
        assert_true(values <= VALUES);
    }
}

static void test_points(void **state)
{
    static const enum eventlog_view views[] = { EVENTLOG_VIEW_ALL, EVENTLOG_VIEW_TENSORBOARD };
    (void)state;

    for (size_t i = 0; i < 2; i++)
        for (long n = 1;; n++) {
            struct eventlog_points *p;
            size_t count;
            int rc;

            fail_at = n;
            calls = 0;
            rc = eventlog_points_read(&p, directory, views[i], NULL, NULL);
            fail_at = 0;
            good_or_memory(rc);
            if (rc != EVENTLOG_OK) {
                assert_null(p);
                continue;
            }
            assert_non_null(eventlog_points_series(p, 47));
            assert_null(eventlog_points_series(p, 48));
            eventlog_points_of(p, 47, &count);
            eventlog_points_free(p);
            if (calls < n)
                break;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reader),
        cmocka_unit_test(test_points),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
