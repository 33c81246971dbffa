/* What a long job sets: rotation, resume, fsync; each on a real directory, with failing calls where it
 * matters. */
#include "eventlog/write/event_writer.h"

#include "tests/check.h"
#include "tests/eventlog/event_run.h"
#include "tests/failing_io.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static size_t longest_file(void)
{
    struct log_directory d = list();
    size_t longest = 0;

    for (size_t i = 0; i < d.runs[0].file_count; i++) {
        struct stat st;

        assert_int_equal(stat(d.runs[0].files[i], &st), 0);
        longest = (size_t)st.st_size > longest ? (size_t)st.st_size : longest;
    }
    log_directory_release(&d);
    return longest;
}

/* ---- rotation ---------------------------------------------------------------------------------------------------- */

static void rotate_by_size(size_t queue_bytes)
{
    struct eventlog_writer_options options = { .rotate_bytes = 1000, .queue_bytes = queue_bytes, .suffix = ".x" };
    struct eventlog_writer *w = open_with(options);
    char first[300];
    struct seen s;

    snprintf(first, sizeof first, "%s", eventlog_writer_path(w));
    for (int i = 0; i < 200; i++) {
        put_steps(w, "loss", i, i + 1);
        assert_int_equal(eventlog_writer_text(w, "note", i, 5.5, "hello", &described, &error), EVENTLOG_OK);
    }
    assert_int_equal(eventlog_writer_flush(w, NULL), EVENTLOG_OK);
    assert_true(strcmp(eventlog_writer_path(w), first) > 0);
    assert_int_equal(statistics(w).events, 400);
    assert_int_equal(statistics(w).queued, 0);
    s = read_run();
    assert_int_equal(statistics(w).files, s.files);
    close_well(w);
    assert_in_range(s.files, 20, 40);
    assert_int_equal(s.versions, s.files);
    assert_int_equal(s.points, 400);
    assert_int_equal(s.named, 200);         /* each text says what it is */
    assert_int_equal(s.described, s.files); /* the description once in each */
    for (size_t i = 0; i < 400; i++)
        assert_int_equal(s.steps[i], i / 2); /* in order over all files: their names sort */
    assert_true(longest_file() <= 1000);
    remove_files();
}

static void test_rotation_by_size(void **state)
{
    (void)state;
    rotate_by_size(0);
    rotate_by_size(1);
    rotate_by_size(1 << 20);
}

static void test_rotation_by_age(void **state)
{
    struct eventlog_writer_options options = { .rotate_seconds = 1e-9 };
    struct eventlog_writer *w = open_with(options);
    struct seen s;
    (void)state;

    put_steps(w, "loss", 0, 5);
    close_well(w);
    s = read_run();
    assert_int_equal(s.files, 5);
    assert_int_equal(s.points, 5);
    remove_files();
}

static int no_file(void *context, const char *path, int flags, mode_t mode)
{
    if (!*(atomic_int *)context || !(flags & O_CREAT))
        return io_real.open(NULL, path, flags, mode);
    errno = EMFILE;
    return -1;
}

/* No new file can be made: events go on in the old one. */
static void rotate_without_room(size_t queue_bytes)
{
    struct eventlog_writer_options options = { .rotate_bytes = 400, .queue_bytes = queue_bytes };
    struct io io = io_real;
    struct eventlog_writer *w;
    atomic_int none = 0;
    int failures = 0;

    io.open = no_file;
    io.context = &none;
    assert_int_equal(event_writer_open_io(&w, directory, &options, &io, &error), EVENTLOG_OK);
    none = 1;
    for (int i = 0; i < 25; i++) {
        failures += eventlog_writer_scalar(w, "loss", i, 5.5, 1, &error) != EVENTLOG_OK;
        assert_int_equal(eventlog_writer_flush(w, NULL), EVENTLOG_OK);
    }
    assert_int_equal(failures, queue_bytes ? 0 : 1);
    assert_int_equal(statistics(w).errors, 1);
    assert_int_equal(statistics(w).last_error.system, EMFILE);
    assert_non_null(strstr(statistics(w).last_error.message, "events go on in"));
    close_well(w);
    assert_int_equal(read_run().points, 25);
    assert_int_equal(read_run().files, 1);
    remove_files();
}

