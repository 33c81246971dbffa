/* Checkpoints written beside a training: what is saved, in what order, and what a full disk, no memory, a moved directory
 * and an early end make of it. */
#include "tests/failing_allocation.h"
#include "tests/trainer/saved_training.h"

#include <sys/statvfs.h>

static int fail_map; /* the next mapping of memory with this number from 1 on fails; 0: none */

void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (fail_map > 0 && --fail_map == 0) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return __real_mmap(at, size, protection, flags, fd, offset);
}

static uint64_t space = UINT64_MAX; /* that is left on any file system; UINT64_MAX: what there is */

int __real_statvfs(const char *path, struct statvfs *out);
int __wrap_statvfs(const char *path, struct statvfs *out);

int __wrap_statvfs(const char *path, struct statvfs *out)
{
    const int rc = __real_statvfs(path, out);

    if (space != UINT64_MAX) {
        out->f_frsize = 4096;
        out->f_bavail = space / 4096;
    }
    return rc;
}

static void test_beside(void **state)
{
    struct held *h = shared(sizeof *h);
    struct io io = held_table(h);
    struct error e = { 0 };
    struct training t;

    (void)state;
    io.open = held_open;
    start(&t, &io, &(struct saving_options){ .steps = 10 });
    assert_int_equal(save_at(&t, 10, &e), OK);
    reached(h);
    assert_int_equal(logged("Saving checkpoints for 10 into "), 1); /* at the beginning */
    train_to(&t, 15);                                               /* goes on while the saver writes */
    saving_wait(&t.saving, 0.001);
    assert_true(saving_busy(&t.saving));
    assert_int_equal(saving_look(&t.saving, &e), OK);
    assert_int_equal(t.saving.saved, -1);
    assert_int_equal(t.saving.tried, 10);
    let_go(h);
    assert_int_equal(outcome(&t, &e), SAVING_ENDED);
    assert_false(saving_busy(&t.saving));
    assert_int_equal(saving_look(&t.saving, &e), OK);
    assert_int_equal(t.saving.saved, 10);
    assert_newest(10);
    end(&t);
}

static void test_close_waits(void **state)
{
    struct held *h = shared(sizeof *h);
    const struct io io = held_table(h);
    struct training t;

    (void)state;
    start(&t, &io, &(struct saving_options){ .steps = 10 });
    assert_int_equal(save_at(&t, 10, NULL), OK);
    reached(h);
    let_go(h);
    end(&t);
    assert_newest(10);
}

static void test_due(void **state)
{
    static const struct {
        int64_t tried, step;
        int due;
    } cases[] = { { 0, 9, 0 },   { 0, 10, 1 },  { 10, 10, 0 }, { 10, 19, 0 }, { 37, 39, 0 },
                  { 37, 40, 1 }, { 38, 43, 1 }, { 43, 49, 0 }, { 43, 50, 1 }, { 43, 71, 1 } };
    struct training t;

    (void)state;
    start(&t, NULL, &(struct saving_options){ .steps = 10 });
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        t.saving.tried = cases[i].tried;
        assert_int_equal(saving_due(&t.saving, cases[i].step), cases[i].due);
    }
    t.saving.options = (struct saving_options){ .directory = directory, .seconds = 1e6 };
    assert_false(saving_due(&t.saving, 100));
    t.saving.tried_at -= 1e7;
    assert_true(saving_due(&t.saving, 100));
    assert_int_equal(save_at(&t, 100, NULL), OK);
    assert_false(saving_due(&t.saving, 101)); /* by time it is not due before the last one is written */
    assert_int_equal(outcome(&t, NULL), SAVING_ENDED);
    t.saving.options.seconds = 0;
    assert_false(saving_due(&t.saving, 1000));
    end(&t);
}

