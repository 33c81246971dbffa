/* The watching thread on a real directory: it says that something changed, and gets over the directory's absence. */
#include "base/clock.h"
#include "base/file.h"
#include "evaluator/watch/watch_inotify.h"
#include "tests/check.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEADLINE = 600 };

static char top[PATH_MAX], directory[PATH_MAX];

static int set_up(void **state)
{
    (void)state;
    snprintf(top, sizeof top, "%s/watch.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    return mkdtemp(top) ? file_join(directory, sizeof directory, top, "ckpt", NULL) : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(top);
}

/* Waits until all of `wanted` was said; what else is said does not matter. */
static void expect(struct watch_inotify *w, unsigned wanted)
{
    double until = clock_monotonic() + (double)DEADLINE;
    unsigned heard = 0;

    while ((heard & wanted) != wanted) {
        struct pollfd fd = { .fd = watch_inotify_descriptor(w), .events = POLLIN };

        assert_true(clock_monotonic() < until);
        poll(&fd, 1, 1000);
        heard |= watch_inotify_take(w, 0);
    }
}

static void touch(const char *name, int there)
{
    char path[PATH_MAX];
    FILE *f;

    assert_int_equal(file_join(path, sizeof path, directory, name, NULL), OK);
    if (!there) {
        assert_int_equal(unlink(path), 0);
        return;
    }
    assert_non_null(f = fopen(path, "w"));
    fclose(f);
}

static void test_changes(void **state)
{
    struct watch_inotify *w;
    struct buffer names = BUFFER_EMPTY;
    char from[PATH_MAX], to[PATH_MAX];
    int standing;

    (void)state;
    assert_int_equal(mkdir(directory, 0777), 0);
    assert_int_equal(watch_inotify_start(&w, (const char *[]){ directory }, 1, 0.02, &standing, NULL), OK);
    assert_int_equal(standing, 1);
    assert_int_equal(watch_inotify_take(w, 0), 0);
    touch("a.tmp", 1); /* a temporary name: nothing is said, which the next expectation cannot tell; it costs a look */
    file_join(from, sizeof from, directory, "a.tmp", NULL);
    file_join(to, sizeof to, directory, "a.index", NULL);
    assert_int_equal(rename(from, to), 0);
    expect(w, WATCH_CHANGED);
    touch("a.index", 0);
    expect(w, WATCH_CHANGED);
    watch_inotify_names(w, 0, &names);
    assert_int_equal(names.length, 8); /* once: how it went is not told */
    assert_string_equal(names.data, "a.index");
    watch_inotify_names(w, 0, &names);
    assert_int_equal(names.length, 8);
    buffer_release(&names);
    assert_int_equal(rmdir(directory), 0);
    expect(w, WATCH_GONE | WATCH_CHANGED);
    assert_int_equal(mkdir(directory, 0777), 0);
    expect(w, WATCH_STANDS | WATCH_CHANGED);
    touch("b.index", 1);
    expect(w, WATCH_CHANGED);
    touch("b.index", 0);
    watch_inotify_stop(w);
    assert_int_equal(rmdir(directory), 0);
}

/* After it no waiting is needed: the news is there, and the names. */
static void test_settle(void **state)
{
    enum { ROUNDS = 200, LETTERS = 5 };
    struct watch_inotify *w;
    struct buffer names = BUFFER_EMPTY;
    int standing;

    (void)state;
    assert_int_equal(watch_inotify_start(&w, (const char *[]){ directory }, 1, 0.02, &standing, NULL), OK);
    assert_int_equal(standing, 0);
    watch_inotify_settle(w); /* nothing is watched */
    assert_int_equal(mkdir(directory, 0777), 0);
    expect(w, WATCH_STANDS | WATCH_CHANGED);
    for (int i = 0; i < ROUNDS; i++) {
        char name[LETTERS + 1];

        snprintf(name, sizeof name, "a.%03d", i);
        touch(name, 1);
        touch(name, 0);
        watch_inotify_settle(w);
        assert_int_equal(watch_inotify_take(w, 0), WATCH_CHANGED);
        watch_inotify_names(w, 0, &names);
        assert_int_equal(names.length, (i + 1) * (LETTERS + 1));
        assert_string_equal(names.data + names.length - LETTERS - 1, name);
    }
    buffer_release(&names);
    assert_int_equal(rmdir(directory), 0);
    watch_inotify_settle(w);
    assert_true(watch_inotify_take(w, 0) & WATCH_GONE);
    watch_inotify_stop(w);
}

static void test_not_there_yet(void **state)
{
    struct watch_inotify *w;
    int standing;

    (void)state;
    assert_int_equal(watch_inotify_start(&w, (const char *[]){ directory }, 1, 0.02, &standing, NULL), OK);
    assert_int_equal(standing, 0);
    assert_int_equal(mkdir(directory, 0777), 0);
    expect(w, WATCH_STANDS);
    watch_inotify_stop(w);
    assert_int_equal(rmdir(directory), 0);
    for (int i = 0; i < 20; i++) { /* stopping at any moment; and none is left behind for the next */
        assert_int_equal(watch_inotify_start(&w, (const char *[]){ directory }, 1, 0.001, &standing, NULL), OK);
        watch_inotify_stop(w);
    }
    watch_inotify_stop(NULL);
}

/* The news of one directory is not lost when that of another is taken. */
static void test_two(void **state)
{
    char other[PATH_MAX];
    struct pollfd fd = { .events = POLLIN };
    struct watch_inotify *w;

    (void)state;
    file_join(other, sizeof other, top, "other", NULL);
    assert_int_equal(mkdir(directory, 0777) | mkdir(other, 0777), 0);
    assert_int_equal(watch_inotify_start(&w, (const char *[]){ directory, other }, 2, 0.02, NULL, NULL), OK);
    fd.fd = watch_inotify_descriptor(w);
    assert_int_equal(rmdir(other), 0);
    for (unsigned heard = 0; !(heard & WATCH_GONE); heard |= watch_inotify_take(w, 1))
        poll(&fd, 1, 1000);
    expect(w, WATCH_CHANGED); /* all were watched anew */
    while (watch_inotify_take(w, 0) | watch_inotify_take(w, 1))
        ;
    assert_int_equal(poll(&fd, 1, 0), 0);
    watch_inotify_stop(w);
    assert_int_equal(rmdir(directory), 0);
}

/* More directories, and then more open files, than select() has descriptors: it has its own before; else it polls. */
static void test_many(void **state)
{
    enum { MANY = FD_SETSIZE + 50 };
    static const char *paths[MANY];
    static int held[2 * MANY];
    struct watch_inotify *w;
    struct error e = { 0 };
    int count = 0;

    (void)state;
    assert_true(file_open_limit(3 * MANY) == 3 * MANY);
    assert_int_equal(mkdir(directory, 0777), 0);
    paths[0] = directory;
    for (int i = 1; i < MANY; i++)
        paths[i] = "/nowhere";
    assert_int_equal(watch_inotify_start(&w, NULL, 0, 0.02, NULL, NULL), OK);
    for (; !count || held[count - 1] < FD_SETSIZE; count++)
        assert_true((held[count] = open("/dev/null", O_RDONLY)) >= 0);
    watch_inotify_stop(w);
    assert_int_equal(watch_inotify_start(&w, paths, MANY, 0.02, NULL, NULL), OK);
    touch("a.index", 1);
    expect(w, WATCH_CHANGED);
    touch("a.index", 0);
    watch_inotify_stop(w);
    for (int more = count + 8; count < more; count++)
        assert_true((held[count] = open("/dev/null", O_RDONLY)) >= 0);
    assert_int_equal(watch_inotify_start(&w, paths, 1, 0.02, NULL, &e), ERR_IO);
    assert_non_null(strstr(e.message, "cannot watch with inotify: Too many open files"));
    while (count--)
        close(held[count]);
    assert_int_equal(rmdir(directory), 0);
}

/* The parent is moved away and another directory stands at the path: of that inotify itself says nothing. */
static void test_parent_moved(void **state)
{
    char parent[PATH_MAX], inner[PATH_MAX], moved[PATH_MAX], moved_inner[PATH_MAX];
    struct watch_inotify *w;
    int standing;

    (void)state;
    file_join(parent, sizeof parent, top, "run", NULL);
    file_join(inner, sizeof inner, parent, "ckpt", NULL);
    file_join(moved, sizeof moved, top, "old", NULL);
    file_join(moved_inner, sizeof moved_inner, moved, "ckpt", NULL);
    assert_int_equal(file_make_directories(inner, NULL), OK);
    assert_int_equal(watch_inotify_start(&w, (const char *[]){ inner }, 1, 0.02, &standing, NULL), OK);
    assert_int_equal(rename(parent, moved), 0);
    expect(w, WATCH_GONE);
    assert_int_equal(file_make_directories(inner, NULL), OK);
    expect(w, WATCH_STANDS);
    watch_inotify_stop(w);
    assert_int_equal(rmdir(inner) | rmdir(parent) | rmdir(moved_inner) | rmdir(moved), 0);
}

/* Stopped while it waits for events of a directory in which nothing happens: it does not wait for the next retry. */
static void test_stops_at_once(void **state)
{
    double begin = clock_monotonic();
    struct watch_inotify *w;
    int standing;

    (void)state;
    assert_int_equal(mkdir(directory, 0777), 0);
    assert_int_equal(watch_inotify_start(&w, (const char *[]){ directory }, 1, 2 * DEADLINE, &standing, NULL), OK);
    assert_int_equal(standing, 1);
    touch("a.index", 1); /* so that the thread is in its wait for more */
    expect(w, WATCH_CHANGED);
    touch("a.index", 0);
    watch_inotify_stop(w);
    assert_true(clock_monotonic() - begin < (double)DEADLINE);
    assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes),       cmocka_unit_test(test_settle), cmocka_unit_test(test_not_there_yet),
        cmocka_unit_test(test_two),           cmocka_unit_test(test_many),   cmocka_unit_test(test_parent_moved),
        cmocka_unit_test(test_stops_at_once),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
