/* The public functions that repair and thin, with every allocation failing in turn. What a repair keeps is the matter of
 * test_log_repair.c, which points stay that of test_downsample.c. */
#include "eventlog/eventlog.h"

#include "base/buffer.h"
#include "base/file.h"
#include "eventlog/format/event_encode.h"
#include "tests/check.h"
#include "tests/eventlog/remove_tree.h"
#include "tests/failing_allocation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[64], path[128], other[128], backup[128];
static uint8_t bytes[1000];
static size_t first, second, size; /* where the records end */
static struct eventlog_error error;

static int setup(void **state)
{
    struct buffer b = BUFFER_EMPTY;
    (void)state;

    strcpy(directory, "/tmp/test_public_rewrite.XXXXXX");
    if (!mkdtemp(directory) || event_encode_start(&b, 5, "test", NULL) != OK)
        return -1;
    snprintf(path, sizeof path, "%s/a.tfevents.1", directory);
    snprintf(other, sizeof other, "%s/b.tfevents.1", directory);
    snprintf(backup, sizeof backup, "%s/a.tf-events.1.bak", directory);
    memcpy(bytes, b.data, first = b.length);
    buffer_release(&b);
    second = first + event_encode_scalar(bytes + first, "loss", 4, 1, 6, 1);
    size = second + event_encode_scalar(bytes + second, "loss", 4, 2, 7, 2);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return remove_tree(directory);
}

static void put(size_t n)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void assert_length(const char *file, size_t n)
{
    struct buffer b = BUFFER_EMPTY;

    assert_int_equal(file_read(file, sizeof bytes, &b, NULL), OK);
    assert_int_equal(b.length, n);
    assert_memory_equal(b.data, bytes, n);
    buffer_release(&b);
}

static void test_copy(void **state)
{
    struct eventlog_repair done;
    (void)state;

    put(size - 3); /* an incomplete last record */
    memset(&done, 0xff, sizeof done);
    assert_int_equal(eventlog_repair(path, other, 0, &done, &error), EVENTLOG_OK);
    assert_length(path, size - 3);
    assert_length(other, second);
    assert_int_equal(done.changed, 1);
    assert_int_equal(done.size, size - 3);
    assert_int_equal(done.records, 2);
    assert_int_equal(done.bytes, second);
    assert_int_equal(done.cut, size - 3 - second);
    assert_int_equal(done.places + done.refused, 0);
    put(size);
    assert_int_equal(eventlog_repair(path, other, 0, NULL, &error), EVENTLOG_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, other));
    assert_length(other, second);
    assert_int_equal(eventlog_repair(path, other, 1, NULL, NULL), EVENTLOG_OK);
    assert_length(other, size);
    assert_int_equal(unlink(other), 0);
}

static void test_in_place(void **state)
{
    struct eventlog_repair done;
    (void)state;

    put(size);
    assert_int_equal(eventlog_repair(path, NULL, 0, &done, &error), EVENTLOG_OK);
    assert_int_equal(done.changed, 0);
    assert_int_not_equal(access(backup, F_OK), 0);
    bytes[second - 1] ^= 1; /* the CRC of the second record */
    put(size);
    bytes[second - 1] ^= 1;
    assert_int_equal(eventlog_repair(path, NULL, 0, &done, &error), EVENTLOG_OK);
    assert_int_equal(done.changed, 1);
    assert_int_equal(done.records, 2);
    assert_int_equal(done.size - done.bytes, second - first);
    assert_int_equal(access(backup, F_OK), 0);
    put(size - 1);
    assert_int_equal(eventlog_repair(path, NULL, 0, &done, &error), EVENTLOG_ERROR_ARGUMENT); /* a backup is there */
    assert_length(path, size - 1);
    assert_int_equal(done.changed + done.size, 0);
    assert_int_equal(unlink(backup), 0);
}

static void test_refused(void **state)
{
    (void)state;
    assert_int_equal(eventlog_repair(NULL, NULL, 0, NULL, &error), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_repair(directory, other, 0, NULL, &error), EVENTLOG_ERROR_IO);
    put(5);
    assert_int_equal(eventlog_repair(path, other, 0, NULL, &error), EVENTLOG_ERROR_CORRUPT);
    assert_int_not_equal(access(other, F_OK), 0);
}

/* A call that an allocation fails leaves both files as they were; some can be done without. */
static void test_without_memory(void **state)
{
    int failures = 0, rc;
    long n = 0;
    (void)state;

    put(size - 3);
    do {
        atomic_store(&calls, 0);
        atomic_store(&fail_at, ++n);
        rc = eventlog_repair(path, other, 0, NULL, &error);
        atomic_store(&fail_at, 0);
        assert_true(rc == EVENTLOG_OK || rc == EVENTLOG_ERROR_MEMORY);
        assert_length(path, size - 3);
        assert_int_equal(access(other, F_OK) == 0, rc == EVENTLOG_OK);
        failures += rc != EVENTLOG_OK;
        if (rc == EVENTLOG_OK) {
            assert_length(other, second);
            assert_int_equal(unlink(other), 0);
        }
    } while (atomic_load(&calls) >= n);
    assert_true(failures > 0);
}

static void test_downsample(void **state)
{
    static const double x[] = { 0, 1, 2, 3, 4 }, y[] = { 0, 0, 0, 9, 0 };
    uint8_t keep[5];
    (void)state;

    assert_int_equal(eventlog_downsample(x, y, 5, 1, keep, &error), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_downsample(x, y, 5, 3, keep, &error), EVENTLOG_OK);
    assert_memory_equal(keep, "\1\0\0\1\1", 5); /* the peak */
    assert_int_equal(eventlog_downsample(NULL, y, 5, 3, keep, NULL), EVENTLOG_OK);
    assert_memory_equal(keep, "\1\0\1\0\1", 5); /* by index */
    assert_int_equal(eventlog_downsample(x, y, 5, 9, keep, NULL), EVENTLOG_OK);
    assert_memory_equal(keep, "\1\1\1\1\1", 5);
    assert_int_equal(eventlog_downsample(NULL, NULL, 0, 2, keep, NULL), EVENTLOG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy),           cmocka_unit_test(test_in_place),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_without_memory), cmocka_unit_test(test_downsample),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
