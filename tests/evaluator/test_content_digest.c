/* Which changes of files and directories make another digest, and which do not. */
#include "base/file.h"
#include "evaluator/files/content_digest.h"
#include "tests/check.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[PATH_MAX / 2];

static int set_up(void **state)
{
    (void)state;
    snprintf(top, sizeof top, "%s/content.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    return mkdtemp(top) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[PATH_MAX];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    return system(command);
}

static const char *at(const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", top, name);
    return path;
}

static void put(const char *name, const char *text)
{
    assert_int_equal(file_replace(NULL, at(name), text, strlen(text), NULL), OK);
}

static uint64_t digest(const char *name)
{
    struct content c;
    uint64_t d;

    assert_int_equal(content_read(at(name), &c, NULL), OK);
    d = content_digest(&c);
    content_release(&c);
    return d;
}

static void make_checkpoint(const char *name)
{
    char path[256];

    assert_int_equal(mkdir(at(name), 0777), 0);
    snprintf(path, sizeof path, "%s/weights", name);
    put(path, "0123456789");
    snprintf(path, sizeof path, "%s/deep", name);
    assert_int_equal(mkdir(at(path), 0777), 0);
    snprintf(path, sizeof path, "%s/deep/state", name);
    put(path, "abc");
}

static void test_directory(void **state)
{
    struct content before, after;
    uint64_t first;

    (void)state;
    make_checkpoint("a");
    make_checkpoint("b");
    first = digest("a");
    assert_true(first == 0xabb8f1a030ef89e7u); /* for ever: ledgers hold such numbers */
    assert_true(first == digest("b"));         /* a copy, at another place and time */
    assert_int_equal(content_read(at("a"), &before, NULL), OK);
    assert_int_equal(before.count, 2);
    put("a/deep/results", "new");
    assert_int_equal(content_read(at("a"), &after, NULL), OK);
    assert_true(content_digest(&after) != first);
    assert_true(content_only_grew(&before, &after));
    assert_false(content_only_grew(&after, &before));
    content_release(&after);
    put("a/weights", "0123456780"); /* the same size */
    assert_int_equal(content_read(at("a"), &after, NULL), OK);
    assert_false(content_only_grew(&before, &after));
    content_release(&after);
    content_release(&before);
    /* Loops, FIFOs, links that lead nowhere are no reason to hang. */
    assert_int_equal(symlink("..", at("b/deep/up")), 0);
    assert_int_equal(mkfifo(at("b/fifo"), 0666), 0);
    assert_int_equal(symlink("nowhere", at("b/dangling")), 0);
    assert_true(digest("b") == first);
    put("b/0", "");
    assert_true(digest("b") != first);
    /* The name counts as well as the bytes. */
    assert_int_equal(unlink(at("b/0")), 0);
    assert_int_equal(unlink(at("b/weights")), 0);
    put("b/other", "0123456789");
    assert_true(digest("b") != first);
}

static void test_large_file(void **state)
{
    static const off_t size = 5000003, touched[] = { 0, 1, 5000002, 4999999 };
    uint64_t before, stamp, again;
    double changed;
    int fd = open(at("large"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, size), 0);
    before = digest("large");
    for (size_t i = 0; i < sizeof touched / sizeof *touched; i++) {
        assert_int_equal(pwrite(fd, "x", 1, touched[i]), 1);
        assert_true(digest("large") != before);
        assert_int_equal(pwrite(fd, "", 1, touched[i]), 1);
        assert_true(digest("large") == before);
    }
    assert_int_equal(ftruncate(fd, size - 1), 0);
    assert_true(digest("large") != before);
    close(fd);
    assert_int_equal(content_stamp(AT_FDCWD, at("large"), &stamp, &changed), 1);
    assert_true(changed > 1e9);
    assert_int_equal(chmod(at("large"), 0600), 0);
    assert_int_equal(content_stamp(AT_FDCWD, at("large"), &again, &changed), 1);
    assert_true(stamp != again);
    assert_int_equal(content_stamp(AT_FDCWD, at("nothing"), &again, &changed), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_directory), cmocka_unit_test(test_large_file) };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
