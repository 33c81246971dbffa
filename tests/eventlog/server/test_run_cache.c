/* Saved runs: they come back as they were; damaged, cut, old and foreign ones are thrown away; writing may fail or be
 * killed anywhere. */
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "eventlog/server/cache_files.h"
#include "tests/check.h"
#include "tests/failing_io.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int keep(void *context, const void *bytes, size_t n)
{
    buffer_append(context, bytes, n);
    return 0;
}

/* Wall time and summary { tag: 1 } at a step. */
static void add(struct run_data *run, size_t file, const char *path, int64_t step, double wall)
{
    uint8_t record[] = {
        0x09, 0, 0, 0, 0, 0, 0, 0, 0, 0x2a, 0x0a, 0x0a, 0x08, 0x0a, 0x01, 'a', 0x15, 0, 0, 0x80, 0x3f
    };
    struct event event;

    put_le64(record + 1, double_bits(wall));
    put_le32(record + 17, float_bits((float)step * 0.3f));
    assert_int_equal(event_decode(record, sizeof record, &event, NULL), OK);
    event.step = step;
    assert_int_equal(run_data_event(run, file, path, &event, (uint64_t)step * 100, NULL), OK);
}

static void add_image(struct run_data *run, size_t file, const char *path, int64_t step)
{
    static const uint8_t record[] = {
        0x09, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x2a, 0x07, 0x0a, 0x05, 0x0a, 0x01, 'i', 0x22, 0
    };
    struct event event;

    assert_int_equal(event_decode(record, sizeof record, &event, NULL), OK);
    event.step = step;
    assert_int_equal(run_data_event(run, file, path, &event, 7, NULL), OK);
}

static char one[] = "/log/r/one", two[] = "/log/r/two";
static struct run_cache_file files[] = {
    { .path = one,
      .place = { 1, 2, 3, { 4, 5 }, { 6, 7 }, 3, 2, 0, 1, 1.5, 2.5, { 0, 2, { 1 } }, { 1, 2, { 3 } }, 0 },
      .note = 9 },
    { .path = two },
};

/* Two files that overlap in time, so that their points are merged, and an image. */
static struct run_data *made(int points)
{
    struct run_data *run = run_data_new("r", 1);

    assert_non_null(run);
    for (int i = 0; i < points; i++)
        add(run, 0, files[0].path, 2 * i, 10 + i + (double)((long)i * 7919 % 1000) / 3000);
    add_image(run, 0, files[0].path, 3);
    for (int i = 0; i < points / 2; i++)
        add(run, 1, files[1].path, 2 * i + 1, 10.5 + i);
    return run;
}

static struct buffer saved(struct run_data *run)
{
    struct buffer out = BUFFER_EMPTY;

    assert_int_equal(run_cache_write(run, files, 2, keep, &out, NULL), OK);
    return out;
}

enum { COPIED, IN_PLACE };

static int read_back(struct run_cache *c, const void *bytes, size_t n, int how, const char *name, int merge)
{
    struct shared_bytes *exact = shared_bytes_new(n + !n); /* so that a byte too far is seen by the sanitizer */
    int rc;

    assert_non_null(exact);
    bytes_copy(exact->bytes, bytes, n);
    rc = run_cache_read(c, name, merge, exact->bytes, n, how == IN_PLACE ? exact : NULL, NULL);
    shared_bytes_drop(exact);
    return rc;
}

static void expect_same(struct run_data *a, struct run_data *b)
{
    struct run_view *x, *y;

    assert_int_equal(run_data_view(a, &x, NULL), OK);
    assert_int_equal(run_data_view(b, &y, NULL), OK);
    assert_int_equal(x->count, y->count);
    assert_true(x->start_time == y->start_time && x->files->count == y->files->count);
    for (size_t i = 0; i < x->count; i++) {
        const struct series_view *s = x->series[i], *t = y->series[i];

        assert_true(s->count == t->count && s->latest == t->latest && s->most_blobs == t->most_blobs);
        assert_true(s->info->class == t->info->class && s->info->metadata_length == t->info->metadata_length);
        assert_memory_equal(s->info->metadata, t->info->metadata, s->info->metadata_length);
        for (size_t row = 0; row < s->count; row++)
            for (size_t c = 0; c < column_block_columns(s->blocks[0]); c++)
                assert_true(series_view_at(s, row, (enum column)c) == series_view_at(t, row, (enum column)c));
    }
    run_view_drop(x);
    run_view_drop(y);
}

