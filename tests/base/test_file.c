/* Files: replacing under failing calls, reading with a limit. */

#include "base/file.h"
#include "tests/check.h"
#include "tests/failing_io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    char directory[64], path[96];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    strcpy(f->directory, "/tmp/file-XXXXXX");
    *state = f;
    if (!mkdtemp(f->directory))
        return -1;
    snprintf(f->path, sizeof f->path, "%s/f", f->directory);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    unlink(f->path);
    rmdir(f->directory); /* fails if a temporary file was left, which the tests look for themselves */
    free(f);
    return 0;
}

static void assert_holds(const char *path, const char *text)
{
    struct buffer got = BUFFER_EMPTY;
    struct error e = { 0 };

    assert_int_equal(file_read(path, 100, &got, &e), OK);
    assert_string_equal(buffer_text(&got), text);
    buffer_release(&got);
}

static void test_begins(void **state)
{
    (void)state;
    assert_true(file_begins("", 0, "{\"a") && file_begins("\0\0\0\0", 4, "{\"a") && file_begins("{\"", 2, "{\"a"));
    assert_true(file_begins("{\"ab", 4, "{\"a"));
    assert_false(file_begins("\0x", 2, "{\"a") || file_begins("{\"b", 3, "{\"a") || file_begins("x", 1, "{\"a"));
}

/* What is to be a program's own file is not followed elsewhere, and nobody waits for it. */
static void test_plain(void **state)
{
    struct fixture *f = *state;
    struct buffer text = BUFFER_EMPTY;
    struct error e = { 0 };
    char target[128];
    int fd;

    snprintf(target, sizeof target, "%s/target", f->directory);
    assert_int_equal(file_open_plain(NULL, f->path, O_RDWR, &fd, &e), ERR_IO);
    assert_true(fd == -1 && e.system == ENOENT);
    assert_int_equal(symlink(target, f->path), 0);
    assert_int_equal(file_open_plain(NULL, f->path, O_RDWR | O_CREAT, &fd, &e), ERR_ARG);
    assert_true(access(target, F_OK) < 0 && strstr(e.message, "/f: is a symbolic link"));
    assert_int_equal(file_read_plain(f->path, 100, &text, &e), ERR_ARG);
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(mkfifo(f->path, 0666), 0);
    assert_int_equal(file_open_plain(NULL, f->path, O_WRONLY, &fd, &e), ERR_ARG);
    assert_int_equal(file_open_plain(NULL, f->path, O_RDONLY, &fd, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "/f: is not a regular file"));
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(file_open_plain(NULL, f->directory, O_RDWR, &fd, &e), ERR_ARG);
    assert_int_equal(file_open_plain(NULL, f->path, O_WRONLY | O_CREAT, &fd, &e), OK);
    assert_int_equal(write(fd, "mine", 4), 4);
    assert_int_equal(close(fd), 0);
    assert_int_equal(file_read_plain(f->path, 100, &text, &e), OK);
    assert_string_equal(buffer_text(&text), "mine");
    buffer_release(&text);
}

/* The n-th call fails or the process dies before it: the old bytes or the new ones. */
/* A link is followed only where the system has it. */
static void test_named(void **state)
{
    struct fixture *f = *state;
    char link[sizeof f->path + 8], system_link[64];
    struct error e = { 0 };
    int fd, other;

    snprintf(link, sizeof link, "%s.link", f->path);
    assert_int_equal(symlink(f->path, link), 0);
    assert_int_equal(file_open_named(link, O_WRONLY | O_CREAT | O_TRUNC, &fd, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "is a symbolic link"));
    assert_int_equal(access(f->path, F_OK), -1);
    assert_int_equal(file_open_named(f->path, O_WRONLY | O_CREAT | O_APPEND, &fd, &e), OK);
    snprintf(system_link, sizeof system_link, "/dev/fd/%d", fd);
    assert_int_equal(file_open_named(system_link, O_WRONLY, &other, &e), OK);
    close(other);
    close(fd);
    assert_int_equal(file_open_named("/dev/null", O_WRONLY, &fd, &e), OK);
    close(fd);
    assert_int_equal(file_open_named("/dev/null/x", O_WRONLY, &fd, &e), ERR_IO);
    unlink(link);
    unlink(f->path);
}

