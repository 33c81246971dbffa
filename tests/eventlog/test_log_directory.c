/* log_directory.h: trees in which directories are linked to one another, lie very deep, or lead out. */
#include "eventlog/read/log_directory.h"

#include "tests/check.h"
#include "tests/eventlog/remove_tree.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[PATH_MAX];
static struct directory_cache cache;
static struct log_input input;

static int setup(void **state)
{
    (void)state;
    strcpy(top, "/tmp/test_log_directory.XXXXXX");
    return !mkdtemp(top);
}

static int teardown(void **state)
{
    char command[PATH_MAX + 20];

    (void)state;
    directory_cache_release(&cache);
    snprintf(command, sizeof command, "rm -rf '%s'", top); /* also what has too long a path for nftw() */
    return system(command);
}

static const char *in(const char *format, ...) __attribute__((format(printf, 1, 2)));

static const char *in(const char *format, ...)
{
    static char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/", top);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(path + n, sizeof path - (size_t)n, format, arguments);
    va_end(arguments);
    return path;
}

/* A directory with an event file. */
static void make_run(const char *path)
{
    const int at = mkdir(path, 0777) == 0 ? open(path, O_RDONLY | O_DIRECTORY) : -1;
    const int fd = at >= 0 ? openat(at, "tfevents", O_WRONLY | O_CREAT, 0666) : -1;

    assert_true(fd >= 0);
    close(fd);
    close(at);
}

static void link_to(const char *to, const char *path)
{
    assert_int_equal(symlink(to, path), 0);
}

/* Lists it without a cache and with one, twice: the same runs. */
static void runs_are(const char *home, const char *const *wanted, size_t count)
{
    char *const paths[] = { top };

    for (int i = 0; i < 3; i++) {
        struct log_directory d;

        directory_cache_begin(&cache);
        if (i || home)
            assert_int_equal(log_directory_list_cached(&d, &cache, home, &input, paths, 1, NULL), OK);
        else
            assert_int_equal(log_directory_list(&d, &input, paths, 1, NULL), OK);
        for (size_t k = 0; k < d.count && k < count; k++)
            assert_string_equal(d.runs[k].name, wanted[k]);
        assert_int_equal(d.count, count);
        assert_int_equal(d.problem_count, 0);
        log_directory_release(&d);
    }
}

static void test_linked_to_one_another(void **state)
{
    static const char *const wanted[] = { "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7" };
    (void)state;

    for (int i = 0; i < 8; i++)
        make_run(in("r%d", i));
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 8; k++) {
            char to[16];

            snprintf(to, sizeof to, "../r%d", k);
            if (i != k)
                link_to(to, in("r%d/to%d", i, k));
        }
    runs_are(NULL, wanted, 8);
}

/* Each directory has a link to every later one: 2^20 paths from the first to the last. */
static void test_linked_forwards(void **state)
{
    enum { COUNT = 20 };
    char *const paths[] = { top };
    struct log_directory d;
    size_t own = 0, once = 0;
    (void)state;

    for (int i = 0; i < COUNT; i++)
        make_run(in("r%02d", i));
    for (int i = 0; i < COUNT; i++)
        for (int k = i + 1; k < COUNT; k++) {
            char to[16];

            snprintf(to, sizeof to, "../r%02d", k);
            link_to(to, in("r%02d/to%02d", i, k));
        }
    assert_int_equal(log_directory_list(&d, &input, paths, 1, NULL), OK);
    for (size_t i = 0; i < d.count; i++)
        if (strchr(d.runs[i].name, '/'))
            once++;
        else
            own++;
    assert_int_equal(own, COUNT);
    assert_int_equal(once, COUNT * (COUNT - 1) / 2); /* the names of the links */
    log_directory_release(&d);
}

/* What has no name of its own is listed by that of one link; a link within it that leads back is not followed. */
static void test_found_below_links(void **state)
{
    static const char *const wanted[] = { "latest", "latest/below", "views/b" }, *const inside[] = { "views/b" };
    char elsewhere[PATH_MAX], real[PATH_MAX];
    struct log_directory d;
    char *const paths[] = { top };
    (void)state;

    make_run(in(".outside"));
    make_run(in(".outside/below"));
    link_to("..", in(".outside/below/up"));
    link_to("../below", in(".outside/below/self"));
    strcpy(elsewhere, top);
    strcat(elsewhere, "-elsewhere");
    assert_int_equal(rename(in(".outside"), elsewhere), 0);
    link_to(elsewhere, in("latest"));
    assert_int_equal(mkdir(in("views"), 0777), 0);
    make_run(in("views/b"));
    runs_are(NULL, wanted, 3);

    assert_non_null(realpath(top, real));
    runs_are(real, inside, 1);
    assert_int_equal(log_directory_list_cached(&d, &cache, real, &input, paths, 1, NULL), OK);
    assert_int_equal(d.outside_count, 1);
    assert_string_equal(d.outside[0], in("latest"));
    assert_int_equal(d.directory_count, 3); /* what is outside was not even looked at */
    log_directory_release(&d);
    assert_int_equal(remove_tree(elsewhere), 0);
}

/* 1,000 directories in each other; and long names, whose paths become longer than the system takes. */
static void test_depth(void **state)
{
    char long_name[256] = { 0 }, *const paths[] = { top };
    struct log_directory d;
    (void)state;

    memset(long_name, 'n', 255);
    make_run(in("r"));
    for (int name = 0; name < 2; name++) {
        int at = open(top, O_RDONLY | O_DIRECTORY);

        for (int i = 0; i < 1000; i++) {
            const char *step = name ? long_name : "d";
            int next;

            assert_int_equal(mkdirat(at, step, 0777), 0);
            next = openat(at, step, O_RDONLY | O_DIRECTORY);
            assert_true(next >= 0);
            close(at);
            at = next;
        }
        close(at);
    }
    assert_int_equal(log_directory_list(&d, &input, paths, 1, NULL), OK);
    assert_int_equal(d.count, 1);
    assert_string_equal(d.runs[0].name, "r");
    assert_int_equal(d.problem_count, 1); /* said once */
    assert_non_null(strstr(d.problems[0], "more than 100 directories"));
    assert_int_equal(d.unreadable, 0);
    assert_true(d.directory_count > 100);
    log_directory_release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_linked_to_one_another, setup, teardown),
        cmocka_unit_test_setup_teardown(test_linked_forwards, setup, teardown),
        cmocka_unit_test_setup_teardown(test_found_below_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_depth, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
