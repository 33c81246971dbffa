/* Archives: what goes in comes out; every byte that is flipped and every cut is found. */
#include "eventlog/read/log_archive.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const names[] = { "a", "a/b/events.out.tfevents.1", "b", "empty" };
enum { MEMBERS = 4 };

/* The contents of member i. */
static size_t contents(int i, uint8_t *out)
{
    size_t n = i == 3 ? 0 : i == 1 ? 300000 : 50;

    for (size_t k = 0; k < n; k++)
        out[k] = (uint8_t)(i == 1 ? k * k >> 7 : k + (size_t)i);
    return n;
}

static int memory_file(char path[40])
{
    int fd = memfd_create("archive", 0);

    assert_true(fd >= 0);
    snprintf(path, 40, "/proc/self/fd/%d", fd);
    return fd;
}

static void fill(int fd, const void *bytes, size_t n)
{
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, bytes, n, 0), n);
}

static struct buffer make(int level)
{
    static uint8_t bytes[300000];
    struct log_archive_writer *w;
    struct buffer b = BUFFER_EMPTY;
    char path[40], from_path[40];
    int fd = memory_file(path), from = memory_file(from_path);
    off_t size;

    assert_int_equal(log_archive_writer_new(&w, fd, path, level, NULL), OK);
    for (int i = 0; i < MEMBERS; i++) {
        uint64_t n;

        fill(from, bytes, contents(i, bytes));
        lseek(from, 0, SEEK_SET);
        assert_int_equal(log_archive_writer_add(w, names[i], 0640, -1 - i, from, from_path, &n, NULL), OK);
        assert_int_equal(n, contents(i, bytes));
    }
    assert_int_equal(log_archive_writer_add(w, "empty", 0640, 0, from, from_path, NULL, NULL), ERR_ARG);
    assert_int_equal(log_archive_writer_add(w, "../x", 0640, 0, from, from_path, NULL, NULL), ERR_ARG);
    assert_int_equal(log_archive_writer_finish(w, NULL), OK);
    log_archive_writer_free(w);
    size = lseek(fd, 0, SEEK_END);
    assert_int_equal(pread(fd, buffer_reserve(&b, (size_t)size), (size_t)size, 0), size);
    b.length = (size_t)size;
    close(fd);
    close(from);
    return b;
}

static int gather(void *context, const void *bytes, size_t n, struct error *e)
{
    (void)e;
    buffer_append(context, bytes, n);
    return OK;
}

/* How many members can be read and are what they should be; -1: it is no archive. */
static int sound_members(int fd, const char *path, const void *bytes, size_t n)
{
    static uint8_t want[300000];
    struct log_archive a;
    struct buffer b = BUFFER_EMPTY;
    int sound = 0;

    fill(fd, bytes, n);
    if (log_archive_open(&a, path, NULL) != OK) {
        log_archive_release(&a);
        return -1;
    }
    for (size_t i = 0; i < a.count; i++) {
        buffer_clear(&b);
        if (log_archive_read(&a, &a.entries[i], gather, &b, NULL) != OK)
            continue;
        assert_int_equal(b.length, contents((int)i, want));
        assert_true(!b.length || !memcmp(b.data, want, b.length));
        assert_string_equal(a.entries[i].name, names[i]);
        assert_int_equal(a.entries[i].mode, 0640);
        assert_int_equal(a.entries[i].mtime, -1 - (int64_t)i);
        sound++;
    }
    log_archive_release(&a);
    buffer_release(&b);
    return sound;
}

static void test_round_trip(void **state)
{
    char path[40];
    int fd = memory_file(path);

    (void)state;
    for (int level = 1; level <= 9; level += 4) {
        struct buffer b = make(level);

        assert_int_equal(sound_members(fd, path, b.data, b.length), MEMBERS);
        buffer_release(&b);
    }
    close(fd);
}

static void test_every_flip_and_cut_is_found(void **state)
{
    struct buffer b = make(6);
    char path[40];
    int fd = memory_file(path);

    (void)state;
    for (size_t i = 0; i < b.length; i += i < 200 || i + 400 > b.length ? 1 : 997) {
        b.data[i] = (char)(b.data[i] ^ 1 << i % 8);
        assert_in_range(sound_members(fd, path, b.data, b.length) + 1, 0, MEMBERS); /* one at least is lost */
        b.data[i] = (char)(b.data[i] ^ 1 << i % 8);
        assert_int_equal(sound_members(fd, path, b.data, i), -1);
    }
    buffer_append_byte(&b, 0);
    assert_int_equal(sound_members(fd, path, b.data, b.length), -1);
    buffer_release(&b);
    close(fd);
}

