/* Small runs in one file: they come back; damage costs the runs that it is in, and no run comes back changed; writing may
 * fail or be killed anywhere. */
#include "base/bytes.h"
#include "eventlog/server/cache_pack.h"
#include "tests/check.h"
#include "tests/failing_io.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNS = 5 };

static const char pack_folder[] = "build/test_cache_pack";
static char file_path[] = "/log/r/one";
static const struct run_cache_file one_file = { .path = file_path, .place = { .size = 9, .offset = 9, .seen = 5 } };

/* Of that name, with that many points. */
static struct run_data *curve(const char *name, int points)
{
    static const uint8_t record[] = { 0x09, 0,    0,    0,    0,   0,    0, 0, 0x40, 0x2a, 0x0a,
                                      0x0a, 0x08, 0x0a, 0x01, 'a', 0x15, 0, 0, 0x80, 0x3f };
    struct run_data *run = run_data_new(name, 1);
    struct event event;

    assert_non_null(run);
    assert_int_equal(event_decode(record, sizeof record, &event, NULL), OK);
    for (event.step = 0; event.step < points; event.step++)
        assert_int_equal(run_data_event(run, 0, file_path, &event, 0, NULL), OK);
    return run;
}

/* Runs a, b, c, ... of that many points more each; how many of them are in. */
static int write_pack(struct cache_files *c, int points, int *rc)
{
    struct cache_pack_writing w;
    int in = 0;

    if ((*rc = cache_pack_begin(&w, c, "log", 1, NULL)) <= 0)
        return 0;
    for (int i = 0; i < RUNS; i++) {
        const char name[] = { (char)('a' + i), 0 };
        struct run_data *run = curve(name, points + i);

        in += cache_pack_add(&w, run, &one_file, 1);
        run_data_free(run);
    }
    *rc = cache_pack_end(&w, NULL);
    return in;
}

/* A run is shown by its index with the points that its name says, or not at all; and these are there or are not. */
static void check_preview(const struct cache_pack *p, size_t i, int points, int others)
{
    struct run_cache c;

    if (cache_pack_preview(p, i, 1, &c, NULL) != OK)
        return;
    int more = *c.view->name - 'a', found = (int)c.view->series[0]->count - more;

    assert_true(strlen(c.view->name) == 1 && more >= 0 && more < RUNS && c.view->count == 1);
    assert_true(found == points || found == others);
    if (series_view_fill(c.view->series[0]))
        for (int row = 0; row < found + more; row++)
            assert_true(series_view_at(c.view->series[0], (size_t)row, COLUMN_STEP) == (uint64_t)row);
    run_cache_release(&c);
}

/* How many runs come back; each must have the points that its name says, beside `points` or, as many, `others`. */
static int check_runs(const struct cache_pack *p, int points, int others)
{
    struct run_cache c;
    int count = 0;

    for (size_t i = 0; i < p->count; i++) {
        check_preview(p, i, points, others);
        if (cache_pack_run(p, i, 1, &c, NULL) != OK)
            continue;
        int more = *run_data_name(c.run) - 'a', found = (int)run_data_points(c.run) - more;

        assert_true(strlen(run_data_name(c.run)) == 1 && more >= 0 && more < RUNS);
        assert_true(found == points || found == others);
        assert_int_equal(c.count, 1);
        assert_string_equal(c.files[0].path, file_path);
        assert_int_equal(c.files[0].place.seen, 5);
        run_cache_release(&c);
        count++;
    }
    return count;
}

static int read_pack(const struct cache_files *c, int points, int others)
{
    struct cache_pack p;
    int count = 0;

    if (cache_pack_read(c, &p, "log", 1, NULL) == OK)
        count = check_runs(&p, points, others);
    cache_pack_release(&p);
    return count;
}

static void empty_pack_folder(void)
{
    DIR *d = opendir(pack_folder);
    struct dirent *entry;

    while (d && (entry = readdir(d)))
        unlinkat(dirfd(d), entry->d_name, 0);
    if (d)
        closedir(d);
    rmdir(pack_folder);
}

static struct cache_files opened(void)
{
    struct cache_files c;

    empty_pack_folder();
    assert_int_equal(cache_files_open(&c, pack_folder, NULL), OK);
    return c;
}

static void closed(struct cache_files *c)
{
    empty_pack_folder();
    cache_files_close(c);
}

