/* Reading a file that grows, is cut, replaced, damaged, or comes and goes; and which runs a directory holds. */
#include "eventlog/read/event_reader.h"

#include "base/bytes.h"
#include "eventlog/format/event_encode.h"
#include "eventlog/format/record.h"
#include "eventlog/read/log_directory.h"
#include "tests/check.h"
#include "tests/eventlog/remove_tree.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct log_input input;
static char directory[64], path[128], other[128];

static int setup(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/test_event_reader.XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    snprintf(path, sizeof path, "%s/a.tfevents", directory);
    snprintf(other, sizeof other, "%s/b.tmp", directory);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return remove_tree(directory);
}

static void put(const char *to, int flags, const void *bytes, size_t n)
{
    int fd = open(to, O_WRONLY | O_CREAT | flags, 0666);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    assert_int_equal(close(fd), 0);
}

/* Scalars with steps first, first + 1, ... */
static size_t scalars(uint8_t *out, int64_t first, int count)
{
    size_t n = 0;

    for (int i = 0; i < count; i++)
        n += event_encode_scalar(out + n, "t", 1, first + i, 5, 1);
    return n;
}

/* What one call gives: the step, or -1 at the end, -2 for damage, -3 when it begins again. */
static long next(struct event_reader *r)
{
    struct event_damage damage;
    struct event event;
    struct error e = { 0 };
    int rc = event_reader_next(r, &event, &damage, &e);

    if (rc < 0)
        fail_msg("%s", e.message);
    return rc == EVENTLOG_READ_EVENT    ? (long)event.step
           : rc == EVENTLOG_READ_END    ? -1
           : rc == EVENTLOG_READ_DAMAGE ? -2
                                        : -3;
}

static void test_grows_byte_by_byte(void **state)
{
    struct event_reader *r;
    uint8_t bytes[400];
    size_t n = scalars(bytes, 1, 3), each = n / 3;
    (void)state;

    put(path, O_TRUNC, "", 0);
    assert_int_equal(event_reader_open(&r, &input, path, NULL), OK);
    assert_int_equal(next(r), -1);
    for (size_t i = 0; i < n; i++) {
        put(path, O_APPEND, bytes + i, 1);
        if ((i + 1) % each == 0)
            assert_int_equal(next(r), (i + 1) / each);
        assert_int_equal(next(r), -1);
    }
    assert_int_equal(event_reader_state(r).records, 3);
    assert_int_equal(event_reader_state(r).offset, n);
    event_reader_close(r);
}

static void test_cut_and_replaced(void **state)
{
    struct event_reader *r;
    uint8_t bytes[400], longer[400];
    size_t n = scalars(bytes, 1, 3), m = scalars(longer, 1, 5);
    (void)state;

    put(path, O_TRUNC, bytes, n);
    assert_int_equal(event_reader_open(&r, &input, path, NULL), OK);
    for (int i = 1; i <= 3; i++)
        assert_int_equal(next(r), i);
    assert_int_equal(next(r), -1);
    /* A longer copy put in its place, as rsync does: reading goes on. */
    put(other, O_TRUNC, longer, m);
    assert_int_equal(rename(other, path), 0);
    for (int i = 4; i <= 5; i++)
        assert_int_equal(next(r), i);
    assert_int_equal(next(r), -1);
    /* Another file that begins alike and is as long: its other records tell. */
    m = scalars(longer, 1, 1);
    m += scalars(longer + m, 21, 5);
    put(other, O_TRUNC, longer, m);
    assert_int_equal(rename(other, path), 0);
    assert_int_equal(next(r), -3);
    assert_int_equal(next(r), 1);
    for (int i = 21; i <= 25; i++)
        assert_int_equal(next(r), i);
    assert_int_equal(next(r), -1);
    /* Gone: what was read stays. */
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(next(r), -1);
    /* Back with other content: from the start. */
    n = scalars(bytes, 7, 2);
    put(path, O_TRUNC, bytes, n);
    assert_int_equal(next(r), -3);
    assert_int_equal(next(r), 7);
    assert_int_equal(next(r), 8);
    assert_int_equal(next(r), -1);
    /* Cut short: from the start. */
    assert_int_equal(truncate(path, (off_t)(n / 2)), 0);
    assert_int_equal(next(r), -3);
    assert_int_equal(next(r), 7);
    assert_int_equal(next(r), -1);
    event_reader_close(r);
    unlink(other);
}

