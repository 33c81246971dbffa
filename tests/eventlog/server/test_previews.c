/* Runs that are shown by the index of what was saved: complete in lists at once, their points read when they are asked
 * for, and never wrong, whatever became of the file. */
#include "base/bytes.h"
#include "base/clock.h"
#include "eventlog/server/cache_files.h"
#include "eventlog/server/data_answer.h"
#include "eventlog/server/previews.h"
#include "tests/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAGS = 3 };

static const char preview_folder[] = "build/test_previews";
static char log_file[] = "/log/r/one";
static const struct run_cache_file one_file = { .path = log_file, .place = { .size = 9, .offset = 9, .seen = 5 } };

/* Points of tags a, b, c whose values are `factor` times the step. */
static struct run_data *curves(int points, float factor)
{
    uint8_t record[] = { 0x09, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x2a, 0x0a, 0x0a, 0x08, 0x0a, 0x01, 'a', 0x15, 0, 0, 0, 0 };
    struct run_data *run = run_data_new("r", 1);
    struct event event;

    assert_non_null(run);
    for (int step = 0; step < points; step++)
        for (int tag = 0; tag < TAGS; tag++) {
            record[15] = (uint8_t)('a' + tag);
            put_le32(record + 17, float_bits(factor * (float)(step % 77)));
            assert_int_equal(event_decode(record, sizeof record, &event, NULL), OK);
            event.step = step;
            assert_int_equal(run_data_event(run, 0, log_file, &event, 0, NULL), OK);
        }
    return run;
}

static void empty_preview_folder(void)
{
    DIR *d = opendir(preview_folder);
    struct dirent *entry;

    while (d && (entry = readdir(d)))
        unlinkat(dirfd(d), entry->d_name, 0);
    if (d)
        closedir(d);
    rmdir(preview_folder);
}

static void save(struct cache_files *c, int points, float factor)
{
    struct run_data *run = curves(points, factor);

    assert_int_equal(cache_files_write(c, "/log/r", run, 1, &one_file, 1, NULL), OK);
    run_data_free(run);
}

static struct run_view *view_of_run(int points, float factor)
{
    struct run_data *run = curves(points, factor);
    struct run_view *view;

    assert_int_equal(run_data_view(run, &view, NULL), OK);
    run_data_free(run);
    return view;
}

/* NULL: there is none. */
static struct run_view *shown(const struct cache_files *c)
{
    struct run_view *view = NULL;
    struct run_cache back;

    if (cache_files_preview(c, &back, "/log/r", "r", 1, NULL) == OK) {
        assert_int_equal(back.count, 1);
        assert_string_equal(back.files[0].path, log_file);
        assert_memory_equal(&back.files[0].place, &one_file.place, sizeof one_file.place);
        view = back.view;
        back.view = NULL;
    }
    run_cache_release(&back);
    return view;
}

/* 1: all points of the series are there; 0: they are not. Never other ones. */
static int same_points(struct series_view *a, struct series_view *b)
{
    assert_true(a->count == b->count && a->last_step == b->last_step && a->latest == b->latest);
    assert_true(a->most_blobs == b->most_blobs && a->info->metadata_length == b->info->metadata_length);
    if (!series_view_fill(a))
        return 0;
    for (size_t row = 0; row < a->count; row++)
        for (int column = COLUMN_STEP; column <= COLUMN_VALUE; column++)
            assert_true(series_view_at(a, row, (enum column)column) == series_view_at(b, row, (enum column)column));
    return 1;
}

static int filled(struct run_view *view, struct run_view *wanted)
{
    int there = 0;

    assert_int_equal(view->count, wanted->count);
    assert_true(view->start_time == wanted->start_time && view->files->count == wanted->files->count);
    for (size_t i = 0; i < view->count; i++)
        there += same_points(view->series[i], wanted->series[i]);
    return there;
}

static int cache_file_of(struct cache_files *c, char path[PATH_MAX])
{
    DIR *d = opendir(c->directory);
    struct dirent *entry;
    int found = 0;

    while (d && (entry = readdir(d)))
        if (strstr(entry->d_name, ".run")) {
            snprintf(path, PATH_MAX, "%s/%s", c->directory, entry->d_name);
            found++;
        }
    closedir(d);
    return found;
}

static uint8_t *all_bytes(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    uint8_t *bytes = malloc(1 << 20);

    assert_true(f && bytes);
    *size = fread(bytes, 1, 1 << 20, f);
    fclose(f);
    return bytes;
}

