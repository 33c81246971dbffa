#include "base/sync_group.h"

#include "base/file.h"
#include "tests/check.h"
#include "tests/eventlog/remove_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 700, DIRECTORIES = 7, TOGETHER = 8 };

static char root[] = "/tmp/test_sync_group.XXXXXX", paths[FILES][100];

/* Calls of fsync: how many there were, how many at once; the first TOGETHER wait for one another. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t met;
    int calls, inside, most, directories, wait, error_number, failing_call;
} disk = { .mutex = PTHREAD_MUTEX_INITIALIZER, .met = PTHREAD_COND_INITIALIZER };

static int disk_fsync(void *context, int fd)
{
    struct timespec deadline;
    struct stat st;
    int failed;
    (void)context;

    assert_int_equal(fstat(fd, &st), 0);
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += 60;
    pthread_mutex_lock(&disk.mutex);
    failed = ++disk.calls == disk.failing_call;
    disk.directories += S_ISDIR(st.st_mode);
    disk.most = ++disk.inside > disk.most ? disk.inside : disk.most;
    if (disk.most >= TOGETHER)
        pthread_cond_broadcast(&disk.met);
    while (disk.wait && disk.most < TOGETHER && pthread_cond_timedwait(&disk.met, &disk.mutex, &deadline) == 0)
        ;
    disk.inside--;
    pthread_mutex_unlock(&disk.mutex);
    errno = disk.error_number;
    return failed ? -1 : 0;
}

static struct io disk_table(int wait, int failing_call, int error_number)
{
    struct io io = io_real;

    io.fsync = disk_fsync;
    disk.calls = disk.inside = disk.most = disk.directories = 0;
    disk.wait = wait;
    disk.failing_call = failing_call;
    disk.error_number = error_number;
    return io;
}

static int setup(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(root));
    for (int i = 0; i < FILES; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%d", root, i * DIRECTORIES / FILES);
        mkdir(paths[i], 0777);
        snprintf(paths[i], sizeof paths[i], "%s/%d/%d", root, i * DIRECTORIES / FILES, i);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return remove_tree(root);
}

static int open_file(int i)
{
    int fd = open(paths[i], O_WRONLY | O_CREAT, 0666);

    assert_true(fd >= 0);
    return fd;
}

static int open_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Each once, several at once, never more of them open than is said. */
static void test_files(void **state)
{
    struct io io = disk_table(1, 0, 0);
    struct sync_group g = { .io = &io };
    struct error e = { 0 };
    const int before_all = open_descriptors();
    (void)state;

    for (int i = 0; i < FILES; i++) {
        assert_int_equal(sync_group_file(&g, open_file(i), paths[i], &e), OK);
        assert_in_range(open_descriptors(), before_all, before_all + SYNC_GROUP_MOST - 1);
    }
    assert_true(disk.calls < FILES);
    assert_int_equal(sync_group_run(&g, &e), OK);
    assert_int_equal(disk.calls, FILES);
    assert_int_equal(disk.directories, 0);
    assert_in_range(disk.most, TOGETHER, 64);
    assert_int_equal(open_descriptors(), before_all);
}

static void test_directories(void **state)
{
    struct io io = disk_table(0, 0, 0);
    struct sync_group g = { .io = &io };
    struct error e = { 0 };
    char before[4096];
    (void)state;

    for (int i = 0; i < FILES; i++)
        assert_int_equal(sync_group_parent(&g, paths[i], &e), OK);
    assert_int_equal(sync_group_run(&g, &e), OK);
    assert_int_equal(disk.calls, DIRECTORIES);
    assert_int_equal(disk.directories, DIRECTORIES);
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(root), 0);
    assert_int_equal(sync_group_parent(&g, "name", &e), OK);
    assert_int_equal(sync_group_run(&g, &e), OK);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(sync_group_parent(&g, "/tmp/there/is/none", &e), ERR_IO);
    assert_string_equal(e.message, "/tmp/there/is/: cannot open the directory: No such file or directory");
}

/* Whichever fails is named, and all are closed. EINVAL of a directory is none. */
static void test_failures(void **state)
{
    const int before_all = open_descriptors();
    (void)state;

    for (int failing = 1; failing <= 5; failing++)
        for (int directory = 0; directory < 2; directory++)
            for (int k = 0; k < 2; k++) {
                struct io io = disk_table(0, failing, k ? EIO : EINVAL);
                struct sync_group g = { .io = &io };
                struct error e = { 0 };

                for (int i = 0; i < 5; i++)
                    assert_int_equal(directory ? sync_group_parent(&g, paths[i * FILES / DIRECTORIES], &e)
                                               : sync_group_file(&g, open_file(i), paths[i], &e),
                                     OK);
                assert_int_equal(sync_group_run(&g, &e), directory && !k ? OK : ERR_IO);
                if (k)
                    assert_non_null(strstr(e.message, directory ? ": cannot sync its directory: Input/output error"
                                                                : ": cannot sync: Input/output error"));
                assert_int_equal(open_descriptors(), before_all);
                assert_int_equal(sync_group_file(&g, open_file(0), paths[0], &e), OK);
                sync_group_release(&g);
                assert_int_equal(open_descriptors(), before_all);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_directories),
        cmocka_unit_test(test_failures),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
