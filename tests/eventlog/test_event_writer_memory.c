/*
 * The n-th allocation fails, n = 1, 2, ... until none does: no call crashes or leaks (AddressSanitizer looks), each
 * says ERROR_MEMORY or does its work, the files are whole and hold every event that was accepted.
 */
#include "eventlog/write/event_writer.h"

#include "base/file.h"
#include "eventlog/format/event_decode.h"
#include "eventlog/format/record.h"
#include "eventlog/read/log_directory.h"
#include "tests/check.h"
#include "tests/failing_allocation.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct log_input input;
static char directory[64];

static int setup(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/test_writer_memory.XXXXXX");
    return mkdtemp(directory) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return rmdir(directory);
}

/* Events other than first records and session starts in the run, which must be whole; and removes it. */
static size_t count_and_remove(void)
{
    struct log_directory d;
    char *path = directory;
    size_t count = 0;

    assert_int_equal(log_directory_list(&d, &input, &path, 1, NULL), OK);
    for (size_t i = 0; d.count && i < d.runs[0].file_count; i++) {
        struct buffer bytes = BUFFER_EMPTY;
        struct record_parser p;
        struct record r;

        assert_int_equal(file_read(d.runs[0].files[i], 1 << 28, &bytes, NULL), OK);
        record_parser_init(&p, 0, 0);
        while (record_next(&p, (uint8_t *)bytes.data + p.position, bytes.length - p.position, bytes.length, &r) ==
               RECORD_DATA) {
            struct event event;

            assert_int_equal(event_decode(r.data, r.length, &event, NULL), OK);
            count += event.what != EVENT_FILE_VERSION && event.what != EVENT_SESSION_LOG;
        }
        assert_int_equal(p.offset, bytes.length);
        buffer_release(&bytes);
        unlink(d.runs[0].files[i]);
    }
    log_directory_release(&d);
    return count;
}

/* One call of each family; how many events were accepted. Every refusal is for want of memory. */
static size_t log_everything(struct eventlog_writer *w, int64_t step)
{
    static const float values[] = { 0, 0.25f, 0.5f, 1 };
    static const uint8_t labels[] = { 0, 1, 0, 1 };
    static const int64_t shape[] = { 2, 2 };
    static const char *const cells[] = { "a", "b", "c", "d" };
    struct eventlog_value_options options = { .display_name = "shown", .description = "described" };
    struct eventlog_hparam hparam = { "rate", EVENTLOG_HPARAM_NUMBER, 0.1, NULL };
    struct eventlog_node node = { .name = "a", .operation = "Const" };
    const char *tags[] = { "loss" };
    struct eventlog_chart chart = { .title = "c", .tags = tags, .tag_count = 1 };
    struct eventlog_category category = { .title = "k", .charts = &chart, .chart_count = 1 };
    struct eventlog_error e[12];
    int rc[12], n = 0;
    size_t accepted = 0;

    memset(e, 0, sizeof e);
    rc[n] = eventlog_writer_scalar(w, step ? "loss" : "accuracy", step, 0, 1, &e[n]), n++;
    rc[n] = eventlog_writer_histogram_floats(w, "h", step, 0, values, 4, &options, &e[n]), n++;
    rc[n] = eventlog_writer_text(w, "t", step, 0, "hello", &options, &e[n]), n++;
    rc[n] = eventlog_writer_text_table(w, "tt", step, 0, cells, 2, 2, NULL, &e[n]), n++;
    rc[n] = eventlog_writer_tensor(w, "v", step, 0, EVENTLOG_DTYPE_FLOAT, shape, 2, values, sizeof values, NULL, &e[n]),
    n++;
    rc[n] = eventlog_writer_image_floats(w, "i", step, 0, values, 1, 2, 2, 1, NULL, &e[n]), n++;
    rc[n] = eventlog_writer_audio(w, "a", step, 0, values, 1, 4, 1, 8000, NULL, &e[n]), n++;
    rc[n] = eventlog_writer_pr_curve(w, "p", step, 0, labels, values, NULL, 4, NULL, &e[n]), n++;
    rc[n] = eventlog_writer_session_start(w, 0, &hparam, 1, NULL, &e[n]), n++;
    rc[n] = eventlog_writer_layout(w, 0, &category, 1, &e[n]), n++;
    rc[n] = eventlog_writer_graph(w, 0, &node, 1, &e[n]), n++;
    rc[n] = eventlog_writer_flush(w, &e[n]), n++;
    for (int i = 0; i < n; i++) {
        accepted += rc[i] == EVENTLOG_OK && i < 11;
        if (rc[i] != EVENTLOG_OK && rc[i] != EVENTLOG_ERROR_MEMORY)
            fail_msg("call %d: %d, %s", i, rc[i], e[i].message);
        assert_true(rc[i] == EVENTLOG_OK || *e[i].message);
    }
    return accepted;
}

