/* The event file, or its directory, is deleted, moved or replaced while a writer has it, after any event: it is said
 * once, the directory and a file are made again with what the old one held, and what is lost is counted. */
#include "eventlog/write/event_writer.h"

#include "tests/check.h"
#include "tests/eventlog/event_run.h"
#include "tests/eventlog/remove_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

enum { EVENTS = 40 };

static char run[100], aside[100]; /* the run, and where a fault moves it */

static void touch(const char *path)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fclose(f);
}

static void delete_file(const char *path)
{
    assert_int_equal(unlink(path), 0);
}

static void move_file(const char *path)
{
    assert_int_equal(rename(path, aside), 0);
}

static void replace_file(const char *path)
{
    delete_file(path);
    touch(path);
}

static void delete_directory(const char *path)
{
    (void)path;
    assert_int_equal(remove_tree(run), 0);
}

static void move_directory(const char *path)
{
    (void)path;
    assert_int_equal(rename(run, aside), 0);
}

static void replace_directory(const char *path)
{
    move_directory(path);
    assert_int_equal(mkdir(run, 0777), 0);
}

static const struct eventlog_writer_options lives[] = {
    { .buffer_bytes = 0 },
    { .buffer_bytes = 64, .sync = EVENTLOG_SYNC_EVERY, .sync_seconds = 1e-9 },
    { .rotate_bytes = 500, .sync = EVENTLOG_SYNC_AT_FLUSH },
    { .queue_bytes = 1 << 20, .buffer_bytes = 200 },
    { .queue_bytes = 1000, .buffer_bytes = 64, .rotate_bytes = 500 },
};

static struct eventlog_writer *open_run(const struct eventlog_writer_options *options, const struct io *io)
{
    struct eventlog_writer *w;

    snprintf(run, sizeof run, "%s/run", directory);
    snprintf(aside, sizeof aside, "%s.aside", directory);
    assert_int_equal(event_writer_open_io(&w, run, options, io, &error), EVENTLOG_OK);
    return w;
}

static void clear(void)
{
    assert_int_equal(empty_tree(directory), 0);
    remove_tree(aside);
}

/* Writes an event and flushes after every third. How many of the calls failed. */
static int write_one(struct eventlog_writer *w, int step)
{
    int failed = eventlog_writer_scalar(w, "loss", step, 5.5, 1, &error) != EVENTLOG_OK;

    return failed + (step % 3 == 2 && eventlog_writer_flush(w, &error) != EVENTLOG_OK);
}

static void life_with_fault(const struct eventlog_writer_options *options, void (*fault)(const char *path), int when)
{
    struct eventlog_writer *w = open_run(options, NULL);
    struct eventlog_writer_statistics s;
    int failed = 0;

    for (int i = 0; i < EVENTS; i++) {
        failed += write_one(w, i);
        if (i == when) {
            failed += eventlog_writer_flush(w, &error) != EVENTLOG_OK; /* a thread is not in the middle of a file */
            assert_int_equal(failed, 0);
            fault(eventlog_writer_path(w));
        }
    }
    failed += eventlog_writer_flush(w, &error) != EVENTLOG_OK;
    assert_int_equal(failed, 1);
    s = statistics(w);
    assert_non_null(strstr(s.last_error.message, ": deleted, moved or replaced; "));
    assert_int_equal(s.events, EVENTS);
    assert_int_equal(read_run().points, EVENTS - s.lost);
    assert_true(!s.lost || options->rotate_bytes);
    assert_int_equal(eventlog_writer_close(w, &error), s.lost ? EVENTLOG_ERROR_IO : EVENTLOG_OK);
    if (s.lost)
        assert_non_null(strstr(error.message, " events are lost"));
    assert_int_equal(read_run().points, EVENTS - s.lost);
    clear();
}

static void (*const faults[])(const char *path) = { delete_file,      move_file,      replace_file,
                                                    delete_directory, move_directory, replace_directory };

static void test_every_moment(void **state)
{
    (void)state;

    for (size_t life = 0; life < sizeof lives / sizeof *lives; life++)
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
            for (int when = 0; when < EVENTS; when += 1 + when / 3)
                life_with_fault(&lives[life], faults[i], when);
}

static void test_noticed_by_close(void **state)
{
    (void)state;

    for (size_t life = 0; life < sizeof lives / sizeof *lives; life++) {
        struct eventlog_writer *w = open_run(&lives[life], NULL);

        for (int i = 0; i < 7; i++)
            assert_int_equal(write_one(w, i), 0);
        delete_file(eventlog_writer_path(w));
        assert_int_equal(eventlog_writer_close(w, &error), EVENTLOG_ERROR_IO);
        assert_non_null(strstr(error.message, ": deleted, moved or replaced; its events are in events.out"));
        assert_int_equal(read_run().points, 7);
        clear();
    }
}

static int files_there(void)
{
    DIR *d = opendir(run);
    int n = 0;

    for (struct dirent *entry; d && (entry = readdir(d));)
        n += entry->d_type == DT_REG && strstr(entry->d_name, "tfevents") != NULL;
    if (d)
        closedir(d);
    return n;
}

