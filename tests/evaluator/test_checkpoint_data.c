/* Data files of checkpoints that are not whole, in a real directory: which of them belong to which, and what changes. */
#include "evaluator/watch/watcher.h"

#include "evaluator/files/content_digest.h"
#include "evaluator/files/opened_checkpoint.h"
#include "tests/check.h"
#include "tests/eventlog/remove_tree.h"
#include "tests/failing_allocation.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { QUIET = 30, AGE = 10, A = 0, B, LETTERS, OTHER, WHOLE, COUNT };

static const struct {
    const char *name;
    int kind;
} names[COUNT] = {
    [A] = { "a", CHECKPOINT_BUNDLE },
    [B] = { "b", CHECKPOINT_BUNDLE },
    [LETTERS] = { "b.data-0", CHECKPOINT_BUNDLE }, /* as if it were a data file of b itself */
    [OTHER] = { "o", CHECKPOINT_OTHER },
    [WHOLE] = { "w", CHECKPOINT_BUNDLE },
};

static char directory[64];
static int fd;
static double newest; /* wall: the last change of a file written here */
static struct sightings sightings;

/* All checkpoints are known; all but the last have been found not whole at 1 s. */
static int setup(void **state)
{
    struct sighting_seen seen[COUNT];
    struct sighting_list gone;

    (void)state;
    strcpy(directory, "/tmp/test_checkpoint_data.XXXXXX");
    if (!mkdtemp(directory) || (fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return -1;
    newest = 0;
    for (int i = 0; i < COUNT; i++)
        seen[i] = (struct sighting_seen){ .name = names[i].name, .step = i, .stamp = 7, .kind = names[i].kind };
    sightings_init(&sightings, QUIET);
    assert_int_equal(sightings_update(&sightings, seen, COUNT, 1, &gone, NULL), OK);
    sighting_list_release(&gone);
    for (int i = 0; i < WHOLE; i++)
        assert_int_equal(sighting_not_whole(&sightings, &sightings.items[i], 1), 0);
    sighting_opened(&sightings.items[WHOLE]);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sightings_release(&sightings);
    close(fd);
    return remove_tree(directory);
}

static void put(const char *name, size_t size)
{
    int file = openat(fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    struct stat st;

    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, (off_t)size), 0);
    assert_int_equal(fstat(file, &st), 0);
    newest = file_stamp_changed(&st) > newest ? file_stamp_changed(&st) : newest;
    close(file);
}

/* A look AGE seconds after the last change of any file. */
static void look(double now)
{
    assert_int_equal(checkpoint_data_look(&sightings, fd, now, newest + (double)AGE, NULL), OK);
}

static uint64_t stamp_of(int i)
{
    return sightings.items[i].data_stamp;
}

static void test_nothing_to_look_at(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT; i++)
        sighting_opened(&sightings.items[i]);
    calls = 0;
    fail_at = 1;
    assert_int_equal(checkpoint_data_look(&sightings, -1, 100, 100, NULL), OK);
    fail_at = 0;
    assert_int_equal(stamp_of(A), 0);
}

static void test_whose_files(void **state)
{
    uint64_t a, b;
    (void)state;

    put("a.data-00000-of-00002", 10);
    put("w.data-00000-of-00001", 10);
    put("o.data-00000-of-00001", 10);
    put("a.index", 10);
    put("adata-1", 10);
    look(100);
    a = stamp_of(A), b = stamp_of(B);
    assert_true(a > 1 && b == 1 && stamp_of(LETTERS) == 1); /* 1: looked, and there is none */
    assert_int_equal(stamp_of(OTHER), 0);
    assert_int_equal(stamp_of(WHOLE), 0);
    put("b.data-0.data-00000-of-00001", 10);
    look(101);
    assert_true(stamp_of(A) == a && stamp_of(B) == b && stamp_of(LETTERS) > 1);
    put("b.data-00000-of-00001", 10);
    put("a.data-00001-of-00002", 10); /* each of them counts */
    look(102);
    assert_true(stamp_of(A) != a && stamp_of(B) > 1);
}

/* The quiet time begins with the last change of the newest file, also for one that had failed. */
static void test_changes(void **state)
{
    struct sighting *a = &sightings.items[A];
    uint64_t before;
    (void)state;

    put("a.data-00000-of-00001", 10);
    look(100);
    assert_true(a->changed == 100 - AGE);
    assert_int_equal(sighting_not_whole(&sightings, a, 100 - AGE + QUIET), 1);
    before = stamp_of(A);
    look(200);
    assert_true(stamp_of(A) == before && a->changed == 100 - AGE && a->state == SIGHTING_FAILED);
    put("a.data-00000-of-00001", 20);
    look(300);
    assert_true(stamp_of(A) != before && a->changed == 300 - AGE && a->state == SIGHTING_WAITING);
    assert_int_equal(unlinkat(fd, "a.data-00000-of-00001", 0), 0);
    look(400);
    assert_int_equal(stamp_of(A), 1);
}

/* That is told by the next listing. */
static void test_directory_gone(void **state)
{
    (void)state;
    put("a.data-00000-of-00001", 10);
    assert_int_equal(checkpoint_data_look(&sightings, -1, 100, newest, NULL), OK);
    assert_int_equal(stamp_of(A), 0);
}

static void test_no_memory(void **state)
{
    struct error e = { 0 };
    (void)state;

    put("a.data-00000-of-00001", 10);
    calls = 0;
    fail_at = 1;
    assert_int_equal(checkpoint_data_look(&sightings, fd, 100, newest, &e), ERR_NOMEM);
    fail_at = 0;
    assert_string_equal(e.message, "no memory for 4 checkpoints that are not whole");
    assert_int_equal(stamp_of(A), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_to_look_at, setup, teardown),
        cmocka_unit_test_setup_teardown(test_whose_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_directory_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
