/* Repair over every cut and every flipped bit of a small file, over torn records that were written over, and with
 * every call failing in turn; in place with a backup, and not while somebody writes. */
#include "eventlog/rewrite/log_repair.h"
#include "eventlog/rewrite/log_replace.h"

#include "base/bytes.h"
#include "base/file.h"
#include "eventlog/check/log_check.h"
#include "eventlog/format/event_encode.h"
#include "eventlog/format/record_file.h"
#include "tests/check.h"
#include "tests/eventlog/remove_tree.h"
#include "tests/failing_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORDS = 6 };

static struct log_input input;
static char directory[64], path[128], other[128], backup[128];
static uint8_t good[1000];
static size_t size, starts[RECORDS + 1];
static char source[64], target[64]; /* files in memory */
static int source_fd, target_fd;

static int setup(void **state)
{
    struct buffer b = BUFFER_EMPTY;
    (void)state;

    strcpy(directory, "/tmp/test_log_repair.XXXXXX");
    if (!mkdtemp(directory) || event_encode_start(&b, 5, "test", NULL) != OK)
        return -1;
    snprintf(path, sizeof path, "%s/a.tfevents.1", directory);
    snprintf(other, sizeof other, "%s/b.tfevents.1", directory);
    snprintf(backup, sizeof backup, "%s/a.tf-events.1.bak", directory);
    memcpy(good, b.data, size = b.length);
    buffer_release(&b);
    for (int i = 1; i < RECORDS; i++) {
        starts[i] = size;
        size += event_encode_scalar(good + size, "loss", 4, i, 5 + i, (float)i);
    }
    starts[RECORDS] = size;
    source_fd = memfd_create("source", MFD_CLOEXEC);
    target_fd = memfd_create("target", MFD_CLOEXEC);
    snprintf(source, sizeof source, "/proc/self/fd/%d", source_fd);
    snprintf(target, sizeof target, "/proc/self/fd/%d", target_fd);
    return source_fd < 0 || target_fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    close(source_fd);
    close(target_fd);
    return remove_tree(directory);
}

static void fill(int fd, const void *bytes, size_t n)
{
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, bytes, n, 0), n);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
}

static void put(const char *to, const void *bytes, size_t n)
{
    int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0666);

    assert_true(fd >= 0);
    fill(fd, bytes, n);
    close(fd);
}

static void assert_holds(const char *file, const void *bytes, size_t n)
{
    struct buffer b = BUFFER_EMPTY;

    assert_int_equal(file_read(file, 100000, &b, NULL), OK);
    assert_int_equal(b.length, n);
    assert_memory_equal(b.length ? b.data : "", bytes, n);
    buffer_release(&b);
}

static size_t files_in_directory(void)
{
    char command[128];
    unsigned long count = 0;
    FILE *list;

    snprintf(command, sizeof command, "ls -A %s | wc -l", directory);
    assert_non_null(list = popen(command, "r"));
    assert_int_equal(fscanf(list, "%lu", &count), 1);
    pclose(list);
    return count;
}

static uint64_t findings(const char *file)
{
    struct log_check *c;
    struct record_file f;
    struct record r;
    struct log_check_totals t;
    int rc;

    assert_int_equal(log_check_new(&c, "r", NULL), OK);
    assert_int_equal(log_check_file(c, "a.tfevents", NULL), OK);
    assert_int_equal(record_file_open(&f, file, NULL), OK);
    while ((rc = record_file_next(&f, &r, NULL)) != RECORD_MORE)
        assert_int_equal(rc == RECORD_DATA ? log_check_record(c, r.offset, r.data, r.length, NULL)
                                           : log_check_damage(c, &r, NULL),
                         OK);
    log_check_end(c, f.parser.offset, f.size, NULL);
    record_file_close(&f);
    t = log_check_totals(c);
    log_check_free(c);
    return t.by_level[LOG_DAMAGE] + t.by_level[LOG_HIDDEN];
}

/* Repairs n bytes in memory; the result must verify and hold exactly these records. */
static void assert_repaired(const uint8_t *bytes, size_t n, const uint8_t *want, size_t want_size)
{
    struct eventlog_repair r;

    fill(source_fd, bytes, n);
    fill(target_fd, "", 0);
    assert_int_equal(log_repair_copy(NULL, source, target_fd, target, &r, NULL), OK);
    assert_int_equal(r.size, n);
    assert_int_equal(r.bytes, want_size);
    assert_holds(target, want, want_size);
    assert_int_equal(findings(target), 0);
}

static void test_every_cut(void **state)
{
    (void)state;
    for (size_t cut = 0, whole = 0; cut <= size; cut++) {
        while (whole < RECORDS && starts[whole + 1] <= cut)
            whole++;
        assert_repaired(good, cut, good, starts[whole]);
    }
}

static void test_every_bit(void **state)
{
    (void)state;
    for (size_t bit = 0; bit < size * 8; bit++) {
        uint8_t bytes[sizeof good], want[sizeof good];
        size_t hit = 0;

        memcpy(bytes, good, size);
        bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        while (starts[hit + 1] <= bit / 8)
            hit++;
        memcpy(want, good, starts[hit]);
        memcpy(want + starts[hit], good + starts[hit + 1], size - starts[hit + 1]);
        assert_repaired(bytes, size, want, size - (starts[hit + 1] - starts[hit]));
    }
}

