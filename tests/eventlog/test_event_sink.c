/* What event_sink.h promises, of both sinks; and what only the direct one does. */
#include "eventlog/write/event_sink.h"

#include "eventlog/format/event_encode.h"
#include "tests/check.h"
#include "tests/eventlog/event_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

static const struct kind {
    int (*start)(struct event_sink **out, struct event_file *file, const struct event_sink_options *options,
                 struct error *e);
    int finds_out_late, frees_in_child;
} kinds[] = { { event_direct_start, 0, 1 }, { event_queue_start, 1, 0 } };

static struct event_file file;
static struct event_sink *sink;
static const struct event_sink_options usual = { .bytes = 1600, .batch = 800, .flush_seconds = 1000 };
static struct error e;

/* A disk with room or without. */
static atomic_int full;

static int disk_open(void *context, const char *path, int flags, mode_t mode)
{
    errno = ENOSPC;
    return atomic_load(&full) ? -1 : io_real.open(context, path, flags, mode);
}

static ssize_t disk_write(void *context, int fd, const void *bytes, size_t n)
{
    errno = ENOSPC;
    return atomic_load(&full) ? -1 : io_real.write(context, fd, bytes, n);
}

static void begin(const struct kind *kind, struct event_sink_options options)
{
    static struct io io;

    io = io_real;
    io.open = disk_open;
    io.write = disk_write;
    full = 0;
    e = (struct error){ 0 };
    assert_int_equal(event_file_create(&file, &io, directory, "", "test", NULL), OK);
    assert_int_equal(kind->start(&sink, &file, &options, &e), OK);
}

/* Begun: one record. */
static int put_begun(int64_t step)
{
    return sink->operations->put(sink, event_encode_scalar(event_sink_place(sink), "t", 1, step, 5.5, 1), &e);
}

/* One record, with room for so many bytes. */
static int put_in(size_t room, int64_t step)
{
    int rc;

    e.code = OK;
    if ((rc = sink->operations->begin(sink, room, &e)) == OK)
        return put_begun(step);
    sink->operations->leave(sink);
    return rc;
}

static int put(int64_t step)
{
    return put_in(100, step);
}

static struct event_sink_state state_of(void)
{
    struct event_sink_state s;

    sink->operations->enter(sink);
    sink->operations->state(sink, &s);
    sink->operations->leave(sink);
    return s;
}

static int flush(int how)
{
    return sink->operations->flush(sink, how, &e);
}

/* Nothing was lost, so many points are in so many files. */
static void end(size_t points, size_t files)
{
    uint64_t lost;

    assert_int_equal(sink->operations->stop(sink, &lost, &e), OK);
    assert_int_equal(lost, 0);
    assert_int_equal(event_file_close(&file, NULL), OK);
    assert_int_equal(read_run().points, points);
    assert_int_equal(count_files(), files);
    remove_files();
}

static void waits_until_flushed(const struct kind *kind)
{
    begin(kind, usual);
    for (int i = 0; i < 3; i++)
        assert_int_equal(put(i), OK);
    assert_int_equal(state_of().queued, 3);
    assert_int_equal(flush(0), OK);
    assert_int_equal(state_of().queued, 0);
    assert_int_equal(state_of().file.syncs, 0);
    assert_int_equal(read_run().points, 3);
    assert_int_equal(flush(EVENT_SINK_SYNC), OK);
    assert_int_equal(state_of().file.syncs, 1);
    assert_string_equal(state_of().path, event_file_path(&file));
    assert_int_equal(put(3), OK);
    end(4, 1);
}

/* It is taken all the same. */
static void answers_what_was_wrong_before(const struct kind *kind)
{
    begin(kind, usual);
    assert_int_equal(sink->operations->begin(sink, 100, &e), OK);
    error_set(&e, ERR_PEER, "before");
    assert_int_equal(put_begun(0), ERR_PEER);
    assert_string_equal(e.message, "before");
    end(1, 1);
}

static void refuses_while_writing_fails(const struct kind *kind)
{
    int64_t taken = 0;

    begin(kind, usual);
    assert_int_equal(put(taken++), OK);
    full = 1;
    flush(0);
    while (taken < 100 && !strstr(e.message, "event refused, the queue is full: ") &&
           !strstr(e.message, "event refused, 2 buffers are full: "))
        taken += put(taken) != ERR_IO || !strstr(e.message, "refused");
    assert_in_range(taken, 20, 60);
    assert_int_equal(e.system, ENOSPC);
    assert_int_equal(state_of().queued, taken);
    full = 0;
    assert_int_equal(flush(0), OK);
    end((size_t)taken, 1);
}

static void lets_one_long_event_wait_alone(const struct kind *kind)
{
    begin(kind, usual);
    assert_int_equal(put(0), OK);
    assert_int_equal(put_in(1 << 20, 1), OK);
    assert_int_equal(put(2), OK);
    end(3, 1);
}