static void test_all_points_are_there_when_asked_for(void **state)
{
    struct cache_files c;

    (void)state;
    empty_preview_folder();
    assert_int_equal(cache_files_open(&c, preview_folder, NULL), OK);
    assert_null(shown(&c));
    for (int points = 1; points < 3000; points = points * 3 + 1) {
        struct run_view *wanted = view_of_run(points, 1), *view;

        save(&c, points, 1);
        assert_non_null(view = shown(&c));
        assert_int_equal(filled(view, wanted), TAGS);
        assert_int_equal(filled(view, wanted), TAGS); /* again */
        run_view_drop(view);
        run_view_drop(wanted);
    }
    empty_preview_folder();
    cache_files_close(&c);
}

/* Its first event only. */
static void test_a_run_without_series(void **state)
{
    static const uint8_t record[] = { 0x09, 0, 0, 0, 0, 0, 0, 0, 0x40 };
    struct run_data *run = run_data_new("r", 1);
    struct run_view *view;
    struct cache_files c;
    struct event event;

    (void)state;
    empty_preview_folder();
    assert_int_equal(cache_files_open(&c, preview_folder, NULL), OK);
    assert_int_equal(event_decode(record, sizeof record, &event, NULL), OK);
    assert_int_equal(run_data_event(run, 0, log_file, &event, 0, NULL), OK);
    assert_int_equal(cache_files_write(&c, "/log/r", run, 1, &one_file, 1, NULL), OK);
    assert_non_null(view = shown(&c));
    assert_true(view->count == 0 && view->start_time == 2);
    run_view_drop(view);
    run_data_free(run);
    empty_preview_folder();
    cache_files_close(&c);
}

/* Each byte, and each length: what is damaged in the index is not shown, a curve whose points are damaged has none. */
static void test_no_damage_is_believed(void **state)
{
    struct run_view *wanted = view_of_run(300, 1), *view;
    size_t size, not_shown = 0, one_lost = 0;
    struct cache_files c;
    char path[PATH_MAX];
    uint8_t *bytes;
    int fd;

    (void)state;
    empty_preview_folder();
    assert_int_equal(cache_files_open(&c, preview_folder, NULL), OK);
    save(&c, 300, 1);
    assert_int_equal(cache_file_of(&c, path), 1);
    bytes = all_bytes(path, &size);
    fd = open(path, O_WRONLY);
    for (size_t i = 0; i < size; i++) {
        const uint8_t bad = (uint8_t)(bytes[i] ^ 1 << i % 8);

        assert_int_equal(pwrite(fd, &bad, 1, (off_t)i), 1);
        view = shown(&c);
        not_shown += !view;
        one_lost += view && filled(view, wanted) == TAGS - 1;
        run_view_drop(view);
        assert_int_equal(pwrite(fd, bytes + i, 1, (off_t)i), 1);
    }
    assert_true(not_shown > 300 && not_shown + one_lost == size);
    for (size_t n = size; n--;) {
        assert_int_equal(ftruncate(fd, (off_t)n), 0);
        assert_null(shown(&c));
    }
    close(fd);
    free(bytes);
    run_view_drop(wanted);
    empty_preview_folder();
    cache_files_close(&c);
}

/* Blocks that were cut: those before are there, and nothing behind the end is looked at. */
static void test_cut_blocks(void **state)
{
    uint8_t bytes[2 * POINT_SERIES_BLOCK_BYTES];
    struct point_series p = { .rows = 0 }, back;
    size_t first = 0, all = 0;

    (void)state;
    for (uint64_t step = 0; step < COLUMN_BLOCK_ROWS + 3; step++)
        assert_int_equal(point_series_add(&p, &(struct column_row){ { step, step * step, step % 3 } }, 3), 1);
    assert_int_equal(point_series_settle(&p, 3), 1);
    assert_int_equal(p.block_count, 2);
    all = first = point_series_save_block(&p, 0, bytes);
    all += point_series_save_block(&p, 1, bytes + first);
    for (size_t n = 0; n <= all; n++) {
        uint8_t *exact = malloc(n + !n);

        bytes_copy(exact, bytes, n);
        back = (struct point_series){ .rows = 0 };
        assert_int_equal(point_series_load(&back, exact, n, 3, NULL), n == 0 || n == first || n == all);
        assert_int_equal(back.block_count, (size_t)(n >= first) + (n >= all));
        point_series_release(&back);
        free(exact);
    }
    point_series_release(&p);
}

/* Between the index and the points. */
static void test_a_file_that_changes_meanwhile(void **state)
{
    struct run_view *wanted = view_of_run(300, 1), *view;
    struct cache_files c;
    char path[PATH_MAX];

    (void)state;
    empty_preview_folder();
    assert_int_equal(cache_files_open(&c, preview_folder, NULL), OK);
    for (int change = 0; change < 4; change++) {
        save(&c, 300, 1);
        assert_int_equal(cache_file_of(&c, path), 1);
        assert_non_null(view = shown(&c));
        switch (change) {
        case 0: save(&c, 300, 2); break; /* another server's */
        case 1: save(&c, 30, 1); break;
        case 2: assert_int_equal(truncate(path, 100), 0); break;
        default: assert_int_equal(unlink(path), 0);
        }
        assert_int_equal(filled(view, wanted), 0);
        run_view_drop(view);
    }
    run_view_drop(wanted);
    empty_preview_folder();
    cache_files_close(&c);
}

