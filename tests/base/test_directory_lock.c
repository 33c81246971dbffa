/* The kernel's lock on a directory: held whatever happens to the files, and gone with the process. */
#include "base/directory_lock.h"

#include "tests/check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[4096];

static int set_up(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "%s/lock.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    return mkdtemp(directory) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(directory);
}

static void test_two_descriptors(void **state)
{
    int first, second;

    (void)state;
    assert_int_equal(directory_lock(directory, &first, NULL), OK);
    assert_true(first >= 0);
    assert_int_equal(directory_lock(directory, &second, NULL), DIRECTORY_LOCKED);
    assert_int_equal(second, -1);
    close(first);
    assert_int_equal(directory_lock(directory, &second, NULL), OK);
    close(second);
}

static void test_killed_holder(void **state)
{
    int ready[2], fd;
    char byte = 0;
    pid_t child;

    (void)state;
    assert_int_equal(pipe(ready), 0);
    if ((child = fork()) == 0) {
        byte = directory_lock(directory, &fd, NULL) == OK ? 'y' : 'n';
        (void)!write(ready[1], &byte, 1);
        pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    assert_int_equal(directory_lock(directory, &fd, NULL), DIRECTORY_LOCKED);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(directory_lock(directory, &fd, NULL), OK);
    close(fd);
    close(ready[0]);
    close(ready[1]);
}

static void test_no_directory(void **state)
{
    struct error e = { 0 };
    int fd;

    (void)state;
    assert_int_equal(directory_lock("/dev/null", &fd, &e), ERR_IO);
    assert_int_equal(fd, -1);
    assert_true(*e.message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_two_descriptors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_killed_holder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_directory, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