static void test_run_comes_back_and_goes_on(void **state)
{
    (void)state;
    for (int points = 0; points < 3000; points = points * 3 + 1)
        for (int how = COPIED; how <= IN_PLACE; how++) {
            struct run_data *run = made(points);
            struct buffer bytes = saved(run), again;
            struct run_cache c;

            assert_int_equal(read_back(&c, bytes.data, bytes.length, how, "r", 1), OK);
            assert_int_equal(c.count, 2);
            assert_string_equal(c.files[0].path, files[0].path);
            assert_memory_equal(&c.files[0].place, &files[0].place, sizeof files[0].place);
            assert_int_equal(c.files[0].note, 9);
            assert_true(run_data_points(c.run) == run_data_points(run));
            expect_same(run, c.run);
            again = saved(c.run);
            assert_int_equal(again.length, bytes.length);
            assert_memory_equal(again.data, bytes.data, bytes.length);
            for (int i = 0; i < 300; i++) { /* also with a step that replaces what comes after it */
                add(run, 1, files[1].path, points / 2 + i, 4000 + i);
                add(c.run, 1, files[1].path, points / 2 + i, 4000 + i);
            }
            expect_same(run, c.run);
            buffer_release(&again);
            buffer_release(&bytes);
            run_data_free(run);
            run_cache_release(&c);
        }
}

static void test_damage_is_thrown_away(void **state)
{
    struct run_data *run = made(40);
    struct buffer bytes = saved(run);
    struct run_cache c;
    char *index;

    (void)state;
    for (size_t i = 0; i < bytes.length; i++)
        for (int bit = 0; bit < 8; bit++) {
            bytes.data[i] = (char)(bytes.data[i] ^ 1 << bit);
            assert_int_not_equal(read_back(&c, bytes.data, bytes.length, IN_PLACE, "r", 1), OK);
            bytes.data[i] = (char)(bytes.data[i] ^ 1 << bit);
        }
    for (size_t n = 0; n < bytes.length; n++)
        assert_int_not_equal(read_back(&c, bytes.data, n, IN_PLACE, "r", 1), OK);
    for (int byte = 0; byte < 256; byte++) { /* one too many */
        struct buffer longer = BUFFER_EMPTY;

        buffer_append(&longer, bytes.data, bytes.length);
        buffer_append_byte(&longer, byte);
        assert_int_not_equal(read_back(&c, longer.data, longer.length, IN_PLACE, "r", 1), OK);
        buffer_release(&longer);
    }
    assert_int_equal(read_back(&c, bytes.data, bytes.length, IN_PLACE, "s", 1), ERR_CORRUPT);
    assert_int_equal(read_back(&c, bytes.data, bytes.length, IN_PLACE, "r", 0), ERR_CORRUPT);
    index = bytes.data + bytes.length - run_cache_index_size((uint8_t *)bytes.data + bytes.length - 12, bytes.length);
    index[8]++; /* another version, with its checksum */
    put_le32(bytes.data + bytes.length - 4, crc32c(index, (size_t)(bytes.data + bytes.length - 4 - index)));
    assert_int_equal(read_back(&c, bytes.data, bytes.length, IN_PLACE, "r", 1), ERR_CORRUPT);
    buffer_release(&bytes);
    run_data_free(run);
}

/* ---- files ----------------------------------------------------------------------------------------------------- */

static const char folder[] = "build/test_run_cache";

/* Removes the folder; how many files were in it. */
static int empty_folder(void)
{
    DIR *d = opendir(folder);
    struct dirent *entry;
    int count = 0;

    while (d && (entry = readdir(d)))
        if (*entry->d_name != '.' && unlinkat(dirfd(d), entry->d_name, 0) == 0)
            count++;
    if (d)
        closedir(d);
    rmdir(folder);
    return count;
}

static int write_run(struct cache_files *c, const char *place, int points)
{
    struct run_data *run = made(points);
    int rc = cache_files_write(c, place, run, 1, files, 2, NULL);

    run_data_free(run);
    return rc;
}

/* The points of the saved run; -1: there is none. */
static long points_saved(const struct cache_files *c, const char *place)
{
    struct run_cache back;
    long points = -1;

    if (cache_files_read(c, &back, place, "r", 1, NULL) == OK) {
        points = (long)run_data_points(back.run);
        run_cache_release(&back);
    }
    return points;
}