/* leave_lost: nothing is made before it is asked for, also not by close. */
static void life_left_lost(const struct eventlog_writer_options *like, void (*fault)(const char *path), int again)
{
    struct eventlog_writer_options options = *like;
    struct eventlog_writer_statistics s;
    struct eventlog_writer *w;
    int there;

    options.leave_lost = 1;
    w = open_run(&options, NULL);
    for (int i = 0; i < 20; i++)
        assert_int_equal(write_one(w, i), 0);
    s = statistics(w);
    assert_int_equal(eventlog_writer_make_again(w, &error), EVENTLOG_OK); /* it is where it was */
    assert_int_equal(statistics(w).flushes, s.flushes);
    assert_int_equal(eventlog_writer_flush(w, &error), EVENTLOG_OK);
    fault(eventlog_writer_path(w));
    there = files_there();
    for (int i = 20; i < 23; i++)
        write_one(w, i);
    for (int i = 0; i < 3; i++) {
        assert_int_equal((i ? eventlog_writer_sync : eventlog_writer_flush)(w, &error), EVENTLOG_ERROR_IO);
        assert_int_equal(error.system, ENOENT);
        assert_non_null(strstr(error.message, ": deleted, moved or replaced"));
        assert_int_equal(files_there(), there);
    }
    s = statistics(w);
    assert_int_equal(s.events, 23);
    assert_true(s.lost > 0);
    if (again) {
        int rc = eventlog_writer_make_again(w, &error);

        s = statistics(w);
        assert_int_equal(rc, s.lost ? EVENTLOG_ERROR_IO : EVENTLOG_OK);
        assert_true(!s.lost || options.rotate_bytes);
        assert_int_equal(eventlog_writer_sync(w, &error), EVENTLOG_OK);
        assert_int_equal(read_run().points, 23 - s.lost);
    }
    assert_int_equal(eventlog_writer_close(w, &error), s.lost ? EVENTLOG_ERROR_IO : EVENTLOG_OK);
    if (!again)
        assert_int_equal(files_there(), there);
    clear();
}

static void test_left_lost(void **state)
{
    (void)state;

    for (size_t life = 0; life < sizeof lives / sizeof *lives; life++)
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
            for (int again = 0; again < 2; again++)
                life_left_lost(&lives[life], faults[i], again);
}

/* A plain file has the directory's name: events are kept and counted as lost, until it is gone. */
static void test_cannot_be_made_again(void **state)
{
    (void)state;

    for (size_t life = 0; life < sizeof lives / sizeof *lives; life++)
        for (int mended = 0; mended < 2; mended++) {
            struct eventlog_writer *w = open_run(&lives[life], NULL);
            struct eventlog_writer_statistics s;

            for (int i = 0; i < 4; i++)
                assert_int_equal(write_one(w, i), 0);
            move_directory(NULL);
            touch(run);
            for (int i = 4; i < 8; i++)
                write_one(w, i);
            assert_int_equal(eventlog_writer_flush(w, &error), EVENTLOG_ERROR_IO);
            assert_non_null(strstr(error.message, "deleted, moved or replaced, and cannot be made again: "));
            s = statistics(w);
            assert_int_equal(s.events, 8);
            assert_int_equal(s.lost + s.queued, 8);
            if (mended) {
                delete_file(run);
                assert_int_equal(eventlog_writer_flush(w, &error), EVENTLOG_ERROR_IO);
                assert_int_equal(eventlog_writer_flush(w, &error), EVENTLOG_OK);
                s = statistics(w);
                assert_int_equal(read_run().points, 8 - s.lost);
                assert_int_equal(eventlog_writer_close(w, &error), s.lost ? EVENTLOG_ERROR_IO : EVENTLOG_OK);
            } else {
                assert_int_equal(eventlog_writer_close(w, &error), EVENTLOG_ERROR_IO);
                assert_non_null(strstr(error.message, "8 events are lost: "));
            }
            clear();
        }
}

static int open_write_only(void *context, const char *path, int flags, mode_t mode)
{
    return io_real.open(context, path, (flags & ~O_ACCMODE) | (flags & O_DIRECTORY ? O_RDONLY : O_WRONLY), mode);
}

/* As on NFS once another host has deleted the file. */
static void test_old_file_cannot_be_read(void **state)
{
    struct io io = io_real;
    (void)state;

    io.open = open_write_only;
    for (size_t life = 0; life < sizeof lives / sizeof *lives; life++) {
        struct eventlog_writer *w = open_run(&lives[life], &io);
        struct eventlog_writer_statistics s;
        int failed = 0;

        for (int i = 0; i < 3; i++)
            assert_int_equal(write_one(w, i), 0);
        delete_directory(NULL);
        for (int i = 3; i < 5; i++)
            failed += write_one(w, i);
        failed += eventlog_writer_flush(w, &error) != EVENTLOG_OK;
        assert_int_equal(failed, 1);
        assert_non_null(strstr(error.message, " events are lost, later ones go to events.out"));
        for (int i = 5; i < 9; i++)
            assert_int_equal(write_one(w, i), 0);
        s = statistics(w);
        assert_in_range(s.lost, 3, 5);
        assert_int_equal(eventlog_writer_close(w, &error), EVENTLOG_ERROR_IO);
        assert_int_equal(read_run().points, 9 - s.lost);
        clear();
    }
}

/* The path that a writer was given counts for where the working directory was then. */
static void test_another_working_directory(void **state)
{
    char before[4096];
    struct eventlog_writer *w;
    (void)state;

    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(directory), 0);
    assert_int_equal(eventlog_writer_open(&w, "run", NULL, &error), EVENTLOG_OK);
    assert_int_equal(chdir("/"), 0);
    for (int i = 0; i < 9; i++)
        assert_int_equal(write_one(w, i), 0);
    assert_int_equal(statistics(w).files, 1);
    assert_int_equal(eventlog_writer_close(w, &error), EVENTLOG_OK);
    assert_int_equal(read_run().points, 9);
    assert_int_equal(chdir(before), 0);
    clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_moment),
        cmocka_unit_test(test_noticed_by_close),
        cmocka_unit_test(test_left_lost),
        cmocka_unit_test(test_cannot_be_made_again),
        cmocka_unit_test(test_old_file_cannot_be_read),
        cmocka_unit_test(test_another_working_directory),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
