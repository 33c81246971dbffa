/* The writer: whole records whatever fails, nothing lost that was reported as written, names that cannot collide. */
#include "eventlog/write/event_writer.h"

#include "base/buffer.h"
#include "base/file.h"
#include "eventlog/format/record.h"
#include "tests/check.h"
#include "tests/failing_io.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[64];

static int setup(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/test_event_writer.XXXXXX");
    return mkdtemp(directory) ? 0 : -1;
}

static void remove_files(void)
{
    DIR *d = opendir(directory);
    char path[400];

    for (struct dirent *entry; d && (entry = readdir(d));) {
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    if (d)
        closedir(d);
}

static int teardown(void **state)
{
    (void)state;
    remove_files();
    return rmdir(directory);
}

static size_t files(char *path, size_t size)
{
    DIR *d = opendir(directory);
    size_t count = 0;

    for (struct dirent *entry; (entry = readdir(d));)
        if (strstr(entry->d_name, "tfevents")) {
            count++;
            snprintf(path, size, "%s/%.255s", directory, entry->d_name);
        }
    closedir(d);
    return count;
}

/* Records in the file; the steps they carry (tag "t", step = its number, below 128) must be 1, 2, 3, ... Fails on
 * anything that is not a whole record, except (torn != NULL) at the end. */
static size_t count_records(const char *path, int *torn)
{
    struct buffer bytes = BUFFER_EMPTY;
    struct record_parser p;
    struct record r;
    size_t count = 0;

    assert_int_equal(file_read(path, 1 << 24, &bytes, NULL), OK);
    record_parser_init(&p, 0, 0);
    for (;;) {
        enum record_result result = record_next(&p, (uint8_t *)bytes.data + p.position, bytes.length - p.position,
                                                bytes.length, &r);

        if (result == RECORD_MORE)
            break;
        assert_int_equal(result, RECORD_DATA);
        if (count)
            assert_int_equal(r.data[10], count & 0x7f);
        count++;
    }
    if (torn)
        *torn = record_parser_inside(&p, bytes.length);
    else
        assert_int_equal(p.offset, bytes.length);
    buffer_release(&bytes);
    return count;
}

static void test_first_record_at_once(void **state)
{
    struct eventlog_writer *w;
    char path[400];
    (void)state;

    assert_int_equal(eventlog_writer_open(&w, directory, NULL, NULL), EVENTLOG_OK);
    assert_int_equal(count_records(eventlog_writer_path(w), NULL), 1);
    assert_int_equal(eventlog_writer_scalar(w, "t", 1, 0, 1, NULL), EVENTLOG_OK);
    assert_int_equal(count_records(eventlog_writer_path(w), NULL), 1);
    assert_int_equal(eventlog_writer_flush(w, NULL), EVENTLOG_OK);
    assert_int_equal(count_records(eventlog_writer_path(w), NULL), 2);
    assert_int_equal(eventlog_writer_scalar(w, "t", 2, 5.5, NAN, NULL), EVENTLOG_OK);
    assert_int_equal(eventlog_writer_sync(w, NULL), EVENTLOG_OK);
    assert_int_equal(eventlog_writer_scalar(w, "t", 3, 5.5, INFINITY, NULL), EVENTLOG_OK);
    assert_int_equal(eventlog_writer_close(w, NULL), EVENTLOG_OK);
    assert_int_equal(files(path, sizeof path), 1);
    assert_int_equal(count_records(path, NULL), 4);
    remove_files();
}

static void test_names_do_not_collide(void **state)
{
    struct eventlog_writer *w[12];
    struct eventlog_writer_options options = { .suffix = ".train" };
    char path[400];
    (void)state;

    for (int i = 0; i < 12; i++)
        assert_int_equal(eventlog_writer_open(&w[i], directory, &options, NULL), EVENTLOG_OK);
    assert_int_equal(files(path, sizeof path), 12);
    assert_non_null(strstr(eventlog_writer_path(w[0]), ".train"));
    for (int i = 0; i < 12; i++)
        assert_int_equal(eventlog_writer_close(w[i], NULL), EVENTLOG_OK);
    remove_files();
}

static void test_refused_input(void **state)
{
    struct eventlog_writer_options slash = { .suffix = "/x" }, never = { .flush_seconds = NAN };
    struct eventlog_error e;
    struct eventlog_writer *w;
    char path[400];
    (void)state;

    assert_int_equal(eventlog_writer_open(&w, directory, &slash, &e), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_writer_open(&w, directory, &never, &e), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_writer_open(&w, "", NULL, &e), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_writer_open(&w, "/proc/nowhere", NULL, &e), EVENTLOG_ERROR_IO);
    assert_null(w);
    assert_int_equal(files(path, sizeof path), 0);
    assert_int_equal(eventlog_writer_open(&w, directory, NULL, &e), EVENTLOG_OK);
    assert_int_equal(eventlog_writer_scalar(w, "bad \xff tag here", 1, 0, 1, &e), EVENTLOG_ERROR_ARGUMENT);
    assert_non_null(strstr(e.message, "byte 4"));
    assert_int_equal(eventlog_writer_scalar(w, "eight by\xc3", 1, 0, 1, &e), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_writer_scalar(w, "t", 1, NAN, 1, &e), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_writer_scalar(w, "t", 1, INFINITY, 1, &e), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_writer_scalar(w, NULL, 1, 0, 1, &e), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_writer_scalar(w, "größe/π/😀", 1, 0, 1, &e), EVENTLOG_OK);
    assert_int_equal(eventlog_writer_scalar(w, "", 1, 0, 1, &e), EVENTLOG_OK);
    assert_int_equal(eventlog_writer_close(w, &e), EVENTLOG_OK);
    assert_int_equal(eventlog_writer_close(NULL, NULL), EVENTLOG_OK);
    remove_files();
}

static void test_one_write_a_batch(void **state)
{
    struct eventlog_writer_options options = { .buffer_bytes = 4000, .flush_seconds = 1000 };
    struct eventlog_writer_statistics statistics;
    struct eventlog_writer *w;
    (void)state;

    assert_int_equal(eventlog_writer_open(&w, directory, &options, NULL), EVENTLOG_OK);
    for (int i = 1; i <= 1000; i++) /* 39 or 40 bytes each */
        assert_int_equal(eventlog_writer_scalar(w, "t", i & 0x7f ? i & 0x7f : 128, 5.5, 1, NULL), EVENTLOG_OK);
    assert_int_equal(eventlog_writer_statistics(w, &statistics, NULL), EVENTLOG_OK);
    assert_in_range(statistics.writes, 9, 11);
    assert_int_equal(eventlog_writer_close(w, NULL), EVENTLOG_OK);
    remove_files();
}

/* The n-th system call fails, n = 1, 2, ... until nothing does: no torn record in the file, and every event that was
 * accepted is there in the end, in order. */
static void fail_nth(int short_writes)
{
    struct eventlog_writer_options options = { .buffer_bytes = 64, .flush_seconds = 1000 };

    for (long n = 1;; n++) {
        struct io_failing failing = { .fail_at = n, .error_number = ENOSPC, .short_writes = short_writes };
        struct io io = io_failing_table(&failing);
        struct eventlog_error e;
        struct eventlog_writer *w;
        int64_t accepted = 0;
        char path[400];
        int rc = event_writer_open_io(&w, directory, &options, &io, &e);

        if (rc == EVENTLOG_OK) {
            for (int i = 1; i <= 20; i++) {
                rc = eventlog_writer_scalar(w, "t", accepted + 1, 5.5, 1, &e);
                if (rc == EVENTLOG_OK || (rc == EVENTLOG_ERROR_IO && !strstr(e.message, "refused")))
                    accepted++;
                if (i % 7 == 0)
                    eventlog_writer_sync(w, NULL);
                count_records(eventlog_writer_path(w), NULL);
            }
            rc = eventlog_writer_close(w, &e);
            assert_int_equal(files(path, sizeof path), 1);
            if (rc == EVENTLOG_OK || !strstr(e.message, "lost"))
                assert_int_equal(count_records(path, NULL), accepted + 1);
        } else {
            assert_int_equal(rc, EVENTLOG_ERROR_IO);
            assert_true(*e.message);
            assert_int_equal(files(path, sizeof path), 0);
        }
        remove_files();
        if (failing.calls < n)
            break;
    }
}

static void test_failing_calls(void **state)
{
    (void)state;
    fail_nth(0);
    fail_nth(1);
}

static void test_full_disk_then_room(void **state)
{
    struct eventlog_writer_options options = { .buffer_bytes = 64, .flush_seconds = 1000 };
    (void)state;

    for (long n = 3; n < 12; n++) {
        struct io_failing failing = { .fail_at = n, .error_number = ENOSPC, .stay_failed = 1, .short_writes = 0 };
        struct io io = io_failing_table(&failing);
        struct eventlog_writer *w;
        struct eventlog_error e;
        size_t accepted = 0, refused = 0;

        assert_int_equal(event_writer_open_io(&w, directory, &options, &io, &e), EVENTLOG_OK);
        for (int i = 1; i <= 100; i++) {
            int rc = eventlog_writer_scalar(w, "t", (int64_t)accepted + 1, 5.5, 1, &e);

            if (rc == EVENTLOG_OK || !strstr(e.message, "refused"))
                accepted++;
            else
                refused++;
        }
        assert_true(refused > 40); /* 16 buffers of 64 bytes are 26 events */
        count_records(eventlog_writer_path(w), NULL);
        failing.fail_at = 0;
        assert_int_equal(eventlog_writer_scalar(w, "t", (int64_t)accepted + 1, 5.5, 1, &e), EVENTLOG_OK);
        assert_int_equal(eventlog_writer_flush(w, NULL), EVENTLOG_OK);
        assert_int_equal(count_records(eventlog_writer_path(w), NULL), accepted + 2);
        assert_int_equal(eventlog_writer_close(w, NULL), EVENTLOG_OK);
        remove_files();
    }
}

/* A real limit of the kernel, not a simulated one: write() stops in the middle of a record. */
static void test_file_size_limit(void **state)
{
    char path[400];
    int status;
    pid_t pid;
    (void)state;

    if (!(pid = fork())) {
        struct eventlog_writer_options options = { .buffer_bytes = 300, .flush_seconds = 1000 };
        struct rlimit limit = { 500, RLIM_INFINITY };
        struct eventlog_writer *w;
        int failed = 0;

        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) < 0 || eventlog_writer_open(&w, directory, &options, NULL) != EVENTLOG_OK)
            _exit(2);
        for (int i = 1; i <= 30; i++)
            failed += eventlog_writer_scalar(w, "t", i, 5.5, 1, NULL) == EVENTLOG_ERROR_IO;
        limit.rlim_cur = RLIM_INFINITY;
        if (!failed || setrlimit(RLIMIT_FSIZE, &limit) < 0)
            _exit(3);
        _exit(eventlog_writer_close(w, NULL) == EVENTLOG_OK ? 0 : 4);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(files(path, sizeof path), 1);
    assert_int_equal(count_records(path, NULL), 31);
    remove_files();
}

