/* Files of tensors: in the page cache and past it, on failing disks, without memory, in a process that is killed. */
#include "base/crc32c.h"
#include "checkpoint/data_file.h"
#include "tests/checkpoint/checkpoint_fixture.h"
#include "tests/failing_allocation.h"
#include "tests/failing_io.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* Through the cache, then three direct writes, then an end that is no whole block. */
enum { CHUNK = 1 << 18, DIRECT = 1 << 21, SIZE = CHUNK + 3 * DIRECT + 5000 };

static uint8_t contents[SIZE];

static void fill(void)
{
    for (size_t i = 0; i < SIZE; i++)
        contents[i] = (uint8_t)(i * 2654435761u >> 13);
}

/* In pieces as tensors have them: small ones, large ones, none at a boundary. */
static int write_all(const struct io *io, const char *path, int64_t direct_from, uint32_t *crc, struct error *e)
{
    static const size_t pieces[] = { 4, 1000, 700001, 1, 262144, 3000003, 12345 };
    struct data_file *f;
    int rc = data_file_create(&f, io, path, e);

    if (rc != OK)
        return rc;
    data_file_direct_from(f, direct_from);
    *crc = 0;
    for (size_t at = 0, i = 0, n; at < SIZE && rc == OK; at += n, i++) {
        n = pieces[i % 7] < SIZE - at ? pieces[i % 7] : SIZE - at;
        rc = data_file_append(f, contents + at, n, crc, e);
    }
    if (rc == OK)
        rc = data_file_finish(f, e);
    else
        assert_int_equal(data_file_finish(f, NULL), rc);
    data_file_free(f);
    return rc;
}

static void assert_whole(struct fixture *f, uint32_t crc)
{
    struct buffer file;

    fixture_read(f, "data", &file);
    assert_int_equal(file.length, SIZE);
    assert_memory_equal(file.data, contents, SIZE);
    assert_int_equal(crc, crc32c(contents, SIZE));
    buffer_release(&file);
}

/* What was asked of the system. */
struct asked {
    int direct, cached, refuse, cut;
};

static int is_direct(int fd)
{
    return (fcntl(fd, F_GETFL) & O_DIRECT) != 0;
}

static ssize_t count_write(void *context, int fd, const void *bytes, size_t n)
{
    struct asked *asked = context;

    if (!is_direct(fd)) {
        asked->cached++;
        return io_real.write(NULL, fd, bytes, n);
    }
    asked->direct++;
    if (asked->refuse) {
        errno = EINVAL;
        return -1;
    }
    if (asked->cut) { /* as by a full disk on which there is room again */
        asked->cut = 0;
        assert_int_equal(fcntl(fd, F_SETFL, O_WRONLY), 0);
        n = (size_t)io_real.write(NULL, fd, bytes, 100);
        assert_int_equal(fcntl(fd, F_SETFL, O_WRONLY | O_DIRECT), 0);
        return (ssize_t)n;
    }
    return io_real.write(NULL, fd, bytes, n);
}