static void test_runs_come_back(void **state)
{
    struct cache_files c = opened();
    struct cache_pack p;
    int rc;

    (void)state;
    assert_int_equal(read_pack(&c, 10, 10), 0);
    assert_int_equal(write_pack(&c, 10, &rc), RUNS);
    assert_int_equal(rc, OK);
    assert_int_equal(read_pack(&c, 10, 10), RUNS);
    assert_int_equal(write_pack(&c, 20, &rc), RUNS); /* another server, the last one counts */
    assert_int_equal(read_pack(&c, 20, 20), RUNS);
    assert_int_not_equal(cache_pack_read(&c, &p, "log", 0, NULL), OK);
    assert_int_not_equal(cache_pack_read(&c, &p, "another log", 1, NULL), OK);
    closed(&c);
}

/* A run of more than CACHE_PACK_RUN_MOST is left to a file of its own. */
static void test_large_runs_are_left_out(void **state)
{
    struct cache_files c = opened();
    struct cache_pack_writing w;
    struct run_data *small = curve("a", 10), *large = curve("b", 300000);

    (void)state;
    assert_int_equal(cache_pack_begin(&w, &c, "log", 1, NULL), 1);
    assert_int_equal(cache_pack_add(&w, large, &one_file, 1), 0);
    assert_int_equal(cache_pack_add(&w, small, &one_file, 1), 1);
    assert_int_equal(cache_pack_add(&w, large, &one_file, 1), 0);
    assert_int_equal(cache_pack_end(&w, NULL), OK);
    assert_int_equal(read_pack(&c, 10, 10), 1);
    run_data_free(small);
    run_data_free(large);
    closed(&c);
}

static uint8_t *file_bytes(size_t *size)
{
    DIR *d = opendir(pack_folder);
    struct dirent *entry;
    char name[PATH_MAX];
    uint8_t *bytes = NULL;
    FILE *f = NULL;

    while (d && !f && (entry = readdir(d)))
        if (strstr(entry->d_name, ".pack")) {
            snprintf(name, sizeof name, "%s/%s", pack_folder, entry->d_name);
            f = fopen(name, "rb");
        }
    closedir(d);
    assert_non_null(f);
    bytes = malloc(1 << 20);
    *size = fread(bytes, 1, 1 << 20, f);
    fclose(f);
    return bytes;
}

/* How many runs of these bytes, at exactly their length, come back. */
static int runs_of(const uint8_t *bytes, size_t n)
{
    struct shared_bytes *exact = shared_bytes_new(n + !n);
    struct cache_pack p;
    int count;

    bytes_copy(exact->bytes, bytes, n);
    exact->size = n;
    count = cache_pack_index(&p, exact, 1, NULL) == OK ? check_runs(&p, 3, 3) : 0;
    cache_pack_release(&p);
    shared_bytes_drop(exact);
    return count;
}

/* Every byte changed, and the file cut after every one: the other runs come back, and none that is damaged. */
static void test_damage(void **state)
{
    struct cache_files c = opened();
    size_t size, all = 0;
    uint8_t *good;
    int rc;

    (void)state;
    write_pack(&c, 3, &rc);
    good = file_bytes(&size);
    assert_int_equal(runs_of(good, size), RUNS);
    for (size_t i = 0; i < size; i++) {
        good[i] ^= (uint8_t)(1 << i % 8);
        rc = runs_of(good, size);
        assert_true(rc < RUNS);
        all += rc == RUNS - 1;
        good[i] ^= (uint8_t)(1 << i % 8);
    }
    assert_true(all > size / 2); /* mostly the one run alone is lost */
    for (size_t n = 0; n < size; n++)
        assert_true(runs_of(good, n) < RUNS);
    free(good);
    closed(&c);
}

static void test_pack_killed_or_failing_anywhere(void **state)
{
    struct cache_files c = opened();
    int calls = 0, rc;

    (void)state;
    write_pack(&c, 10, &rc);
    for (int kind = 0; kind < 3; kind++)
        for (calls = 1;; calls++) {
            struct io_failing failing = { .fail_at = calls,
                                          .error_number = ENOSPC,
                                          .kill = !kind,
                                          .stay_failed = kind == 2,
                                          .short_writes = kind == 2 };
            const struct io io = io_failing_table(&failing);
            struct cache_files broken = c;
            int status;
            pid_t child = fork();

            broken.io = &io;
            if (!child) {
                write_pack(&broken, 20, &rc);
                _exit(rc == OK ? 0 : 3);
            }
            assert_int_equal(waitpid(child, &status, 0), child);
            assert_int_equal(read_pack(&c, 10, 20), RUNS); /* the old ones or the new ones */
            if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
                break;
            assert_true(kind ? WIFEXITED(status) : WIFSIGNALED(status));
            write_pack(&c, 10, &rc);
        }
    assert_true(calls > RUNS + 2);
    closed(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_come_back),
        cmocka_unit_test(test_large_runs_are_left_out),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_pack_killed_or_failing_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
