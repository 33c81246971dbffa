/* One event file in every form in which it may be stored: the same records come out, and how it ends is told once. */
#include "eventlog/read/log_input.h"

#include "base/file.h"
#include "eventlog/format/event_decode.h"
#include "eventlog/format/event_encode.h"
#include "eventlog/read/log_directory.h"
#include "tests/check.h"
#include "tests/eventlog/made_tar.h"
#include "tests/eventlog/remove_tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { RECORDS = 20000 };

static char directory[64];
static uint8_t bytes[RECORDS * 64];
static size_t length;

static int setup(void **state)
{
    (void)state;
    for (int i = 0; i < RECORDS; i++)
        length += event_encode_scalar(bytes + length, "loss", 4, i, 1.7e9 + i, (float)i);
    strcpy(directory, "/tmp/test_log_input.XXXXXX");
    return mkdtemp(directory) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return remove_tree(directory);
}

static const char *in_directory(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void put(const char *name, const void *from, size_t n)
{
    int fd = open(in_directory(name), O_WRONLY | O_CREAT | O_TRUNC, 0666);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, from, n), n);
    close(fd);
}

/* The file packed; its length. */
static size_t put_gzip(const char *name)
{
    gzFile file = gzopen(in_directory(name), "wb1");
    struct buffer packed = BUFFER_EMPTY;
    size_t n;

    assert_int_equal(gzwrite(file, bytes, (unsigned)length), length);
    assert_int_equal(gzclose(file), Z_OK);
    assert_int_equal(file_read(in_directory(name), 1 << 24, &packed, NULL), OK);
    n = packed.length;
    buffer_release(&packed);
    return n;
}

static void put_archive(const char *name, const char *const *members, size_t count)
{
    int fd = open(in_directory(name), O_RDWR | O_CREAT | O_TRUNC, 0666);

    for (size_t i = 0; i < count; i++) {
        struct buffer b = BUFFER_EMPTY;

        assert_int_equal(file_read(in_directory(file_base_name(members[i])), 1 << 24, &b, NULL), OK);
        made_tar_put(fd, members[i], b.data, b.length);
        buffer_release(&b);
    }
    close(fd);
}

/* Reads what is at path: that many records at least, which are those of the file, and at its end damage or not. */
static void check(struct log_input *in, const char *path, int packed, size_t least, int damaged)
{
    struct record_file f;
    struct error e = { 0 };
    struct event event;
    struct record r;
    int64_t step = 0;
    size_t records = 0, damage = 0;
    int rc = log_input_open(in, path, &f, &e);

    if (rc != OK)
        fail_msg("%s", e.message);
    assert_int_equal(f.packed, packed);
    while ((rc = record_file_next(&f, &r, &e)) == RECORD_DATA || rc == RECORD_DAMAGE) {
        assert_int_equal(damage, 0); /* nothing follows it */
        if (rc == RECORD_DAMAGE) {
            damage += r.damage == RECORD_BAD_STREAM;
            assert_true(r.offset == f.size || r.damage != RECORD_BAD_STREAM);
            continue;
        }
        assert_int_equal(event_decode(r.data, r.length, &event, NULL), OK);
        assert_true(event.step >= step && event.step < RECORDS && event.wall_time == 1.7e9 + (double)event.step);
        step = event.step + 1;
        records++;
    }
    assert_int_equal(rc, RECORD_MORE);
    assert_int_equal(damage, damaged);
    assert_in_range(records, least, damaged ? RECORDS - 1 : RECORDS);
    record_file_close(&f);
}