static void test_replace(void **state)
{
    struct fixture *f = *state;
    char left[160];
    int failed = 1, status;

    for (long n = 1; failed; n++) {
        struct io_failing failing = { .fail_at = n, .error_number = EIO, .short_writes = (int)(n % 2) };
        struct io io = io_failing_table(&failing);
        struct error e = { 0 };
        struct buffer got = BUFFER_EMPTY;
        int rc;

        assert_int_equal(file_replace(NULL, f->path, "old", 3, &e), OK);
        rc = file_replace(&io, f->path, "new and longer", 14, &e);
        failed = failing.calls >= n;
        assert_int_equal(file_read(f->path, 100, &got, &e), OK);
        assert_true(strcmp(got.data, "new and longer") == 0 || (rc != OK && strcmp(got.data, "old") == 0));
        buffer_release(&got);
        snprintf(left, sizeof left, "%s.tmp.%ld", f->path, (long)getpid());
        assert_int_equal(access(left, F_OK), -1);
        assert_in_range(n, 1, 50);
    }
    for (long n = 1, killed = 1; killed; n++) {
        struct error e = { 0 };
        pid_t child;

        assert_int_equal(file_replace(NULL, f->path, "old", 3, &e), OK);
        if ((child = fork()) == 0) {
            struct io_failing failing = { .fail_at = n, .kill = 1 };
            struct io io = io_failing_table(&failing);

            _exit(file_replace(&io, f->path, "new", 3, NULL) == OK ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        killed = WIFSIGNALED(status);
        snprintf(left, sizeof left, "%s.tmp.%ld", f->path, (long)child);
        unlink(left);
        if (!killed)
            assert_holds(f->path, "new");
    }
}

static void test_read_limit(void **state)
{
    struct fixture *f = *state;
    struct buffer got = BUFFER_EMPTY;
    struct error e = { 0 };

    assert_int_equal(file_read(f->path, 100, &got, &e), ERR_IO);
    assert_int_equal(e.system, ENOENT);
    assert_int_equal(file_replace(NULL, f->path, "12345", 5, &e), OK);
    assert_int_equal(file_read(f->path, 5, &got, &e), OK);
    assert_int_equal(got.length, 5);
    buffer_clear(&got);
    assert_int_equal(file_read(f->path, 4, &got, &e), ERR_NOMEM);
    buffer_release(&got);
}

static void test_names(void **state)
{
    struct error e = { 0 };
    char out[8];

    (void)state;
    assert_int_equal(file_join(out, sizeof out, "a", "bc", &e), OK);
    assert_string_equal(out, "a/bc");
    assert_int_equal(file_join(out, sizeof out, "a/", "bc", &e), OK);
    assert_string_equal(out, "a/bc");
    assert_int_equal(file_join(out, sizeof out, "abcd", "efg", &e), ERR_ARG);
    assert_string_equal(file_base_name("/a/b"), "b");
    assert_string_equal(file_base_name("b"), "b");
}

/* Seen by the kernel's leases, for descriptors of this process as well. */
static void test_open_limit(void **state)
{
    struct rlimit before, now;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    now = before;
    now.rlim_cur = 100;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    assert_int_equal(file_open_limit(150), 150);
    assert_int_equal(file_open_limit(120), 120); /* nothing is taken away */
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
    assert_int_equal(now.rlim_cur, 150);
    file_open_limit(SIZE_MAX);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
    assert_true(now.rlim_cur == now.rlim_max);
    now.rlim_cur = 100; /* raised where there is no room */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    assert_int_equal(file_open_room(20), 1);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
    assert_int_equal(now.rlim_cur, 100);
    assert_int_equal(file_open_room(100), 1);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
    assert_in_range(now.rlim_cur, 101, 300);
    assert_int_equal(file_open_room(SIZE_MAX / 4), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void test_is_written(void **state)
{
    struct fixture *f = *state;
    int reading, writing;

    assert_int_equal(file_replace(NULL, f->path, "x", 1, NULL), OK);
    reading = open(f->path, O_RDONLY);
    assert_int_equal(file_is_written(reading), 0);
    writing = open(f->path, O_WRONLY);
    assert_int_equal(file_is_written(reading), 1);
    assert_int_equal(file_writer(reading), FILE_WRITTEN);
    close(writing);
    assert_int_equal(file_is_written(reading), 0);
    assert_int_equal(file_writer(reading), FILE_NOT_WRITTEN);
    close(reading);
    assert_int_equal(file_writer(reading), FILE_WRITER_UNKNOWN);
}

/* An empty entry of PATH is the working directory; what may not be run, and a directory, is none. */
static void test_find_program(void **state)
{
    const struct fixture *f = *state;
    char *before = strdup(getenv("PATH")), path[200], found[PATH_MAX], here[PATH_MAX];

    assert_non_null(before);
    snprintf(path, sizeof path, "/:%s:/nowhere", f->directory);
    setenv("PATH", path, 1);
    close(open(f->path, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(file_find_program("f", found), 0);
    assert_int_equal(file_find_program("tmp", found), 0);
    assert_int_equal(chmod(f->path, 0700), 0);
    assert_int_equal(file_find_program("f", found), 1);
    assert_string_equal(found, f->path);
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(f->directory), 0);
    setenv("PATH", ":/nowhere", 1);
    assert_int_equal(file_find_program("f", found), 1);
    assert_string_equal(found, "./f");
    unsetenv("PATH");
    assert_int_equal(file_find_program("f", found), 0);
    assert_int_equal(chdir(here), 0);
    setenv("PATH", before, 1);
    free(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_replace, setup, teardown),
        cmocka_unit_test_setup_teardown(test_plain, setup, teardown),
        cmocka_unit_test_setup_teardown(test_named, setup, teardown),
        cmocka_unit_test_setup_teardown(test_read_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_is_written, setup, teardown),
        cmocka_unit_test_setup_teardown(test_find_program, setup, teardown),
        cmocka_unit_test(test_begins),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_open_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
