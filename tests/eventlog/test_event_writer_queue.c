/* The queue of a writer, over a disk that can be stopped or full: what is dropped, what is lost, what many threads put
 * in, and a child that is forked. */
#include "eventlog/write/event_writer.h"

#include "tests/check.h"
#include "tests/eventlog/event_run.h"
#include "tests/failing_io.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

/* A disk that can be stopped, or full. */
struct slow_disk {
    atomic_int stopped, full;
};

static ssize_t slow_write(void *context, int fd, const void *bytes, size_t n)
{
    struct slow_disk *disk = context;
    struct timespec moment = { 0, 1000000 };

    while (atomic_load(&disk->stopped))
        nanosleep(&moment, NULL);
    if (atomic_load(&disk->full)) {
        errno = ENOSPC;
        return -1;
    }
    return io_real.write(NULL, fd, bytes, n);
}

static void test_full_queue_drops(void **state)
{
    struct slow_disk disk = { 0 };
    struct io io = io_real;
    struct eventlog_writer_options options = { .queue_bytes = 4000,
                                               .buffer_bytes = 100,
                                               .when_full = EVENTLOG_WHEN_FULL_DROP };
    struct eventlog_writer_statistics s;
    struct eventlog_writer *w;
    (void)state;

    io.write = slow_write;
    io.context = &disk;
    assert_int_equal(event_writer_open_io(&w, directory, &options, &io, &error), EVENTLOG_OK);
    atomic_store(&disk.stopped, 1);
    put_steps(w, "loss", 0, 1000); /* none of these waits for the disk */
    s = statistics(w);
    assert_true(s.dropped > 800 && s.events == 1000 - s.dropped && s.queued <= s.events);
    atomic_store(&disk.stopped, 0);
    assert_int_equal(eventlog_writer_flush(w, &error), EVENTLOG_OK);
    put_steps(w, "loss", 1000, 1001);
    close_well(w);
    assert_int_equal(read_run().points, s.events + 1);
    remove_files();
}

struct caller {
    pthread_t thread;
    struct eventlog_writer *w;
    int number;
};

static void *call(void *argument)
{
    struct caller *c = argument;
    char tag[20], text[20];
    intptr_t failures = 0;

    snprintf(tag, sizeof tag, "loss/%d", c->number);
    snprintf(text, sizeof text, "text/%d", c->number);
    for (int i = 0; i < 300; i++) {
        failures += eventlog_writer_scalar(c->w, tag, i, 0, 1, NULL) != EVENTLOG_OK;
        failures += eventlog_writer_text(c->w, text, i, 0, "hello", &described, NULL) != EVENTLOG_OK;
        if (i % 100 == 50)
            failures += eventlog_writer_flush(c->w, NULL) != EVENTLOG_OK;
        if (i % 100 == 70) {
            struct eventlog_writer_statistics s;

            failures += eventlog_writer_statistics(c->w, &s, NULL) != EVENTLOG_OK || !*eventlog_writer_path(c->w);
        }
    }
    return (void *)failures;
}

/* Several threads, a queue that is often full, rotation and fsync all at once: nothing is lost, none is torn. */
static void test_queue_of_many(void **state)
{
    struct eventlog_writer_options options = { .queue_bytes = 2000,
                                               .buffer_bytes = 500,
                                               .rotate_bytes = 20000,
                                               .sync = EVENTLOG_SYNC_EVERY,
                                               .sync_seconds = 0.05 };
    struct caller callers[4];
    struct eventlog_writer *w = open_with(options);
    struct seen s;
    (void)state;

    for (int i = 0; i < 4; i++) {
        callers[i] = (struct caller){ .w = w, .number = i };
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *failures;

        assert_int_equal(pthread_join(callers[i].thread, &failures), 0);
        assert_null(failures);
    }
    assert_int_equal(statistics(w).events, 2400);
    close_well(w);
    s = read_run();
    assert_int_equal(s.points, 2400);
    assert_true(s.files > 3);
    assert_int_equal(s.named, 1200);
    assert_in_range(s.described, 4, 4 * s.files);
    remove_files();
}

