/* Every call to the system of a writer's life fails, alone and with those behind it, with each option that adds calls:
 * files stay whole, and what was accepted is in them. */
#include "eventlog/write/event_writer.h"

#include "tests/check.h"
#include "tests/eventlog/event_run.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

/* A disk on which the calls number first to last fail; the first of them, if it is a write, after half its bytes. */
struct disk {
    atomic_long calls;
    long first, last;
    int error_number;
};

static int fails(struct disk *d, long *number)
{
    *number = atomic_fetch_add(&d->calls, 1) + 1;
    errno = d->error_number;
    return *number >= d->first && *number <= d->last;
}

static int disk_open(void *d, const char *path, int flags, mode_t mode)
{
    long number;

    return fails(d, &number) ? -1 : io_real.open(NULL, path, flags, mode);
}

static ssize_t disk_write(void *context, int fd, const void *bytes, size_t n)
{
    struct disk *d = context;
    long number;

    if (!fails(d, &number))
        return io_real.write(NULL, fd, bytes, n);
    return number == d->first && n > 1 ? io_real.write(NULL, fd, bytes, n / 2) : -1;
}

static int disk_fsync(void *d, int fd)
{
    long number;

    return fails(d, &number) ? -1 : io_real.fsync(NULL, fd);
}

static int disk_ftruncate(void *d, int fd, off_t length)
{
    long number;

    return fails(d, &number) ? -1 : io_real.ftruncate(NULL, fd, length);
}

/* Calls n to n + more of a life with these options fail, n = 1, 2, ...: files are whole, and hold what was accepted. */
static void fail_from_nth(struct eventlog_writer_options options, long more)
{
    for (long n = 1;; n++) {
        struct disk disk = { .first = n, .last = n + more, .error_number = n % 2 ? ENOSPC : EIO };
        struct io io = io_real;
        struct eventlog_writer_statistics s;
        struct eventlog_writer *w;
        int rc;

        io.open = disk_open;
        io.write = disk_write;
        io.fsync = disk_fsync;
        io.ftruncate = disk_ftruncate;
        io.context = &disk;
        rc = event_writer_open_io(&w, directory, &options, &io, &error);
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
            else if (atomic_load(&disk.calls) > disk.last)
                read_run(); /* else even the last cut failed */
        } else {
            assert_int_equal(rc, EVENTLOG_ERROR_IO);
            assert_int_equal(count_files(), 0);
        }
        remove_files();
        if (atomic_load(&disk.calls) < n)
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
        fail_from_nth(lives[i], 0);
        fail_from_nth(lives[i], 1);
        fail_from_nth(lives[i], 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_failing_calls) };

    return cmocka_run_group_tests(tests, setup, teardown);
}