/* What was read stays what it was, whatever becomes of the file. */
static void test_cut_after_reading(void **state)
{
    enum { POINTS = 1200000 }; /* more than 8 MiB */
    struct run_data *run = made(POINTS);
    struct cache_files c;
    struct run_cache back;
    struct dirent *entry;
    int cut = 0;
    DIR *d;

    (void)state;
    empty_folder();
    assert_int_equal(cache_files_open(&c, folder, NULL), OK);
    assert_int_equal(cache_files_write(&c, "/r", run, 1, files, 2, NULL), OK);
    assert_int_equal(cache_files_read(&c, &back, "/r", "r", 1, NULL), OK);
    assert_non_null(d = opendir(folder));
    while ((entry = readdir(d)))
        if (*entry->d_name != '.') {
            int fd = openat(dirfd(d), entry->d_name, O_WRONLY);
            struct stat st;

            assert_true(fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 8 << 20);
            assert_int_equal(ftruncate(fd, 0), 0);
            close(fd);
            cut++;
        }
    closedir(d);
    assert_int_equal(cut, 1);
    expect_same(run, back.run);
    assert_int_equal(points_saved(&c, "/r"), -1);
    run_cache_release(&back);
    run_data_free(run);
    empty_folder();
    cache_files_close(&c);
}

static void test_killed_or_failing_anywhere(void **state)
{
    struct cache_files c;
    int calls = 0;

    (void)state;
    empty_folder();
    assert_int_equal(cache_files_open(&c, folder, NULL), OK);
    assert_int_equal(write_run(&c, "/r", 10), OK);
    for (int kind = 0; kind < 3; kind++)
        for (calls = 1;; calls++) {
            struct io_failing failing = { .fail_at = calls,
                                          .error_number = ENOSPC,
                                          .kill = kind == 0,
                                          .stay_failed = kind == 2,
                                          .short_writes = kind == 2 };
            const struct io io = io_failing_table(&failing);
            struct cache_files broken = c;
            long points;
            int status;
            pid_t child = fork();

            broken.io = &io;
            if (!child)
                _exit(write_run(&broken, "/r", 20000) == OK ? write_run(&broken, "/r", 20000) != OK : 3);
            assert_int_equal(waitpid(child, &status, 0), child);
            points = points_saved(&c, "/r");
            assert_true(points == 15 || points == 30000);
            if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
                break;
            assert_true(kind ? WIFEXITED(status) : WIFSIGNALED(status));
            assert_int_equal(write_run(&c, "/r", 10), OK);
        }
    assert_true(calls > 6);
    empty_folder();
    cache_files_close(&c);
}

static void test_one_failure_ends_saving(void **state)
{
    struct io_failing failing = { .fail_at = 2, .error_number = ENOSPC };
    const struct io io = io_failing_table(&failing);
    struct cache_files c;

    (void)state;
    empty_folder();
    assert_int_equal(cache_files_open(&c, folder, NULL), OK);
    c.io = &io;
    assert_int_equal(write_run(&c, "/r", 10), ERR_IO);
    assert_int_equal(write_run(&c, "/r", 10), OK);
    assert_int_equal(points_saved(&c, "/r"), -1);
    assert_int_equal(empty_folder(), 0);
    cache_files_close(&c);
    assert_int_equal(cache_files_open(&c, "/dev/null/x", NULL), OK);
    assert_int_equal(write_run(&c, "/r", 10), ERR_IO);
    assert_int_equal(write_run(&c, "/r", 10), OK);
    cache_files_close(&c);
}

/* Those used last stay; what others keep there stays, too. */
static void test_bounded(void **state)
{
    const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
    struct cache_files c;
    char name[128];

    (void)state;
    empty_folder();
    assert_int_equal(cache_files_open(&c, folder, NULL), OK);
    assert_int_equal(write_run(&c, "/a", 10), OK);
    assert_int_equal(write_run(&c, "/b", 10), OK);
    assert_int_equal(write_run(&c, "/c", 10), OK);
    snprintf(name, sizeof name, "%s/0123456789abcdef.run.tmp.1", folder);
    close(open(name, O_WRONLY | O_CREAT, 0600));
    utimensat(AT_FDCWD, name, old, 0);
    snprintf(name, sizeof name, "%s/mine.run", folder);
    close(open(name, O_WRONLY | O_CREAT, 0600));
    utimensat(AT_FDCWD, name, old, 0);
    assert_int_equal(points_saved(&c, "/a"), 15); /* used after b and c */
    c.most = c.unseen / 3 + 10;
    cache_files_trim(&c);
    assert_int_equal(points_saved(&c, "/a"), 15);
    assert_int_equal(points_saved(&c, "/b"), -1);
    assert_int_equal(points_saved(&c, "/c"), -1);
    assert_int_equal(empty_folder(), 2);
    cache_files_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_comes_back_and_goes_on), cmocka_unit_test(test_damage_is_thrown_away),
        cmocka_unit_test(test_cut_after_reading),          cmocka_unit_test(test_killed_or_failing_anywhere),
        cmocka_unit_test(test_one_failure_ends_saving),    cmocka_unit_test(test_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