/* A record cut anywhere, then the rest of the log appended behind the cut: its length covers sound records. */
static void test_torn_in_the_middle(void **state)
{
    (void)state;
    for (size_t record = 0; record < RECORDS - 1; record++)
        for (size_t cut = starts[record] + 1; cut < starts[record + 1]; cut++) {
            uint8_t bytes[sizeof good], want[sizeof good];
            size_t rest = size - starts[record + 1];

            memcpy(bytes, good, cut);
            memcpy(bytes + cut, good + starts[record + 1], rest);
            memcpy(want, good, starts[record]);
            memcpy(want + starts[record], good + starts[record + 1], rest);
            assert_repaired(bytes, cut + rest, want, starts[record] + rest);
        }
}

static void test_zeros(void **state)
{
    static uint8_t bytes[10000];
    (void)state;

    memcpy(bytes, good, size);
    assert_repaired(bytes, size + 4096, good, size); /* a hole at the end */
    memcpy(bytes + starts[3] + 4096, good + starts[3], size - starts[3]);
    memset(bytes + starts[3], 0, 4096); /* and in the middle */
    assert_repaired(bytes, size + 4096, good, size);
}

static void test_refused_records(void **state)
{
    uint8_t bytes[sizeof good + 200];
    struct eventlog_repair r;
    size_t n = 0;
    (void)state;

    memcpy(bytes, good, size);
    n = size + event_encode_scalar(bytes + size, "lo\xff", 3, 7, 20, 1);
    memcpy(bytes + n + 12, "\x0c", 1); /* a stray group end */
    record_seal(bytes + n, 1);
    n += 17;
    assert_repaired(bytes, n, good, size);
    fill(source_fd, bytes, n);
    assert_int_equal(log_repair_copy(NULL, source, -1, "", &r, NULL), OK);
    assert_int_equal(r.refused, 2);
    assert_int_equal(r.records, RECORDS);
}

static void test_in_place(void **state)
{
    struct eventlog_repair r;
    struct stat st;
    int fd;
    (void)state;

    put(path, good, size);
    assert_int_equal(log_repair_in_place(NULL, path, &r, NULL), OK);
    assert_int_equal(r.changed, 0);
    assert_int_equal(files_in_directory(), 1);
    put(path, good, size - 3);
    assert_int_equal(chmod(path, 0640), 0);
    assert_true((fd = open(path, O_WRONLY | O_APPEND)) >= 0);
    assert_int_equal(log_repair_in_place(NULL, path, &r, NULL), ERR_ARG); /* somebody writes */
    close(fd);
    assert_int_equal(files_in_directory(), 1);
    assert_int_equal(log_repair_in_place(NULL, path, &r, NULL), OK);
    assert_int_equal(r.changed, 1);
    assert_int_equal(r.size - r.bytes, size - 3 - starts[RECORDS - 1]);
    assert_holds(path, good, starts[RECORDS - 1]);
    assert_holds(backup, good, size - 3);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    put(path, good, size - 3); /* again: the backup is not overwritten */
    assert_int_equal(log_repair_in_place(NULL, path, &r, NULL), ERR_ARG);
    assert_holds(path, good, size - 3);
    assert_int_equal(files_in_directory(), 2);
    unlink(backup);
    unlink(path);
}

static void test_to_a_new_name(void **state)
{
    struct eventlog_repair r;
    (void)state;

    put(path, good, size - 3);
    assert_int_equal(log_repair_to(NULL, &input, path, path, 1, &r, NULL), ERR_ARG);
    assert_int_equal(log_repair_to(NULL, &input, path, other, 0, &r, NULL), OK);
    assert_int_equal(log_repair_to(NULL, &input, path, other, 0, &r, NULL), ERR_ARG);
    assert_int_equal(log_repair_to(NULL, &input, path, other, 1, &r, NULL), OK);
    assert_holds(other, good, starts[RECORDS - 1]);
    assert_holds(path, good, size - 3);
    assert_int_equal(log_repair_to(NULL, &input, directory, other, 1, &r, NULL), ERR_IO);
    unlink(other);
    unlink(path);
}

/* Whatever call fails, there is the old file or the new one, and nothing else but the backup of the new one. */
static void test_every_call_fails(void **state)
{
    (void)state;
    for (int n = 1, more = 1; more; n++) {
        struct io_failing failing = { .fail_at = n, .error_number = ENOSPC, .short_writes = n % 2 };
        struct io io = io_failing_table(&failing);
        struct eventlog_repair r;
        int rc;

        assert_in_range(n, 1, 20);
        put(path, good, size - 3);
        rc = log_repair_in_place(&io, path, &r, NULL);
        more = failing.calls >= n;
        assert_true(more || rc == OK);
        if (rc != OK && access(backup, F_OK) != 0)
            assert_holds(path, good, size - 3);
        else
            assert_holds(path, good, starts[RECORDS - 1]);
        assert_int_equal(files_in_directory(), access(backup, F_OK) == 0 ? 2 : 1);
        unlink(backup);
    }
    unlink(path);
}

static void test_backup_names(void **state)
{
    char out[64];
    (void)state;

    assert_int_equal(log_replace_backup_name(out, sizeof out, "tfevents/a.tfevents.tfevents", NULL), OK);
    assert_string_equal(out, "tfevents/a.tf-events.tf-events.bak");
    assert_int_equal(log_replace_backup_name(out, 10, "a.tfevents", NULL), ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cut),          cmocka_unit_test(test_every_bit),
        cmocka_unit_test(test_torn_in_the_middle), cmocka_unit_test(test_zeros),
        cmocka_unit_test(test_refused_records),    cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_to_a_new_name),      cmocka_unit_test(test_every_call_fails),
        cmocka_unit_test(test_backup_names),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