/* 1: the file system takes O_DIRECT. Not all do; where none is taken, the file must be written all the same. */
static int takes_direct(struct fixture *f)
{
    const int fd = open(fixture_path(f, "asked"), O_WRONLY | O_CREAT | O_DIRECT | O_CLOEXEC, 0666);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void test_past_the_cache(void **state)
{
    struct fixture *f = *state;
    const int can = takes_direct(f);

    for (int mode = 0; mode < 4; mode++) {
        struct asked asked = { .refuse = mode == 1, .cut = mode == 2 };
        struct io io = io_real;
        struct error e = { 0 };
        uint32_t crc;

        io.write = count_write;
        io.context = &asked;
        assert_int_equal(write_all(&io, fixture_path(f, "data"), mode == 3 ? -1 : CHUNK, &crc, &e), OK);
        assert_whole(f, crc);
        if (mode == 0 && can) {
            assert_int_equal(asked.direct, 3);
            assert_int_equal(asked.cached, 2);
        } else if (mode == 1 && can)
            assert_int_equal(asked.direct, 1);
        else if (mode == 3 || !can)
            assert_int_equal(asked.direct, 0);
    }
}

/* Without any setting: large files of file systems that are on disks, the rest of them in the cache. */
static void test_small_stays_in_the_cache(void **state)
{
    struct fixture *f = *state;
    struct asked asked = { 0 };
    struct io io = io_real;
    struct data_file *file;
    struct error e = { 0 };

    io.write = count_write;
    io.context = &asked;
    assert_int_equal(data_file_create(&file, &io, fixture_path(f, "data"), &e), OK);
    for (size_t at = 0; at < DATA_FILE_CACHED; at += CHUNK)
        assert_int_equal(data_file_append(file, contents, CHUNK, NULL, &e), OK);
    assert_int_equal(data_file_finish(file, &e), OK);
    data_file_free(file);
    assert_int_equal(asked.direct, 0);
}

static void test_failing_disk(void **state)
{
    struct fixture *f = *state;

    for (int mode = 0; mode < 4; mode++)
        for (long n = 1, failed = 1; failed; n++) {
            struct io_failing failing = {
                .fail_at = n, .error_number = ENOSPC, .stay_failed = mode & 1, .short_writes = mode >> 1
            };
            struct io io = io_failing_table(&failing);
            struct error e = { 0 };
            uint32_t crc;
            int rc;

            rc = write_all(&io, fixture_path(f, "data"), CHUNK, &crc, &e);
            failed = failing.calls >= n;
            if (rc == OK)
                assert_whole(f, crc);
            else
                assert_true(failed && strstr(e.message, "data: cannot ") && e.system == ENOSPC);
            assert_true(failed || rc == OK);
            assert_in_range(n, 1, 20);
        }
}

/* Nothing but open, writes, fsync and close, in this order: a kill leaves the start of the contents. */
static void test_killed(void **state)
{
    struct fixture *f = *state;

    for (long n = 1, killed = 1; killed; n++) {
        struct buffer file;
        struct error e = { 0 };
        int status;
        pid_t child = fork();

        if (child == 0) {
            struct io_failing failing = { .fail_at = n, .kill = 1 };
            struct io io = io_failing_table(&failing);
            uint32_t crc;

            _exit(write_all(&io, fixture_path(f, "data"), CHUNK, &crc, &e) == OK ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        assert_true(killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
        if (n == 1) /* before the open */
            continue;
        fixture_read(f, "data", &file);
        assert_true(file.length <= SIZE && (killed || file.length == SIZE));
        if (file.length)
            assert_memory_equal(file.data, contents, file.length);
        buffer_release(&file);
        assert_in_range(n, 1, 20);
    }
}

/* Each allocation fails in turn; without memory for direct writes, it is written through the cache. */
static void test_no_memory(void **state)
{
    struct fixture *f = *state;
    int written = 0;

    for (long n = 1;; n++) {
        struct error e = { 0 };
        uint32_t crc;
        int rc;

        atomic_store(&calls, 0);
        atomic_store(&fail_at, n);
        rc = write_all(&io_real, fixture_path(f, "data"), CHUNK, &crc, &e);
        atomic_store(&fail_at, 0);
        assert_true(rc == OK || (rc == ERR_NOMEM && strstr(e.message, "no memory to write it")));
        if (rc == OK) {
            assert_whole(f, crc);
            written++;
        }
        if (atomic_load(&calls) < n)
            break;
    }
    assert_int_equal(written, 2);
}

/* The limit cuts a direct write within a block. */
static void test_file_size_limit(void **state)
{
    struct fixture *f = *state;
    const char *path = fixture_path(f, "data");
    int status;
    pid_t child = fork();

    if (child == 0) {
        const struct rlimit limit = { CHUNK + DIRECT + 777, CHUNK + DIRECT + 777 };
        struct error e = { 0 };
        uint32_t crc;

        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
            _exit(3);
        _exit(write_all(&io_real, path, CHUNK, &crc, &e) == ERR_IO && e.system == EFBIG ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

#define FIXTURE_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_past_the_cache), FIXTURE_TEST(test_small_stays_in_the_cache),
        FIXTURE_TEST(test_failing_disk),   FIXTURE_TEST(test_killed),
        FIXTURE_TEST(test_no_memory),      FIXTURE_TEST(test_file_size_limit),
    };

    fill();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