/* Each call of a save fails in turn: the error is told once, the earlier checkpoint stays, and the next save is good. */
static void test_failing_disk(void **state)
{
    struct io_failing *failing = shared(sizeof *failing);
    const struct io io = io_failing_table(failing);
    struct error e = { 0 };
    struct training t;
    int64_t step = 10, saved = 10;
    long count;
    int failed = 0;

    (void)state;
    start(&t, &io, &(struct saving_options){ .steps = 10, .keep = 2 });
    assert_int_equal(saved_at(&t, 1, &e), SAVING_ENDED);
    assert_int_equal(saved_at(&t, 2, &e), SAVING_ENDED);
    failing->calls = 0;
    assert_int_equal(saved_at(&t, step, &e), SAVING_ENDED);
    count = failing->calls;
    assert_true(count > 10);
    for (long n = 1; n <= count; n++) {
        int rc;

        *failing = (struct io_failing){ .fail_at = n, .error_number = ENOSPC, .short_writes = 1 };
        step += 10;
        rc = saved_at(&t, step, &e);
        assert_int_equal(saving_look(&t.saving, &e), OK);
        assert_int_equal(t.saving.tried, step);
        if (rc < 0) {
            assert_non_null(strstr(e.message, "No space left on device"));
            failed++;
        } else {
            saved = step;
        }
        assert_int_equal(t.saving.saved, saved);
        *failing = (struct io_failing){ 0 };
        step += 10;
        assert_int_equal(saved_at(&t, step, &e), SAVING_ENDED);
        saved = step;
        assert_newest(step);
    }
    assert_true(failed > 5);
    end(&t);
}

/* Two that fail are told in the order of their steps. */
static void test_order_of_errors(void **state)
{
    struct io_failing *failing = shared(sizeof *failing);
    const struct io io = io_failing_table(failing);
    struct training t;

    (void)state;
    *failing = (struct io_failing){ .fail_at = 1, .stay_failed = 1, .error_number = ENOSPC };
    start(&t, &io, &(struct saving_options){ .steps = 10 });
    for (int64_t step = 10; step <= 30; step += 10) {
        struct error e = { 0 };

        assert_int_equal(saved_at(&t, step, &e), ERR_IO);
        saving_fail(&t.saving, t.saving.tried, 1, &e);
        assert_int_equal(t.saving.failed, step / 10);
        assert_int_equal(logged("trainer: no checkpoint of step "), step / 10);
    }
    assert_int_equal(logged("no checkpoint of step 10: "), 1);
    assert_int_equal(logged("no checkpoint of step 30: "), 1);
    assert_int_equal(logged("training goes on, earlier checkpoints are kept"), 3);
    end(&t);
}

static void test_waiting_is_told_once(void **state)
{
    struct training t;

    (void)state;
    start(&t, NULL, &(struct saving_options){ .steps = 10 });
    saving_waited(&t.saving, 0.99);
    assert_int_equal(logged("training waited"), 0);
    saving_waited(&t.saving, 1.26);
    saving_waited(&t.saving, 5);
    assert_int_equal(logged("training waited 1.3 s until the checkpoint of step 0 was written"), 1);
    assert_int_equal(logged("training waited"), 1);
    end(&t);
}

/* Each allocation fails in turn, where there is a saver and where this process writes the checkpoint. */
static void test_no_memory(void **state)
{
    struct training t;

    (void)state;
    for (alone = 0; alone < 2; alone++)
        for (long n = 1;; n++) {
            struct error e = { 0 };
            int rc;

            start(&t, NULL, &(struct saving_options){ .steps = 10, .keep = 2 });
            train_to(&t, n);
            atomic_store(&calls, 0);
            atomic_store(&fail_at, n);
            rc = save_at(&t, n, &e);
            if (rc == OK)
                rc = outcome(&t, &e);
            atomic_store(&fail_at, 0);
            assert_true(rc == SAVING_ENDED || (rc == ERR_NOMEM && e.message[0]) || rc == ERR_IO);
            if (rc == SAVING_ENDED)
                assert_newest(n);
            assert_int_equal(saved_at(&t, 1000 + n, &e), SAVING_ENDED);
            assert_newest(1000 + n);
            end(&t);
            if (atomic_load(&calls) < n)
                break;
        }
    alone = 0;
}

