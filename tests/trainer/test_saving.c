/* Checkpoints written beside a training: what is saved, in what order, and what a full disk, no memory, a moved directory
 * and an early end make of it. */
#include "trainer/saving.h"

#include "checkpoint/directory/checkpoint_directory.h"
#include "checkpoint/tensor_bundle.h"
#include "tests/check.h"
#include "tests/failing_allocation.h"
#include "tests/failing_io.h"
#include "trainer/training_lock.h"

#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static char top[64], directory[80], log_path[80];
static atomic_int threads_fail;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context)
{
    return atomic_load(&threads_fail) ? EAGAIN : __real_pthread_create(thread, attributes, run, context);
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

/* A disk that stops in every fsync until it is told to go on: the writing thread is then where the test wants it. */
struct held {
    sem_t reached, go;
    atomic_int pass; /* 1: it does not stop */
};

static void hold(struct held *h)
{
    if (atomic_load(&h->pass))
        return;
    sem_post(&h->reached);
    while (sem_wait(&h->go) < 0)
        ;
}

static int held_fsync(void *context, int fd)
{
    hold(context);
    return fsync(fd);
}

/* The same before anything is read of what is to be saved. */
static int held_open(void *context, const char *path, int flags, mode_t mode)
{
    hold(context);
    return open(path, flags, mode);
}

static struct io held_table(struct held *h)
{
    struct io io = io_real;

    sem_init(&h->reached, 0, 0);
    sem_init(&h->go, 0, 0);
    atomic_init(&h->pass, 0);
    io.fsync = held_fsync;
    io.context = h;
    return io;
}

static void reached(struct held *h)
{
    while (sem_wait(&h->reached) < 0)
        ;
}

static void let_go(struct held *h)
{
    atomic_store(&h->pass, 1);
    sem_post(&h->go);
}

struct training {
    struct network *network;
    struct optimizer *optimizer;
    struct loss_averages losses;
    struct world *world;
    struct log log;
    int lock;
    struct saving saving;
};

/* The weights of a step are a function of it, so a checkpoint shows whether it holds those of its own. */
static void train_to(struct training *t, int64_t step)
{
    network_initialize(t->network, (uint64_t)step + 1);
    optimizer_reset(t->optimizer, step);
}

static void start(struct training *t, const struct io *io, const struct saving_options *options)
{
    const struct optimizer_options how = { .kind = OPTIMIZER_MOMENTUM, .learning_rate = 0.1, .momentum = 0.9 };

    memset(t, 0, sizeof *t);
    assert_int_equal(network_new(&t->network, model_find("lenet"), 0, NULL), OK);
    assert_int_equal(optimizer_new(&t->optimizer, t->network, &how, NULL), OK);
    assert_int_equal(world_open(&t->world, 60, NULL), OK);
    assert_int_equal(training_lock_take(directory, 0, &t->lock, NULL), OK);
    log_init(&t->log, NULL, open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    t->saving = (struct saving){
        .options = *options,
        .optimizer = t->optimizer,
        .losses = &t->losses,
        .world = t->world,
        .log = &t->log,
        .lock = &t->lock,
        .io = io,
    };
    t->saving.options.directory = directory;
    saving_open(&t->saving, 0, -1);
}

static void end(struct training *t)
{
    saving_close(&t->saving);
    close(t->log.fd);
    if (t->lock >= 0)
        close(t->lock);
    world_close(t->world);
    optimizer_free(t->optimizer);
    network_free(t->network);
}

static int save_at(struct training *t, int64_t step, struct error *e)
{
    const struct training_position p = { .global_step = step, .seed = 1, .run_option = "single" };

    train_to(t, step);
    return saving_start(&t->saving, &p, e);
}

/* The outcome of the checkpoint that is being written. */
static int outcome(struct training *t, struct error *e)
{
    int rc = OK;

    while (saving_busy(&t->saving) && rc == OK) {
        saving_wait(&t->saving, 60);
        rc = saving_look(&t->saving, e);
    }
    return rc;
}

static int saved_at(struct training *t, int64_t step, struct error *e)
{
    const int rc = save_at(t, step, e);

    return rc == OK ? outcome(t, e) : rc;
}

/* The newest checkpoint is whole, is of `step`, and has its weights. */
static void assert_newest(int64_t step)
{
    const struct optimizer_options how = { .kind = OPTIMIZER_MOMENTUM, .learning_rate = 0.1, .momentum = 0.9 };
    struct training_position p = { 0 };
    struct loss_averages none = { 0 };
    struct optimizer *o;
    struct network *n, *then;
    char name[64], prefix[160];
    struct error e = { 0 };

    assert_int_equal(checkpoint_directory_newest(directory, name, sizeof name, &e), 1);
    snprintf(prefix, sizeof prefix, "%s/%s", directory, name);
    assert_int_equal(network_new(&n, model_find("lenet"), 0, NULL), OK);
    assert_int_equal(network_new(&then, model_find("lenet"), 0, NULL), OK);
    network_initialize(then, (uint64_t)step + 1);
    assert_int_equal(optimizer_new(&o, n, &how, NULL), OK);
    assert_int_equal(training_checkpoint_load(prefix, o, &none, &p, &e), CHECKPOINT_EXACT);
    assert_int_equal(p.global_step, step);
    assert_memory_equal(network_parameters(n), network_parameters(then), network_parameter_count(n) * sizeof(real));
    optimizer_free(o);
    network_free(n);
    network_free(then);
}

/* How often the log has this text. */
static int logged(const char *text)
{
    static char all[1 << 16];
    FILE *f = fopen(log_path, "r");
    int count = 0;

    assert_non_null(f);
    all[fread(all, 1, sizeof all - 1, f)] = 0;
    fclose(f);
    for (const char *at = all; (at = strstr(at, text)); at += strlen(text))
        count++;
    return count;
}

static void test_beside(void **state)
{
    struct held h;
    struct io io = held_table(&h);
    struct error e = { 0 };
    struct training t;

    (void)state;
    io.open = held_open;
    start(&t, &io, &(struct saving_options){ .steps = 10 });
    assert_int_equal(save_at(&t, 10, &e), OK);
    reached(&h);
    assert_int_equal(logged("Saving checkpoints for 10 into "), 1); /* at the beginning */
    train_to(&t, 15);                                               /* goes on while the thread writes */
    saving_wait(&t.saving, 0.001);
    assert_true(saving_busy(&t.saving));
    assert_int_equal(saving_look(&t.saving, &e), OK);
    assert_int_equal(t.saving.saved, -1);
    assert_int_equal(t.saving.tried, 10);
    let_go(&h);
    assert_int_equal(outcome(&t, &e), SAVING_ENDED);
    assert_false(saving_busy(&t.saving));
    assert_int_equal(saving_look(&t.saving, &e), OK);
    assert_int_equal(t.saving.saved, 10);
    assert_newest(10);
    end(&t);
}

static void test_close_waits(void **state)
{
    struct held h;
    const struct io io = held_table(&h);
    struct training t;

    (void)state;
    start(&t, &io, &(struct saving_options){ .steps = 10 });
    assert_int_equal(save_at(&t, 10, NULL), OK);
    reached(&h);
    let_go(&h);
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
    struct io_failing failing = { 0 };
    const struct io io = io_failing_table(&failing);
    struct error e = { 0 };
    struct training t;
    int64_t step = 10, saved = 10;
    long count;
    int failed = 0;

    (void)state;
    start(&t, &io, &(struct saving_options){ .steps = 10, .keep = 2 });
    assert_int_equal(saved_at(&t, 1, &e), SAVING_ENDED);
    assert_int_equal(saved_at(&t, 2, &e), SAVING_ENDED);
    failing.calls = 0;
    assert_int_equal(saved_at(&t, step, &e), SAVING_ENDED);
    count = failing.calls;
    assert_true(count > 10);
    for (long n = 1; n <= count; n++) {
        int rc;

        failing = (struct io_failing){ .fail_at = n, .error_number = ENOSPC, .short_writes = 1 };
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
        failing = (struct io_failing){ 0 };
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
    struct io_failing failing = { .fail_at = 1, .stay_failed = 1, .error_number = ENOSPC };
    const struct io io = io_failing_table(&failing);
    struct training t;

    (void)state;
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

/* Each allocation fails in turn. Without a copy or a thread, the training waits for the checkpoint. */
static void test_no_memory(void **state)
{
    struct training t;
    int here = 0;

    (void)state;
    for (long n = 1;; n++) {
        struct error e = { 0 };
        int rc;

        start(&t, NULL, &(struct saving_options){ .steps = 10, .keep = 2 });
        train_to(&t, n);
        atomic_store(&calls, 0);
        atomic_store(&fail_at, n);
        rc = save_at(&t, n, &e);
        here += rc == SAVING_ENDED;
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
    assert_int_equal(here, 2); /* two allocations are for the copy */
    assert_int_equal(logged("training waits for each checkpoint"), 2);
}

static void test_no_thread(void **state)
{
    struct training t;

    (void)state;
    start(&t, NULL, &(struct saving_options){ .steps = 10 });
    atomic_store(&threads_fail, 1);
    assert_int_equal(save_at(&t, 10, NULL), SAVING_ENDED);
    assert_int_equal(save_at(&t, 20, NULL), SAVING_ENDED);
    assert_newest(20);
    atomic_store(&threads_fail, 0);
    assert_int_equal(logged("no thread can be started to save checkpoints; training waits for each"), 1);
    assert_int_equal(save_at(&t, 30, NULL), OK);
    assert_int_equal(outcome(&t, NULL), SAVING_ENDED);
    end(&t);
}

/* The directory is replaced while a checkpoint is written; how often, and by whom it is noticed first. */
static void replaced(int times, int noticed, int wanted)
{
    struct held h;
    const struct io io = held_table(&h);
    struct error e = { 0 };
    struct training t;
    int rc = OK;

    start(&t, &io, &(struct saving_options){ .steps = 10 });
    assert_int_equal(save_at(&t, 10, &e), OK);
    for (int i = 0; i < times; i++) {
        char aside[100];

        reached(&h);
        snprintf(aside, sizeof aside, "%s/aside-%d", top, i);
        assert_int_equal(rename(directory, aside), 0);
        if (noticed) /* by training.json, say */
            assert_int_equal(saving_keep_directory(&t.saving, NULL), 1);
        let_go(&h);
        saving_wait(&t.saving, 60);
        atomic_store(&h.pass, i + 1 == times);
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

static int set_up(void **state)
{
    (void)state;
    snprintf(top, sizeof top, "/tmp/saving-XXXXXX");
    if (!mkdtemp(top))
        return -1;
    snprintf(directory, sizeof directory, "%s/ckpt", top);
    snprintf(log_path, sizeof log_path, "%s/log", top);
    return mkdir(directory, 0777);
}

static int tear_down(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    return system(command);
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
        cmocka_unit_test_setup_teardown(test_no_thread, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_space, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_directory_moved, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_directory_moved_and_noticed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_directory_moved_again_and_again, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
