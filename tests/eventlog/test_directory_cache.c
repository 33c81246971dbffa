/* log_directory.h: a directory is read again exactly if it may have changed. */
#include "eventlog/read/log_directory.h"

#include "tests/check.h"
#include "tests/eventlog/remove_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char directory[64];
static struct directory_cache cache;
static time_t later; /* seconds by which the program's clock is ahead */

/* In place of the C library's. */
time_t time(time_t *out)
{
    struct timespec now;

    (void)out;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec + later;
}

static int setup(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/test_directory_cache.XXXXXX");
    return !mkdtemp(directory);
}

static int teardown(void **state)
{
    (void)state;
    directory_cache_release(&cache);
    return empty_tree(directory) || rmdir(directory);
}

static const char *in(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void make_file(const char *name)
{
    int fd = open(in(name), O_WRONLY | O_CREAT, 0666);

    assert_true(fd >= 0);
    close(fd);
}

/* Reads the directory in a listing of its own; `wanted` entries. Returns 1 if it was really read. */
static int reads(size_t wanted)
{
    struct directory_entries *entries;
    size_t found = 0;
    int read;

    directory_cache_begin(&cache);
    assert_int_equal(directory_cache_read(&cache, directory, &entries), OK);
    for (size_t at = 0; at < entries->bytes.length; at += strlen(entries->bytes.data + at) + 1)
        found++;
    assert_int_equal(found, wanted);
    read = entries->mark == -1;
    entries->mark = 7;
    return read;
}

static void test_changes(void **state)
{
    (void)state;
    make_file("a.tfevents");
    make_file("other");
    assert_int_equal(mkdir(in("below"), 0777), 0);
    later = 0;
    assert_true(reads(2));
    assert_true(reads(2)); /* it changed just now: a further change could look the same */
    later = 10;
    assert_true(reads(2));
    assert_false(reads(2));
    make_file("b.tfevents");
    assert_true(reads(3));
    assert_false(reads(3));
    assert_int_equal(unlink(in("b.tfevents")), 0);
    assert_int_equal(rmdir(in("below")), 0);
    assert_true(reads(1));
    assert_false(reads(1));
    assert_int_equal(chmod(directory, 0755), 0);
    assert_true(reads(1));
    assert_int_equal(symlink("below", in("link")), 0); /* to what changes elsewhere */
    assert_true(reads(2));
    assert_true(reads(2));
}

/* Whether another listing is needed. */
static void test_same(void **state)
{
    struct directory_entries *entries;
    char below[128];

    (void)state;
    assert_false(directory_cache_is_same(&cache));
    later = 0;
    strcpy(below, in("below"));
    assert_int_equal(mkdir(below, 0777), 0);
    assert_true(reads(1));
    assert_false(directory_cache_is_same(&cache)); /* it changed just now */
    later = 10;
    for (int i = 0; i < 2; i++) {
        reads(1);
        assert_int_equal(directory_cache_read(&cache, below, &entries), OK);
        assert_true(directory_cache_is_same(&cache));
    }
    make_file("below/a.tfevents");
    assert_false(directory_cache_is_same(&cache));
    reads(1);
    assert_true(directory_cache_is_same(&cache)); /* what is below is of an older listing */
    assert_true(directory_cache_has(&cache, directory));
    assert_false(directory_cache_has(&cache, below));
    assert_false(directory_cache_has(&cache, in("nowhere")));
    assert_int_equal(directory_cache_read(&cache, below, &entries), OK);
    assert_true(directory_cache_is_same(&cache));
    assert_int_equal(unlink(in("below/a.tfevents")), 0);
    assert_int_equal(rmdir(below), 0);
    assert_false(directory_cache_is_same(&cache));
    assert_int_equal(symlink("nowhere", in("link")), 0);
    reads(1);
    assert_false(directory_cache_is_same(&cache)); /* what a link leads to changes elsewhere */
    assert_int_equal(unlink(in("link")), 0);
}

/* Another directory of the same name is not the one that was read. */
static void test_replaced(void **state)
{
    struct directory_entries *entries;
    char path[128];
    (void)state;

    later = 10;
    strcpy(path, in("run"));
    assert_int_equal(mkdir(path, 0777), 0);
    make_file("run/a.tfevents");
    directory_cache_begin(&cache);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(directory_cache_read(&cache, path, &entries), OK);
        assert_int_equal(entries->mark, i ? 7 : -1);
        entries->mark = 7;
    }
    assert_int_equal(rename(path, in("away")), 0);
    assert_int_equal(directory_cache_read(&cache, path, &entries), ERR_IO);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(directory_cache_read(&cache, path, &entries), OK);
    assert_int_equal(entries->mark, -1);
    assert_int_equal(entries->bytes.length, 0);
}

/* What listings no longer come across takes no memory for ever. */
static void test_forgets(void **state)
{
    struct directory_entries *entries;
    char name[32];
    (void)state;

    later = 10;
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "r%d", i);
        assert_int_equal(mkdir(in(name), 0777), 0);
        directory_cache_begin(&cache);
        assert_int_equal(directory_cache_read(&cache, in(name), &entries), OK);
        assert_in_range(cache.known.count, 1, 110);
        assert_int_equal(rmdir(in(name)), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_same, setup, teardown),
        cmocka_unit_test_setup_teardown(test_replaced, setup, teardown),
        cmocka_unit_test_setup_teardown(test_forgets, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