static void put_view(struct snapshot *s, struct run_view *view)
{
    struct log_view *log = log_view_new(&view, 1);

    assert_non_null(log);
    run_view_drop(view);
    snapshot_put(s, log);
}

/* The loader, which comes to the run after a while. */
static void *read_again(void *snapshot)
{
    put_view(snapshot, view_of_run(200, 3)); /* not yet what is wanted, but whole */
    return NULL;
}

/* A request for damaged points is answered once they have been read again; lists are at once; patience ends. */
static void test_requests_wait_for_points_that_are_read_again(void **state)
{
    static const uint8_t bytes[] = "\x0a\x00\x12\x09\x0a\x07scalars\x22\x03\x08\xe8\x07";
    const struct data_patience patience = { 0 }, none_left = { .deadline = clock_monotonic() + 0.01 };
    char path[PATH_MAX], message[DATA_ANSWER_MESSAGE];
    struct buffer listed = BUFFER_EMPTY, found = BUFFER_EMPTY, wanted = BUFFER_EMPTY;
    struct snapshot snapshot, whole;
    const struct data_source source = { .snapshot = &snapshot, .location = "", .hints = { 0 } };
    const struct data_source good = { .snapshot = &whole, .location = "", .hints = { 0 } };
    struct data_request request;
    struct cache_files c;
    pthread_t loader;

    (void)state;
    empty_preview_folder();
    assert_int_equal(cache_files_open(&c, preview_folder, NULL), OK);
    assert_int_equal(snapshot_init(&snapshot), OK);
    assert_int_equal(snapshot_init(&whole), OK);
    put_view(&whole, view_of_run(200, 3));
    save(&c, 200, 3);
    assert_int_equal(cache_file_of(&c, path), 1);
    put_view(&snapshot, shown(&c));
    assert_int_equal(unlink(path), 0);

    assert_int_equal(data_request_read(&request, DATA_LIST_SCALARS, bytes, sizeof bytes - 1, NULL), OK);
    assert_int_equal(data_answer(&source, &request, &patience, &listed, message), DATA_OK);
    assert_int_equal(data_answer(&good, &request, &patience, &wanted, message), DATA_OK);
    assert_true(listed.length == wanted.length && listed.length > 30);
    assert_memory_equal(listed.data, wanted.data, listed.length);
    data_request_release(&request);

    assert_int_equal(data_request_read(&request, DATA_READ_SCALARS, bytes, sizeof bytes - 1, NULL), OK);
    assert_int_equal(data_answer(&source, &request, &none_left, &found, message), DATA_DEADLINE_EXCEEDED);
    assert_int_equal(pthread_create(&loader, NULL, read_again, &snapshot), 0);
    assert_int_equal(data_answer(&source, &request, &patience, &found, message), DATA_OK);
    pthread_join(loader, NULL);
    buffer_clear(&wanted);
    assert_int_equal(data_answer(&good, &request, &patience, &wanted, message), DATA_OK);
    assert_true(found.length == wanted.length && found.length > TAGS * 200 * 12);
    assert_memory_equal(found.data, wanted.data, found.length);
    data_request_release(&request);

    buffer_release(&listed);
    buffer_release(&found);
    buffer_release(&wanted);
    snapshot_release(&snapshot);
    snapshot_release(&whole);
    empty_preview_folder();
    cache_files_close(&c);
}

static void test_one_of_each_name(void **state)
{
    struct run_view *views[] = { view_of_run(1, 1), NULL, view_of_run(2, 1) };
    struct previews p = { 0 };

    (void)state;
    assert_int_equal(previews_find(&p, "r"), 0);
    assert_int_equal(previews_add(&p, views, 3), 1);
    assert_int_equal(p.count, 1);
    assert_true(previews_find(&p, "r") && !previews_find(&p, "s"));
    previews_drop(&p);
    assert_int_equal(previews_find(&p, "r"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_points_are_there_when_asked_for),
        cmocka_unit_test(test_a_run_without_series),
        cmocka_unit_test(test_no_damage_is_believed),
        cmocka_unit_test(test_cut_blocks),
        cmocka_unit_test(test_a_file_that_changes_meanwhile),
        cmocka_unit_test(test_requests_wait_for_points_that_are_read_again),
        cmocka_unit_test(test_one_of_each_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