static void rotates_between_records(const struct kind *kind)
{
    begin(kind, usual);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sink->operations->begin(sink, 100, &e), OK);
        assert_int_equal(sink->operations->rotate(sink, &e), OK);
        assert_int_equal(put_begun(i), OK);
    }
    assert_int_equal(flush(0), OK);
    assert_int_equal(read_run().each[3], 1);
    assert_int_equal(sink->rotation_failed, 0);
    end(3, 4);
}

/* No file can be made: what follows goes into the old one. */
static void goes_on_in_the_old_file(const struct kind *kind)
{
    begin(kind, usual);
    assert_int_equal(put(0), OK);
    assert_int_equal(flush(0), OK);
    full = 1;
    assert_int_equal(sink->operations->begin(sink, 100, &e), OK);
    assert_int_equal(sink->operations->rotate(sink, &e), kind->finds_out_late ? OK : ERR_IO);
    e.code = OK;
    assert_int_equal(put_begun(1), OK);
    flush(0);
    full = 0;
    assert_int_equal(flush(0), OK);
    assert_int_equal(sink->rotation_failed, kind->finds_out_late);
    end(2, 1);
}

static void makes_a_lost_file_again(const struct kind *kind)
{
    char path[300];

    begin(kind, usual);
    assert_int_equal(put(0), OK);
    assert_int_equal(flush(0), OK);
    snprintf(path, sizeof path, "%s", state_of().path);
    unlink(path);
    assert_int_equal(flush(EVENT_SINK_MAKE_AGAIN), ERR_IO);
    assert_non_null(strstr(e.message, "its events are in"));
    assert_int_not_equal(strcmp(state_of().path, path), 0);
    assert_int_equal(flush(EVENT_SINK_MAKE_AGAIN), OK);
    end(1, 1);
}

/* The file is gone, and so is the disk: the first of the two is told. */
static void tells_the_first_error(const struct kind *kind)
{
    uint64_t lost;

    begin(kind, usual);
    file.leave_lost = 1;
    assert_int_equal(put(0), OK);
    unlink(event_file_path(&file));
    full = 1;
    assert_int_equal(flush(0), ERR_IO);
    assert_non_null(strstr(e.message, "deleted, moved or replaced"));
    assert_int_equal(put(1), OK);
    assert_int_equal(sink->operations->stop(sink, &lost, &e), ERR_IO);
    assert_int_equal(lost, 2);
    event_file_close(&file, NULL);
}

static void leaves_the_file_in_a_child(const struct kind *kind)
{
    int status;
    pid_t pid;

    begin(kind, usual);
    assert_int_equal(put(0), OK);
    if (!(pid = fork())) {
        const int fd = file.fd, frees = sink->operations->abandon(sink);

        _exit(frees == kind->frees_in_child && fcntl(fd, F_GETFD) < 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(read_run().points, 0);
    end(1, 1);
}

static void test_both_sinks(void **state)
{
    static void (*const promises[])(const struct kind *) = {
        waits_until_flushed,         answers_what_was_wrong_before,
        refuses_while_writing_fails, lets_one_long_event_wait_alone,
        rotates_between_records,     goes_on_in_the_old_file,
        makes_a_lost_file_again,     tells_the_first_error,
        leaves_the_file_in_a_child,
    };
    (void)state;

    for (size_t i = 0; i < sizeof promises / sizeof *promises; i++)
        for (size_t k = 0; k < 2; k++)
            promises[i](&kinds[k]);
}

/* ---- the direct sink --------------------------------------------------------------------------------------------- */

/* Puts until a call has written what waits by flush_seconds, or with sync_seconds has synced. */
static void put_until_due(struct event_sink_options options, double sync_seconds)
{
    size_t n = 0;

    options.batch = options.bytes = 1 << 20;
    begin(kinds, options);
    file.sync = sync_seconds > 0 ? EVENTLOG_SYNC_EVERY : EVENTLOG_SYNC_NEVER;
    file.sync_seconds = sync_seconds;
    assert_int_equal(flush(0), OK); /* so that the next call looks when something is due */
    for (int done = 0; n < 10000 && !done; n++) {
        assert_int_equal(put((int64_t)n), OK);
        nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
        done = sync_seconds > 0 ? state_of().file.syncs == 1 : !state_of().queued;
    }
    assert_in_range(n, 1, 9999);
    end(n, 1);
}

static void test_direct_looks_at_the_clock(void **state)
{
    struct event_sink_options soon = usual;
    (void)state;

    soon.flush_seconds = 0.01;
    put_until_due(soon, 0);
    put_until_due(usual, 0.01);
}

/* What a long event took is given back once it is written. */
static void test_direct_gives_memory_back(void **state)
{
    struct event_sink_options options = usual;
    (void)state;

    options.batch = 1;
    begin(kinds, options);
    assert_int_equal(put_in(1 << 20, 0), OK);
    assert_in_range(sink->batch.capacity, 1, 4000);
    end(1, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_sinks),
        cmocka_unit_test(test_direct_looks_at_the_clock),
        cmocka_unit_test(test_direct_gives_memory_back),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
