/* Every call to the system of a writer's life fails once, with each option that adds calls: files stay whole, and what
 * was accepted is in them. */
#include "eventlog/event_writer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/eventlog/event_run.h"

/* The n-th call of a life with these options fails, n = 1, 2, ...: files are whole, and hold what was accepted. */
static void fail_nth(struct eventlog_writer_options options, int error_number, int short_writes)
{
    for (long n = 1;; n++) {
        struct io_failing failing = { .fail_at = n, .error_number = error_number, .short_writes = short_writes };
        struct io io = io_failing_table(&failing);
        struct eventlog_writer_statistics s;
        struct eventlog_writer *w;
        int rc = event_writer_open_io(&w, directory, &options, &io, &error);

        if (rc == EVENTLOG_OK) {
            for (int i = 0; i < 40; i++) {
                eventlog_writer_scalar(w, "loss", i, 5.5, 1, NULL);
                eventlog_writer_text(w, "note", i, 5.5, "hello", NULL, NULL);
                if (i % 7 == 0)
                    eventlog_writer_flush(w, NULL);
                if (i % 13 == 0)
                    eventlog_writer_sync(w, NULL);
            }
            s = statistics(w);
            assert_int_equal(s.events + s.dropped, 80);
            rc = eventlog_writer_close(w, &error);
            assert_true(rc == EVENTLOG_OK || rc == EVENTLOG_ERROR_IO);
            if (rc == EVENTLOG_OK || !strstr(error.message, "lost"))
                assert_int_equal(read_run().points, s.events);
            else
                read_run();
        } else {
            assert_int_equal(rc, EVENTLOG_ERROR_IO);
            assert_int_equal(count_files(), 0);
        }
        remove_files();
        if (failing.calls < n)
            break;
    }
}

static void test_failing_calls(void **state)
{
    static const struct eventlog_writer_options lives[] = {
        { .buffer_bytes = 64, .sync = EVENTLOG_SYNC_AT_FLUSH },
        { .buffer_bytes = 64, .sync = EVENTLOG_SYNC_EVERY, .sync_seconds = 1e-9 },
        { .buffer_bytes = 200, .rotate_bytes = 500, .sync = EVENTLOG_SYNC_AT_FLUSH },
        { .resume = EVENTLOG_RESUME_APPEND },
        { .resume = EVENTLOG_RESUME_PURGE, .purge_step = 3, .rotate_bytes = 1000 },
        { .queue_bytes = 1 << 20, .buffer_bytes = 200 },
        { .queue_bytes = 1000, .buffer_bytes = 64, .rotate_bytes = 500, .sync = EVENTLOG_SYNC_AT_FLUSH },
        { .queue_bytes = 1000, .buffer_bytes = 64, .when_full = EVENTLOG_WHEN_FULL_DROP },
    };
    (void)state;

    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
        fail_nth(lives[i], ENOSPC, 1);
        fail_nth(lives[i], EIO, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_failing_calls) };

    return cmocka_run_group_tests(tests, setup, teardown);
}