/* Without memory for a copy, the training waits for each checkpoint, and says so once. */
static void test_no_copy(void **state)
{
    struct training t;

    (void)state;
    start(&t, NULL, &(struct saving_options){ .steps = 10 });
    for (int64_t step = 10; step <= 20; step += 10) {
        fail_map = 1;
        assert_int_equal(save_at(&t, step, NULL), SAVING_ENDED);
        assert_int_equal(fail_map, 0);
        assert_newest(step);
    }
    assert_int_equal(logged("training waits for each checkpoint"), 1);
    assert_int_equal(save_at(&t, 30, NULL), OK);
    assert_int_equal(outcome(&t, NULL), SAVING_ENDED);
    end(&t);
}

/* The directory is replaced while a checkpoint is written; how often, and by whom it is noticed first. */
static void replaced(int times, int noticed, int wanted)
{
    struct held *h = shared(sizeof *h);
    const struct io io = held_table(h);
    struct error e = { 0 };
    struct training t;
    int rc = OK;

    start(&t, &io, &(struct saving_options){ .steps = 10 });
    assert_int_equal(save_at(&t, 10, &e), OK);
    for (int i = 0; i < times; i++) {
        char aside[100];

        reached(h);
        snprintf(aside, sizeof aside, "%s/aside-%d", top, i);
        assert_int_equal(rename(directory, aside), 0);
        if (noticed) /* by training.json, say */
            assert_int_equal(saving_keep_directory(&t.saving, NULL), 1);
        let_go(h);
        saving_wait(&t.saving, 60);
        atomic_store(&h->pass, i + 1 == times);
        rc = saving_look(&t.saving, &e);
    }
    if (rc == OK)
        rc = outcome(&t, &e);
    assert_int_equal(rc, wanted);
    if (wanted == SAVING_ENDED) {
        assert_newest(10);
        assert_int_equal(t.saving.saved, 10);
    } else {
        assert_non_null(strstr(e.message, "replaced again and again during saving"));
        assert_int_equal(t.saving.saved, -1);
    }
    assert_int_equal(logged("made again, without the earlier checkpoints"), times);
    end(&t);
}

static void test_directory_moved(void **state)
{
    (void)state;
    replaced(1, 0, SAVING_ENDED);
}

static void test_directory_moved_and_noticed(void **state)
{
    (void)state;
    replaced(1, 1, SAVING_ENDED);
}

static void test_directory_moved_again_and_again(void **state)
{
    (void)state;
    replaced(3, 1, ERR_IO);
}

/* lenet's weights and momentum are BYTES. Said once, and only while each checkpoint needs more space. */
static void test_space(void **state)
{
    enum { BYTES = 2 * 4 * 21840 };
    static const struct {
        size_t keep;
        uint64_t space;
        int quiet, told;
    } cases[] = { { 0, 3 * BYTES + 4096, 0, 0 },
                  { 0, 3 * BYTES - 1, 0, 1 },
                  { 0, 0, 0, 1 },
                  { 0, 0, 1, 0 },
                  { 5, 0, 0, 1 },
                  { 1, 0, 0, 0 },
                  { 4, 0, 0, 1 } };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct training t;

        start(&t, NULL, &(struct saving_options){ .steps = 10, .keep = cases[i].keep, .quiet = cases[i].quiet });
        assert_int_equal(2 * 4 * network_parameter_count(t.network), BYTES);
        space = cases[i].space;
        for (int64_t step = 10; step <= 30; step += 10)
            assert_int_equal(saved_at(&t, step, NULL), SAVING_ENDED);
        space = UINT64_MAX;
        assert_int_equal(logged("left on its file system"), cases[i].told);
        assert_int_equal(logged("--keep N keeps only the newest N"), cases[i].told && !cases[i].keep);
        end(&t);
        tear_down(state);
        set_up(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_beside, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_close_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_due, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failing_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_order_of_errors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_waiting_is_told_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_copy, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_space, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_directory_moved, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_directory_moved_and_noticed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_directory_moved_again_and_again, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