/* Cut and written anew between two looks, and longer than before: the same inode, but another file. */
static void test_written_anew(void **state)
{
    uint8_t bytes[800];
    struct event_reader *r;
    size_t n = scalars(bytes, 1, 3);
    (void)state;

    for (int rested = 0; rested < 2; rested++) {
        put(path, O_TRUNC, bytes, scalars(bytes, 1, 3));
        assert_int_equal(event_reader_open(&r, &input, path, NULL), OK);
        for (int i = 1; i <= 3; i++)
            assert_int_equal(next(r), i);
        assert_int_equal(next(r), -1);
        if (rested)
            event_reader_rest(r);
        assert_int_equal(next(r), -1);
        put(path, O_APPEND, bytes, n); /* grown: goes on */
        for (int i = 1; i <= 3; i++)
            assert_int_equal(next(r), i);
        assert_int_equal(next(r), -1);
        if (rested)
            event_reader_rest(r);
        put(path, O_TRUNC, bytes, scalars(bytes, 11, 8));
        assert_int_equal(next(r), -3);
        for (int i = 11; i <= 18; i++)
            assert_int_equal(next(r), i);
        assert_int_equal(next(r), -1);
        event_reader_close(r);
    }
}

static void test_hole_at_the_end(void **state)
{
    struct event_reader *r;
    uint8_t bytes[400];
    size_t n = scalars(bytes, 1, 2);
    (void)state;

    put(path, O_TRUNC, bytes, n / 2);
    assert_int_equal(truncate(path, 3000000), 0); /* larger than the reader's window */
    assert_int_equal(event_reader_open(&r, &input, path, NULL), OK);
    assert_int_equal(next(r), 1);
    assert_int_equal(next(r), -1);
    put(path, 0, bytes, n);
    assert_int_equal(next(r), 2);
    assert_int_equal(next(r), -1);
    assert_int_equal(event_reader_state(r).damaged, 0);
    event_reader_close(r);
}

static void test_damage(void **state)
{
    struct event_reader *r;
    struct event event;
    struct event_damage damage;
    uint8_t bytes[1000];
    size_t n = scalars(bytes, 1, 2), each = n / 2;
    (void)state;

    bytes[20] ^= 1; /* data of the first */
    n += event_encode_scalar(bytes + n, "t", 1, 3, NAN, 1);
    n += event_encode_scalar(bytes + n, "\xff", 1, 4, 5, 1);
    bytes[n + RECORD_HEADER] = 0x0e; /* a record that is no Event */
    record_seal(bytes + n, 1);
    n += 1 + RECORD_OVERHEAD;
    n += scalars(bytes + n, 6, 1);
    put(path, O_TRUNC, bytes, n);
    assert_int_equal(event_reader_open(&r, &input, path, NULL), OK);
    assert_int_equal(event_reader_next(r, &event, &damage, NULL), EVENTLOG_READ_DAMAGE);
    assert_int_equal(damage.kind, EVENTLOG_DAMAGE_DATA_CRC);
    assert_int_equal(damage.offset, 0);
    assert_int_equal(next(r), 2);
    assert_int_equal(event_reader_next(r, &event, &damage, NULL), EVENTLOG_READ_DAMAGE);
    assert_int_equal(damage.kind, EVENTLOG_DAMAGE_WALL_TIME);
    assert_int_equal(damage.offset, 2 * each);
    assert_int_equal(event_reader_next(r, &event, &damage, NULL), EVENTLOG_READ_DAMAGE);
    assert_int_equal(damage.kind, EVENTLOG_DAMAGE_UTF8);
    assert_int_equal(next(r), 4); /* handed out all the same */
    assert_int_equal(event_reader_next(r, &event, &damage, NULL), EVENTLOG_READ_DAMAGE);
    assert_int_equal(damage.kind, EVENTLOG_DAMAGE_PROTO);
    assert_int_equal(next(r), 6);
    assert_int_equal(next(r), -1);
    assert_int_equal(event_reader_state(r).damaged, 4);
    assert_int_equal(event_reader_state(r).records, 3);
    assert_int_equal(event_reader_state(r).lost, each);
    event_reader_close(r);
}

/* A record far larger than the window, and a length that promises what is not there. */
static void test_long_records(void **state)
{
    size_t tag_length = 3000000, n;
    uint8_t *bytes = malloc(tag_length + 1000);
    char *tag = malloc(tag_length);
    struct event_reader *r;
    (void)state;

    memset(tag, 'x', tag_length);
    n = scalars(bytes, 1, 1);
    n += event_encode_scalar(bytes + n, tag, tag_length, 2, 5, 1);
    n += scalars(bytes + n, 3, 1);
    put_le64(bytes + n, 1 << 30);
    record_seal(bytes + n, 0); /* wrong length, then right again with a CRC of its own */
    put(path, O_TRUNC, bytes, n);
    assert_int_equal(event_reader_open(&r, &input, path, NULL), OK);
    for (int i = 1; i <= 3; i++)
        assert_int_equal(next(r), i);
    assert_int_equal(next(r), -1);
    event_reader_close(r);
    free(bytes);
    free(tag);
}