static void fail_each(struct eventlog_writer_options options)
{
    long n = 1;

    for (int done = 0; !done; n++) {
        struct eventlog_writer *w;
        struct eventlog_error e;
        size_t accepted = 0;
        int rc, closed = EVENTLOG_OK;

        atomic_store(&calls, 0);
        atomic_store(&fail_at, n);
        for (int again = 0; again < 2; again++) { /* the second time there is something to resume */
            if ((rc = eventlog_writer_open(&w, directory, &options, &e)) == EVENTLOG_OK) {
                accepted += log_everything(w, 0);
                accepted += log_everything(w, 1);
                closed = eventlog_writer_close(w, &e);
            }
            assert_true(rc == EVENTLOG_OK || (rc == EVENTLOG_ERROR_MEMORY && *e.message));
            assert_int_equal(closed, EVENTLOG_OK);
        }
        done = atomic_load(&calls) < n;
        atomic_store(&fail_at, 0);
        /* A rotation that fails for want of memory is told by the call, whose event is taken all the same. */
        assert_in_range(count_and_remove(), accepted, accepted + (options.rotate_bytes > 0));
    }
    assert_true(n > 50);
}

static void test_one_file(void **state)
{
    (void)state;
    fail_each((struct eventlog_writer_options){ 0 });
    fail_each((struct eventlog_writer_options){ .buffer_bytes = 64 });
}

static void test_rotation_and_resume(void **state)
{
    (void)state;
    fail_each((struct eventlog_writer_options){ .rotate_bytes = 500 });
    fail_each((struct eventlog_writer_options){ .resume = EVENTLOG_RESUME_APPEND });
    fail_each((struct eventlog_writer_options){ .resume = EVENTLOG_RESUME_PURGE, .purge_step = 1 });
}

static void test_queue(void **state)
{
    (void)state;
    fail_each((struct eventlog_writer_options){ .queue_bytes = 1 << 20 });
    fail_each((struct eventlog_writer_options){ .queue_bytes = 1 << 20, .rotate_bytes = 500 });
}

/* A buffer takes memory as it fills, not as it is asked for: a program may have hundreds of writers. */
static void test_large_buffer(void **state)
{
    const struct eventlog_writer_options options = { .buffer_bytes = (size_t)1 << 30, .flush_seconds = 1e9 };
    struct eventlog_writer *w;
    size_t before = mallinfo2().hblkhd;

    (void)state;
    assert_int_equal(eventlog_writer_open(&w, directory, &options, NULL), EVENTLOG_OK);
    assert_int_equal(eventlog_writer_scalar(w, "a", 1, 1, 1, NULL), EVENTLOG_OK);
    assert_in_range(mallinfo2().hblkhd - before, 0, 1 << 20);
    assert_int_equal(eventlog_writer_close(w, NULL), EVENTLOG_OK);
    assert_int_equal(count_and_remove(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_file),
        cmocka_unit_test(test_rotation_and_resume),
        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_large_buffer),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