static void test_rotation_without_room(void **state)
{
    (void)state;
    rotate_without_room(0);
    rotate_without_room(1 << 20);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* A new file sorts behind whatever is there: other hosts and processes, a clock that was ahead, counters of old. */
static void test_names_sort(void **state)
{
    static const char *const others[] = {
        "events.out.tfevents.%010lld.zzz-host.99999.0.v2",
        "events.out.tfevents.%010lld.a.9.7",
        "events.out.tfevents.%010lld.~.4294967.999999",
    };
    (void)state;

    for (int ahead = 0; ahead < 100; ahead += 40)
        for (size_t i = 0; i < 3; i++) {
            struct eventlog_writer_options options = { 0 };
            struct eventlog_writer *a, *b;
            char name[100], path[300];
            FILE *f;

            snprintf(name, sizeof name, others[i], (long long)time(NULL) + ahead);
            snprintf(path, sizeof path, "%s/%s", directory, name);
            assert_non_null(f = fopen(path, "w"));
            fclose(f);
            a = open_with(options);
            b = open_with(options);
            assert_true(strcmp(eventlog_writer_path(a), path) > 0);
            assert_true(strcmp(eventlog_writer_path(b), eventlog_writer_path(a)) > 0);
            close_well(a);
            close_well(b);
            remove_files();
        }
}

static int listings;

/* In place of the C library's. */
DIR *opendir(const char *name)
{
    DIR *(*next)(const char *) = (DIR * (*)(const char *)) dlsym(RTLD_NEXT, "opendir");

    listings++;
    return next(name);
}

/* What a new file costs does not grow with those that are there. */
static void test_rotation_lists_nothing(void **state)
{
    struct eventlog_writer_options options = { .rotate_bytes = 1 };
    struct eventlog_writer *w = open_with(options);
    const int before = listings;
    (void)state;

    assert_in_range(before, 1, 1000);
    put_steps(w, "loss", 0, 20);
    assert_int_equal(statistics(w).files, 20);
    assert_int_equal(listings, before);
    close_well(w);
    assert_int_equal(read_run().points, 20);
    remove_files();
}

/* ---- resume ------------------------------------------------------------------------------------------------------ */

static void append_bytes(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "ab");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void test_append(void **state)
{
    static const struct {
        const char *name;
        size_t n;
        uint8_t bytes[40];
    } tails[] = {
        { "none", 0, { 0 } },
        { "half a header", 5, { 0x18 } },
        { "half a record", 20, { 0x18, 0, 0, 0, 0, 0, 0, 0, 0xa3, 0x7f, 0x4b, 0x22, 9 } },
        { "zeros", 40, { 0 } },
        { "garbage that nothing follows", 30, { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 } },
    };
    struct eventlog_writer_options append = { .resume = EVENTLOG_RESUME_APPEND };
    (void)state;

    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        struct eventlog_writer *w = open_with(append); /* nothing there yet: a new file */
        char path[300];
        struct seen s;

        snprintf(path, sizeof path, "%s", eventlog_writer_path(w));
        put_steps(w, "loss", 0, 10);
        close_well(w);
        append_bytes(path, tails[i].bytes, tails[i].n);
        w = open_with(append);
        /* A torn tail is cut off, but not written over: a reader may have half of it. */
        assert_int_equal(strcmp(eventlog_writer_path(w), path) > 0, tails[i].n > 0);
        put_steps(w, "loss", 10, 20);
        close_well(w);
        s = read_run();
        assert_int_equal(s.files, tails[i].n ? 2 : 1);
        assert_int_equal(s.points, 20);
        assert_int_equal(s.steps[19], 19);
        remove_files();
    }
}