static void test_names(void **state)
{
    static const struct {
        const char *name;
        int allowed;
    } cases[] = {
        { "a", 1 },    { "a/b", 1 },  { "...", 1 },   { ".a", 1 },     { "a..b/c", 1 }, { "\xff", 1 },
        { "", 0 },     { "/a", 0 },   { "a/", 0 },    { "a//b", 0 },   { ".", 0 },      { "..", 0 },
        { "a/..", 0 }, { "../a", 0 }, { "a/./b", 0 }, { "a/../b", 0 },
    };
    char long_name[5000];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(log_archive_name_allowed(cases[i].name, strlen(cases[i].name)), cases[i].allowed);
    memset(long_name, 'x', sizeof long_name);
    assert_int_equal(log_archive_name_allowed(long_name, LOG_ARCHIVE_NAME_MOST), 1);
    assert_int_equal(log_archive_name_allowed(long_name, LOG_ARCHIVE_NAME_MOST + 1), 0);
    assert_int_equal(log_archive_name_allowed("a\0b", 3), 0);
}

/* A directory that lies, with a right CRC: names that lead outside, sizes that cannot be. */
/* A footer with a right CRC of a file of 16 bytes head, 100 of members and directory, and itself. */
static void test_footers_that_lie(void **state)
{
    static const struct {
        uint64_t offset, length, members, size;
        int rc;
    } cases[] = {
        { 16, 100, 2, 156, OK },
        { 20, 96, 2, 156, OK },
        { 16, 101, 2, 156, ERR_CORRUPT },
        { 15, 100, 2, 156, ERR_CORRUPT },
        { 17, 100, 2, 156, ERR_CORRUPT },
        { 16, 100, 3, 156, ERR_CORRUPT },
        { 16, 0, 0, 56, OK },
        { 16, 0, 0, 55, ERR_CORRUPT },
        { 16, UINT64_MAX, 2, 156, ERR_CORRUPT },
    };
    struct log_archive a;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t footer[LOG_ARCHIVE_FOOTER] = { 0 };
        struct log_archive_place place;

        put_le64(footer, cases[i].offset);
        put_le64(footer + 8, cases[i].length);
        put_le64(footer + 16, cases[i].members);
        put_le32(footer + 28, crc32c(footer, 28));
        memcpy(footer + 32, "TFZ end\n", 8);
        assert_int_equal(log_archive_footer(&place, footer, cases[i].size, NULL), cases[i].rc);
    }
    assert_int_equal(log_archive_open(&a, "/dev/null", NULL), ERR_ARG);
    log_archive_release(&a);
}

static void test_directories_that_lie(void **state)
{
    static const struct {
        uint64_t offset, packed, size;
        const char *name;
        int good;
    } cases[] = {
        { 16, 100, 5, "a", 1 },          { 16, 100, 5, "../a", 0 },   { 16, 100, 5, "/a", 0 },
        { 17, 99, 5, "a", 0 },           { 16, 99, 5, "a", 0 },       { 16, 101, 5, "a", 0 },
        { 16, UINT64_MAX, 5, "a", 0 },   { 16, 100, 104000, "a", 1 }, { 16, 100, 1 << 20, "a", 0 },
        { 16, 100, UINT64_MAX, "a", 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t bytes[100] = { 0 };
        size_t n = strlen(cases[i].name);
        struct log_archive_place place = { 116, 48 + n, 1, 0 };
        struct log_archive_entry *entries;
        size_t count;

        put_le32(bytes, (uint32_t)n);
        put_le64(bytes + 8, cases[i].offset);
        put_le64(bytes + 16, cases[i].packed);
        put_le64(bytes + 24, cases[i].size);
        memcpy(bytes + 48, cases[i].name, n);
        place.crc = crc32c(bytes, (size_t)place.length);
        assert_int_equal(log_archive_directory(&entries, &count, &place, bytes, NULL) == OK, cases[i].good);
        log_archive_entries_free(entries, count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_every_flip_and_cut_is_found),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_footers_that_lie),
        cmocka_unit_test(test_directories_that_lie),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