static void test_killed_at_every_call(void **state)
{
    (void)state;
    for (long n = 1; n < 20; n++) {
        char path[400];
        int torn = 0, status;
        pid_t pid = fork();

        if (pid == 0) {
            struct eventlog_writer_options options = { .buffer_bytes = 64, .flush_seconds = 1000 };
            struct io_failing failing = { .fail_at = n, .kill = 1 };
            struct io io = io_failing_table(&failing);
            struct eventlog_writer *w;

            if (event_writer_open_io(&w, directory, &options, &io, NULL) != EVENTLOG_OK)
                _exit(2);
            for (int i = 1; i <= 100; i++)
                eventlog_writer_scalar(w, "t", i, 5.5, 1, NULL);
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        if (files(path, sizeof path))
            count_records(path, &torn);
        remove_files();
    }
}

static void test_forked_child_does_not_write(void **state)
{
    struct eventlog_writer *w;
    int status;
    pid_t pid;
    (void)state;

    assert_int_equal(eventlog_writer_open(&w, directory, NULL, NULL), EVENTLOG_OK);
    assert_int_equal(eventlog_writer_scalar(w, "t", 1, 5.5, 1, NULL), EVENTLOG_OK);
    if (!(pid = fork()))
        _exit(eventlog_writer_flush(w, NULL) == EVENTLOG_ERROR_ARGUMENT &&
                      eventlog_writer_close(w, NULL) == EVENTLOG_ERROR_ARGUMENT
                  ? 0
                  : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(count_records(eventlog_writer_path(w), NULL), 1);
    assert_int_equal(eventlog_writer_close(w, NULL), EVENTLOG_OK);
    remove_files();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_record_at_once),
        cmocka_unit_test(test_names_do_not_collide),
        cmocka_unit_test(test_refused_input),
        cmocka_unit_test(test_one_write_a_batch),
        cmocka_unit_test(test_failing_calls),
        cmocka_unit_test(test_full_disk_then_room),
        cmocka_unit_test(test_file_size_limit),
        cmocka_unit_test(test_killed_at_every_call),
        cmocka_unit_test(test_forked_child_does_not_write),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