static void test_append_takes_the_newest(void **state)
{
    struct eventlog_writer_options append = { .resume = EVENTLOG_RESUME_APPEND }, new = { 0 };
    struct eventlog_writer *w;
    char packed[300];
    struct seen s;
    (void)state;

    for (int i = 0; i < 3; i++) {
        w = open_with(new);
        put_steps(w, "loss", i, i + 1);
        close_well(w);
    }
    snprintf(packed, sizeof packed, "%s/events.out.tfevents.9999999999.x.gz", directory);
    append_bytes(packed, (const uint8_t *)"\x1f\x8b", 2); /* finished, whatever it is called */
    w = open_with(append);
    put_steps(w, "loss", 3, 10);
    close_well(w);
    assert_int_equal(unlink(packed), 0);
    s = read_run();
    assert_int_equal(s.files, 3);
    assert_int_equal(s.each[2], 8);
    remove_files();

    /* An empty file of that name gets its first record. */
    w = open_with(new);
    assert_int_equal(truncate(eventlog_writer_path(w), 0), 0);
    close_well(w);
    w = open_with(append);
    put_steps(w, "loss", 0, 3);
    close_well(w);
    assert_int_equal(read_run().points, 3);
    assert_int_equal(read_run().files, 1);
    remove_files();
}

static void refuse(int code, int system, const char *words)
{
    struct eventlog_writer_options append = { .resume = EVENTLOG_RESUME_APPEND };
    struct eventlog_writer *w;

    assert_int_equal(eventlog_writer_open(&w, directory, &append, &error), code);
    assert_null(w);
    assert_int_equal(error.system, system);
    if (!strstr(error.message, words))
        fail_msg("%s", error.message);
}

static void test_append_refused(void **state)
{
    struct eventlog_writer_options new = { 0 };
    struct eventlog_writer *w = open_with(new);
    char path[300];
    struct stat st;
    int fd;
    (void)state;

    snprintf(path, sizeof path, "%s", eventlog_writer_path(w));
    put_steps(w, "loss", 0, 100);
    refuse(EVENTLOG_ERROR_IO, EBUSY, "is being written"); /* by us */
    close_well(w);
    assert_true((fd = open(path, O_WRONLY)) >= 0);
    refuse(EVENTLOG_ERROR_IO, EBUSY, "is being written"); /* by somebody who knows nothing of locks */
    assert_int_equal(lseek(fd, 1000, SEEK_SET), 1000);
    assert_int_equal(write(fd, "damage", 6), 6);
    close(fd);
    assert_int_equal(stat(path, &st), 0);
    refuse(EVENTLOG_ERROR_CORRUPT, 0, "eventlog repair");
    assert_int_equal(truncate(path, 0), 0);
    append_bytes(path, "this is no event file, just a text of that name", 47);
    refuse(EVENTLOG_ERROR_CORRUPT, 0, "damaged at byte 0");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 47);
    remove_files();
}

static void test_purge(void **state)
{
    struct eventlog_writer_options purge = { .resume = EVENTLOG_RESUME_PURGE, .purge_step = 7 }, new = { 0 };
    struct eventlog_writer *w = open_with(new);
    struct seen s;
    (void)state;

    put_steps(w, "loss", 0, 10);
    close_well(w);
    w = open_with(purge);
    put_steps(w, "loss", 7, 9);
    close_well(w);
    s = read_run();
    assert_int_equal(s.files, 2);
    assert_int_equal(s.starts, 2);
    assert_int_equal(s.each[1], 2);
    remove_files();
}

/* The n-th call fails in opening: nothing is left behind, no file that was there is changed beyond its torn tail. */
static void test_failing_open(void **state)
{
    (void)state;
    for (int resume = EVENTLOG_RESUME_NEW; resume <= EVENTLOG_RESUME_PURGE; resume++)
        for (long n = 1;; n++) {
            struct io_failing failing = { .fail_at = n, .error_number = EIO, .short_writes = 1 };
            struct io io = io_failing_table(&failing);
            struct eventlog_writer_options new = { 0 }, options = { .resume = (enum eventlog_resume)resume };
            struct eventlog_writer *w = open_with(new);
            char path[300];
            int rc;

            put_steps(w, "loss", 0, 10);
            snprintf(path, sizeof path, "%s", eventlog_writer_path(w));
            close_well(w);
            if (resume == EVENTLOG_RESUME_APPEND)
                append_bytes(path, "torn", 4);
            rc = event_writer_open_io(&w, directory, &options, &io, &error);
            if (rc == EVENTLOG_OK)
                eventlog_writer_close(w, NULL); /* the n-th call may be in there */
            else
                assert_true(rc == EVENTLOG_ERROR_IO && error.system == EIO && *error.message);
            options = (struct eventlog_writer_options){ .resume = EVENTLOG_RESUME_APPEND };
            if (rc != EVENTLOG_OK)
                assert_int_equal(count_files(), 1);
            w = open_with(options); /* cuts the torn tail, if the failed one has not */
            close_well(w);
            read_run();
            remove_files();
            if (failing.calls < n)
                break;
        }
}