static void test_what_is_no_file(void **state)
{
    struct event_reader *r;
    struct error e;
    (void)state;

    assert_int_equal(event_reader_open(&r, &input, directory, &e), ERR_IO);
    assert_int_equal(event_reader_open(&r, &input, "/nonexistent/x", &e), ERR_IO);
    assert_null(r);
    unlink(other);
    assert_int_equal(mkfifo(other, 0666), 0);
    assert_int_equal(event_reader_open(&r, &input, other, &e), ERR_IO);
    unlink(other);
}

/* Told once, and again when it has changed and is none still; a beginning that is damaged does not make it another. */
static void test_files_of_other_kinds(void **state)
{
    static const char text[] = "step,loss\n1,0.5\n2,0.25\n";
    struct event_damage damage;
    struct event_reader *r;
    struct event event;
    struct error e;
    uint8_t bytes[400];
    size_t n = scalars(bytes, 1, 3);
    (void)state;

    put(path, O_TRUNC, text, sizeof text - 1);
    assert_int_equal(event_reader_open(&r, &input, path, NULL), OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(event_reader_next(r, &event, &damage, &e), ERR_IO);
        assert_non_null(strstr(e.message, "not an event file, but a text file"));
        assert_int_equal(next(r), -1);
        assert_int_equal(next(r), -1);
        put(path, O_APPEND, text, sizeof text - 1);
    }
    bytes[0] ^= 1;
    put(other, O_TRUNC, bytes, n);
    assert_int_equal(rename(other, path), 0);
    assert_int_equal(next(r), -2);
    assert_int_equal(next(r), 2);
    assert_int_equal(next(r), 3);
    assert_int_equal(next(r), -1);
    event_reader_close(r);
}

/* ---- directories ------------------------------------------------------------------------------------------------- */

static void make(const char *name, int is_directory)
{
    char full[300];

    snprintf(full, sizeof full, "%s/logs/%s", directory, name);
    if (is_directory)
        assert_int_equal(mkdir(full, 0777), 0);
    else
        put(full, O_TRUNC, "", 0);
}

static void test_runs(void **state)
{
    static const char *const want[] = { ".", ".hidden", "a/eval", "a/loop-target", "b" };
    struct log_directory d;
    char logs[100], link[200], a[120], b[120], *paths[3] = { logs, a, b };
    (void)state;

    snprintf(logs, sizeof logs, "%s/logs", directory);
    assert_int_equal(mkdir(logs, 0777), 0);
    make("events.out.tfevents.2", 0);
    make("events.out.tfevents.1", 0);
    make("notes.txt", 0);
    make("a", 1);
    make("a/eval", 1);
    make("a/eval/x.tfevents.y.bak", 0);
    make("a/tfevents", 1); /* a directory of that name is no file */
    make("a/loop-target", 1);
    make("a/loop-target/tfevents", 0);
    make(".hidden", 1);
    make(".hidden/tfevents", 0);
    snprintf(link, sizeof link, "%s/a/up", logs);
    assert_int_equal(symlink("..", link), 0);
    snprintf(link, sizeof link, "%s/b", logs);
    assert_int_equal(symlink("a/eval", link), 0);
    snprintf(link, sizeof link, "%s/dangling.tfevents", logs);
    assert_int_equal(symlink("nowhere", link), 0);
    assert_int_equal(log_directory_list(&d, &input, paths, 1, NULL), OK);
    assert_int_equal(d.count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(d.runs[i].name, want[i]);
    assert_int_equal(d.runs[0].file_count, 2);
    assert_true(strcmp(d.runs[0].files[0], d.runs[0].files[1]) < 0);
    log_directory_release(&d);

    snprintf(a, sizeof a, "%s/a/eval/", logs);
    snprintf(b, sizeof b, "%s/./.hidden", logs);
    assert_int_equal(log_directory_list(&d, &input, paths + 1, 2, NULL), OK);
    assert_int_equal(d.count, 2);
    assert_string_equal(d.runs[0].name, ".hidden");
    assert_string_equal(d.runs[1].name, "a/eval");
    log_directory_release(&d);
    snprintf(b, sizeof b, "%s/nothing", logs);
    assert_int_equal(log_directory_list(&d, &input, paths + 1, 2, NULL), ERR_IO);
    log_directory_release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grows_byte_by_byte),   cmocka_unit_test(test_cut_and_replaced),
        cmocka_unit_test(test_hole_at_the_end),      cmocka_unit_test(test_damage),
        cmocka_unit_test(test_long_records),         cmocka_unit_test(test_what_is_no_file),
        cmocka_unit_test(test_files_of_other_kinds), cmocka_unit_test(test_runs),
        cmocka_unit_test(test_written_anew),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