static void test_forms(void **state)
{
    static const char *const members[] = { "a/x.tfevents.1", "b/x.tfevents.2.gz" };
    struct log_input in = { 0 };
    const struct log_archive *archive;
    char path[160];
    size_t n;

    (void)state;
    put("x.tfevents.1", bytes, length);
    n = put_gzip("x.tfevents.2.gz");
    put_archive("log.tar", members, 2);

    check(&in, in_directory("x.tfevents.1"), 0, RECORDS, 0);
    assert_null(log_input_packed(&in, in_directory("x.tfevents.1")));
    check(&in, in_directory("x.tfevents.2.gz"), 1, RECORDS, 0);
    assert_string_equal(log_input_packed(&in, in_directory("x.tfevents.2.gz")), "a gzip file");
    assert_int_equal(log_input_bytes(&in, in_directory("x.tfevents.2.gz")), n);

    /* A member is known once its archive is. */
    assert_int_equal(log_input_archive(&in, in_directory("x.tfevents.2.gz"), &archive, NULL), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(log_input_archive(&in, in_directory("log.tar"), &archive, NULL), 1);
        assert_int_equal(archive->members.count, 2);
        assert_int_equal(in.archive_count, 1);
    }
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", in_directory("log.tar"), members[i]);
        check(&in, path, 1, RECORDS, 0);
        assert_string_equal(log_input_packed(&in, path), "a member of an archive");
        assert_int_equal(log_input_bytes(&in, path), i ? n : length);
    }
    log_input_release(&in);
}

static void test_damage(void **state)
{
    struct log_input in = { 0 };
    struct buffer packed = BUFFER_EMPTY;
    size_t n = put_gzip("cut.tfevents.gz");

    (void)state;
    assert_int_equal(file_read(in_directory("cut.tfevents.gz"), 1 << 24, &packed, NULL), OK);
    put("cut.tfevents.gz", packed.data, n / 2);
    check(&in, in_directory("cut.tfevents.gz"), 1, RECORDS / 3, 1);
    packed.data[n / 2] ^= 0x20;
    put("cut.tfevents.gz", packed.data, n);
    check(&in, in_directory("cut.tfevents.gz"), 1, RECORDS / 4, 1);
    buffer_release(&packed);
    log_input_release(&in);
}

/* The last member of an archive that is cut is read as far as it goes; the others are whole. */
static void test_damaged_member(void **state)
{
    static const char *const members[] = { "a/x.tfevents.1", "b/x.tfevents.1" };
    struct log_input in = { 0 };
    const struct log_archive *archive;
    struct buffer whole = BUFFER_EMPTY;
    char path[160];

    (void)state;
    put("x.tfevents.1", bytes, length);
    put_archive("bad.tar", members, 2);
    assert_int_equal(file_read(in_directory("bad.tar"), 1 << 24, &whole, NULL), OK);
    put("bad.tar", whole.data, whole.length * 3 / 4); /* the middle of the second one */
    buffer_release(&whole);
    assert_int_equal(log_input_archive(&in, in_directory("bad.tar"), &archive, NULL), 1);
    assert_int_equal(archive->damage.code, ERR_CORRUPT);
    assert_non_null(strstr(archive->damage.message, "bad.tar: member b/x.tfevents.1: Truncated"));
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", in_directory("bad.tar"), members[i]);
        check(&in, path, 1, i ? 100 : RECORDS, i);
    }
    log_input_release(&in);
}

/* "x.gz" has the place of "x", and is left out where that is there as well. */
static void test_order(void **state)
{
    static const char *const names[] = { "x.tfevents.1",    "x.tfevents.1-b.gz", "x.tfevents.1.gz",
                                         "x.tfevents.2.gz", "x.tfevents.2.zst",  "x.tfevents.3" };
    static const char *const wanted[] = { "x.tfevents.1", "x.tfevents.1-b.gz", "x.tfevents.2.gz", "x.tfevents.3" };
    static const char *const others[] = { "y.tfevents.1-b", "y.tfevents.1.gz" };
    struct log_input in = { 0 };
    struct log_directory d;
    char *path = directory;

    (void)state;
    assert_int_equal(remove_tree(directory), 0);
    assert_int_equal(mkdir(directory, 0777), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put(names[i], "", 0);
    for (size_t i = 0; i < 2; i++)
        put(others[i], "", 0);
    assert_int_equal(log_directory_list(&d, &in, &path, 1, NULL), OK);
    assert_int_equal(d.count, 1);
    assert_int_equal(d.runs[0].file_count, 6);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(file_base_name(d.runs[0].files[i]), wanted[i]);
    assert_string_equal(file_base_name(d.runs[0].files[4]), "y.tfevents.1.gz");
    assert_string_equal(file_base_name(d.runs[0].files[5]), "y.tfevents.1-b");
    log_directory_release(&d);
    log_input_release(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_damaged_member),
        cmocka_unit_test(test_order),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