/* ---- fsync ------------------------------------------------------------------------------------------------------- */

static void test_sync_policies(void **state)
{
    (void)state;
    for (size_t queue_bytes = 0; queue_bytes <= 1 << 20; queue_bytes += 1 << 20) {
        struct eventlog_writer_options never = { .queue_bytes = queue_bytes };
        struct eventlog_writer_options at_flush = { .sync = EVENTLOG_SYNC_AT_FLUSH, .queue_bytes = queue_bytes };
        struct eventlog_writer_options every = {
            .sync = EVENTLOG_SYNC_EVERY, .sync_seconds = 1e-9, .buffer_bytes = 200, .queue_bytes = queue_bytes
        };
        struct eventlog_writer *w = open_with(never);

        put_steps(w, "loss", 0, 100);
        eventlog_writer_flush(w, NULL);
        assert_int_equal(statistics(w).syncs, 0);
        eventlog_writer_sync(w, NULL);
        assert_int_equal(statistics(w).syncs, 1);
        assert_int_equal(statistics(w).flushes, 2);
        close_well(w);
        w = open_with(at_flush);
        put_steps(w, "loss", 0, 100);
        assert_int_equal(statistics(w).syncs, 0);
        eventlog_writer_flush(w, NULL);
        assert_int_equal(statistics(w).syncs, 1);
        close_well(w);
        w = open_with(every);
        put_steps(w, "loss", 0, 100);
        eventlog_writer_flush(w, NULL);
        assert_true(statistics(w).syncs > 0);
        close_well(w);
        remove_files();
    }
}

static void test_refused_options(void **state)
{
    struct eventlog_writer_options wrong[] = {
        { .sync = EVENTLOG_SYNC_EVERY },
        { .sync = (enum eventlog_sync)7 },
        { .resume = (enum eventlog_resume)9 },
        { .when_full = (enum eventlog_when_full)3 },
        { .rotate_seconds = -1 },
        { .queue_bytes = SIZE_MAX },
        { .leave_lost = 2 },
    };
    struct eventlog_writer *w;
    (void)state;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(eventlog_writer_open(&w, directory, &wrong[i], &error), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(read_run().files, 0);
}

/* A tag that is a scalar is nothing else, and the other way round, over rotation as well. */
static void test_kinds_of_scalars(void **state)
{
    struct eventlog_writer_options options = { .rotate_bytes = 100 };
    struct eventlog_writer *w = open_with(options);
    (void)state;

    assert_int_equal(eventlog_writer_text(w, "note", 1, 0, "x", NULL, &error), EVENTLOG_OK);
    put_steps(w, "loss", 0, 10);
    assert_int_equal(eventlog_writer_scalar(w, "note", 1, 0, 1, &error), EVENTLOG_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "belongs to text"));
    assert_int_equal(eventlog_writer_text(w, "loss", 1, 0, "x", NULL, &error), EVENTLOG_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "belongs to scalars"));
    assert_int_equal(statistics(w).events, 11);
    close_well(w);
    assert_int_equal(read_run().points, 11);
    remove_files();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rotation_by_size),
        cmocka_unit_test(test_rotation_by_age),
        cmocka_unit_test(test_rotation_without_room),
        cmocka_unit_test(test_names_sort),
        cmocka_unit_test(test_rotation_lists_nothing),
        cmocka_unit_test(test_append),
        cmocka_unit_test(test_append_takes_the_newest),
        cmocka_unit_test(test_append_refused),
        cmocka_unit_test(test_purge),
        cmocka_unit_test(test_failing_open),
        cmocka_unit_test(test_sync_policies),
        cmocka_unit_test(test_refused_options),
        cmocka_unit_test(test_kinds_of_scalars),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