/* The disk is full for a while: what the queue holds waits, what does not fit is refused and counted. */
static void test_queue_on_a_full_disk(void **state)
{
    struct slow_disk disk = { 0 };
    struct io io = io_real;
    struct eventlog_writer_options options = { .queue_bytes = 4000, .buffer_bytes = 100 };
    struct eventlog_writer_statistics s;
    struct eventlog_writer *w;
    uint64_t refused = 0;
    (void)state;

    io.write = slow_write;
    io.context = &disk;
    assert_int_equal(event_writer_open_io(&w, directory, &options, &io, &error), EVENTLOG_OK);
    atomic_store(&disk.full, 1);
    for (int i = 0; i < 1000; i++)
        refused += eventlog_writer_scalar(w, "loss", i, 5.5, 1, &error) == EVENTLOG_ERROR_IO;
    assert_non_null(strstr(error.message, "event refused"));
    assert_int_equal(error.system, ENOSPC);
    assert_int_equal(eventlog_writer_flush(w, &error), EVENTLOG_ERROR_IO);
    s = statistics(w);
    assert_true(refused > 800 && s.dropped == refused && s.events == 1000 - refused && s.queued == s.events);
    assert_true(s.errors > 0 && s.last_error.system == ENOSPC);
    atomic_store(&disk.full, 0);
    assert_int_equal(eventlog_writer_flush(w, &error), EVENTLOG_OK);
    put_steps(w, "loss", 1000, 1001);
    close_well(w);
    assert_int_equal(read_run().points, s.events + 1);
    remove_files();
}

/* Close on a disk that stays full says how many are lost. */
static void test_close_tells_what_is_lost(void **state)
{
    struct eventlog_writer_options options[] = { { .queue_bytes = 4000 }, { 0 } };
    (void)state;

    for (int i = 0; i < 2; i++) {
        struct io_failing failing = { .error_number = ENOSPC, .stay_failed = 1, .fail_at = 3 };
        struct io io = io_failing_table(&failing);
        struct eventlog_writer *w;

        assert_int_equal(event_writer_open_io(&w, directory, &options[i], &io, &error), EVENTLOG_OK);
        put_steps(w, "loss", 0, 7);
        assert_int_equal(eventlog_writer_close(w, &error), EVENTLOG_ERROR_IO);
        assert_non_null(strstr(error.message, "the last 7 events are lost"));
        assert_int_equal(read_run().points, 0);
        remove_files();
    }
}

/* Without calls the queue's thread writes all the same. */
static void test_queue_flushes_by_time(void **state)
{
    struct eventlog_writer_options options = { .queue_bytes = 1 << 20, .flush_seconds = 0.01 };
    struct eventlog_writer *w = open_with(options);
    (void)state;

    put_steps(w, "loss", 0, 3);
    for (int i = 0; i < 600000 && statistics(w).queued; i++)
        nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
    assert_int_equal(read_run().points, 3);
    close_well(w);
    remove_files();
}

static void test_long_event_through_a_small_queue(void **state)
{
    struct eventlog_writer_options options = { .queue_bytes = 1000 };
    struct eventlog_writer *w = open_with(options);
    char *text = malloc(3000001);
    (void)state;

    assert_non_null(text);
    memset(text, 'x', 3000000);
    text[3000000] = 0;
    put_steps(w, "loss", 0, 1);
    for (int i = 1; i < 4; i++)
        assert_int_equal(eventlog_writer_text(w, "long", i, 0, text, NULL, &error), EVENTLOG_OK);
    close_well(w);
    free(text);
    assert_int_equal(read_run().points, 4);
    remove_files();
}

static void test_forked_child_of_a_queue(void **state)
{
    struct eventlog_writer_options options = { .queue_bytes = 1 << 20, .flush_seconds = 1000 };
    struct eventlog_writer *w = open_with(options);
    int status;
    pid_t pid;
    (void)state;

    put_steps(w, "loss", 0, 3);
    if (!(pid = fork())) {
        struct eventlog_writer_statistics s;

        _exit(eventlog_writer_scalar(w, "loss", 4, 0, 1, NULL) == EVENTLOG_ERROR_ARGUMENT &&
                      eventlog_writer_text(w, "note", 4, 0, "x", NULL, NULL) == EVENTLOG_ERROR_ARGUMENT &&
                      eventlog_writer_flush(w, NULL) == EVENTLOG_ERROR_ARGUMENT && *eventlog_writer_path(w) &&
                      eventlog_writer_statistics(w, &s, NULL) == EVENTLOG_ERROR_ARGUMENT &&
                      eventlog_writer_close(w, &error) == EVENTLOG_ERROR_ARGUMENT && strstr(error.message, "forked")
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    put_steps(w, "loss", 3, 5);
    close_well(w);
    assert_int_equal(read_run().points, 5);
    remove_files();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_queue_drops),        cmocka_unit_test(test_queue_of_many),
        cmocka_unit_test(test_queue_on_a_full_disk),    cmocka_unit_test(test_close_tells_what_is_lost),
        cmocka_unit_test(test_queue_flushes_by_time),   cmocka_unit_test(test_long_event_through_a_small_queue),
        cmocka_unit_test(test_forked_child_of_a_queue),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
