/* The public function that merges, with every allocation failing in turn. Which points stay is the matter of
 * test_log_merge.c; that the bytes are those of `eventlog merge`, of tests/tool/test_public_merge.py. */
#include "eventlog/eventlog.h"

#include "tests/check.h"
#include "tests/eventlog/remove_tree.h"
#include "tests/failing_allocation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[64], run[96], other[96], merged[96], below[128];
static struct eventlog_error error;

/* Steps from `first` on, three of them. */
static void write_run(const char *where, int first)
{
    struct eventlog_writer *w;

    assert_int_equal(eventlog_writer_open(&w, where, NULL, NULL), EVENTLOG_OK);
    for (int step = first; step < first + 3; step++)
        assert_int_equal(eventlog_writer_scalar(w, "loss", step, 100 + 10 * first + step, (float)step, NULL),
                         EVENTLOG_OK);
    assert_int_equal(eventlog_writer_close(w, NULL), EVENTLOG_OK);
}

static int setup(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/test_public_merge.XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    snprintf(run, sizeof run, "%s/run", directory);
    snprintf(other, sizeof other, "%s/other", directory);
    snprintf(merged, sizeof merged, "%s/merged", directory);
    snprintf(below, sizeof below, "%s/a/b", merged);
    write_run(run, 0);
    write_run(run, 1); /* from step 1 on again */
    write_run(other, 4);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return remove_tree(directory);
}

static void test_restart(void **state)
{
    const struct eventlog_merge_options keep = { .overlap = EVENTLOG_OVERLAP_KEEP, .force = 1 };
    const char *const paths[] = { run };
    struct eventlog_merged done;

    (void)state;
    assert_int_equal(eventlog_merge(paths, 1, merged, NULL, &done, &error), EVENTLOG_OK);
    assert_int_equal(done.files, 2);
    assert_int_equal(done.values, 4);
    assert_int_equal(done.records, 5);
    assert_int_equal(done.restarts, 1);
    assert_int_equal(done.restarted, 2);
    assert_int_equal(done.damaged + done.torn + done.repeated + done.doubled, 0);
    assert_int_equal(eventlog_merge(paths, 1, merged, NULL, &done, &error), EVENTLOG_ERROR_ARGUMENT); /* it holds one */
    assert_int_equal(done.files, 0);
    assert_int_equal(eventlog_merge(paths, 1, merged, &keep, &done, NULL), EVENTLOG_OK);
    assert_int_equal(done.values, 6);
    assert_int_equal(remove_tree(merged), 0);
}

static void test_runs(void **state)
{
    const struct eventlog_merge_options join = { .join = 1 }, prefix = { .prefix = 1 };
    const char *const paths[] = { other, run };
    struct eventlog_merged done;

    (void)state;
    assert_int_equal(eventlog_merge(paths, 2, merged, NULL, NULL, &error), EVENTLOG_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "loss"));
    assert_int_not_equal(access(merged, F_OK), 0);
    assert_int_equal(eventlog_merge(paths, 2, below, &join, &done, &error), EVENTLOG_OK);
    assert_int_equal(done.values, 7);
    assert_int_equal(remove_tree(merged), 0);
    assert_int_equal(eventlog_merge(paths, 2, merged, &prefix, &done, &error), EVENTLOG_OK);
    assert_int_equal(done.values, 7);
    assert_int_equal(remove_tree(merged), 0);
}

static void test_refused(void **state)
{
    const char *const paths[] = { run, "/nothing/here" }, *const empty[] = { directory };
    struct eventlog_merge_options o = { .overlap = EVENTLOG_OVERLAP_ERROR };

    (void)state;
    assert_int_equal(eventlog_merge(paths, 1, merged, &o, NULL, &error), EVENTLOG_ERROR_ARGUMENT);
    o.overlap = (enum eventlog_overlap)7;
    assert_int_equal(eventlog_merge(paths, 1, merged, &o, NULL, &error), EVENTLOG_ERROR_ARGUMENT);
    o = (struct eventlog_merge_options){ .join = 1, .prefix = 1 };
    assert_int_equal(eventlog_merge(paths, 1, merged, &o, NULL, &error), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_merge(paths, 0, merged, NULL, NULL, &error), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_merge(paths, 1, NULL, NULL, NULL, &error), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_merge(paths, 2, merged, NULL, NULL, &error), EVENTLOG_ERROR_IO);
    assert_int_equal(mkdir(merged, 0777), 0);
    assert_int_equal(eventlog_merge((const char *const[]){ merged }, 1, below, NULL, NULL, &error),
                     EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(rmdir(merged), 0);
    assert_int_equal(eventlog_merge(empty, 1, run, NULL, NULL, &error), EVENTLOG_ERROR_ARGUMENT);
}

/* A call that an allocation fails writes nothing and leaves no directory; some can be done without. */
static void test_without_memory(void **state)
{
    const char *const paths[] = { run };
    int failures = 0, rc;
    long n = 0;

    (void)state;
    do {
        atomic_store(&calls, 0);
        atomic_store(&fail_at, ++n);
        rc = eventlog_merge(paths, 1, merged, NULL, NULL, &error);
        atomic_store(&fail_at, 0);
        if (rc != EVENTLOG_OK && rc != EVENTLOG_ERROR_MEMORY)
            fail_msg("allocation %ld: %d, %s", n, rc, error.message);
        assert_int_equal(access(merged, F_OK) == 0, rc == EVENTLOG_OK);
        failures += rc != EVENTLOG_OK;
        if (rc == EVENTLOG_OK)
            assert_int_equal(remove_tree(merged), 0);
    } while (atomic_load(&calls) >= n);
    assert_true(failures > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_without_memory),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
