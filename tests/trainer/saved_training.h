/* saved_training.h - a training that saves, with and without a saver, on disks that stop or fail, for the tests of
 * that. */
#ifndef TESTS_TRAINER_SAVED_TRAINING_H
#define TESTS_TRAINER_SAVED_TRAINING_H

#include "checkpoint/directory/checkpoint_directory.h"
#include "checkpoint/tensor_bundle.h"
#include "tests/check.h"
#include "tests/failing_io.h"
#include "trainer/saving.h"
#include "trainer/training_lock.h"

#include <fcntl.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[64], directory[80], log_path[80];

/* Memory that the saver, which is another process, sees as well. */
static inline void *shared(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(at != MAP_FAILED);
    return at;
}

/* A disk that stops in every fsync until it is told to go on: the saver is then where the test wants it. */
struct held {
    sem_t reached, go;
    atomic_int pass; /* 1: it does not stop */
};

static inline void hold(struct held *h)
{
    if (atomic_load(&h->pass))
        return;
    sem_post(&h->reached);
    while (sem_wait(&h->go) < 0)
        ;
}

static inline int held_fsync(void *context, int fd)
{
    hold(context);
    return fsync(fd);
}

/* The same before anything is read of what is to be saved. */
static inline int held_open(void *context, const char *path, int flags, mode_t mode)
{
    hold(context);
    return open(path, flags, mode);
}

static inline struct io held_table(struct held *h)
{
    struct io io = io_real;

    sem_init(&h->reached, 1, 0);
    sem_init(&h->go, 1, 0);
    atomic_init(&h->pass, 0);
    io.fsync = held_fsync;
    io.context = h;
    return io;
}

static inline void reached(struct held *h)
{
    while (sem_wait(&h->reached) < 0)
        ;
}

static inline void let_go(struct held *h)
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
    struct saver *saver;
    struct saving saving;
};

/* The weights of a step are a function of it, so a checkpoint shows whether it holds those of its own. */
static inline void train_to(struct training *t, int64_t step)
{
    network_initialize(t->network, (uint64_t)step + 1);
    optimizer_reset(t->optimizer, step);
}

static int alone; /* 1: without a saver */

static inline void start(struct training *t, const struct io *io, const struct saving_options *options)
{
    const struct optimizer_options how = { .kind = OPTIMIZER_MOMENTUM, .learning_rate = 0.1, .momentum = 0.9 };

    memset(t, 0, sizeof *t);
    assert_int_equal(network_new(&t->network, model_find("lenet"), 0, NULL), OK);
    assert_int_equal(optimizer_new(&t->optimizer, t->network, &how, NULL), OK);
    assert_int_equal(world_open(&t->world, 60, NULL), OK);
    assert_int_equal(training_lock_take(directory, 0, &t->lock, NULL), OK);
    log_init(&t->log, NULL, open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    if (!alone) {
        assert_int_equal(saver_start(&t->saver, io, NULL), OK);
        assert_int_equal(saver_take(t->saver, t->optimizer, &t->losses, NULL), OK);
    }
    t->saving = (struct saving){
        .options = *options,
        .optimizer = t->optimizer,
        .losses = &t->losses,
        .world = t->world,
        .log = &t->log,
        .lock = &t->lock,
        .saver = t->saver,
        .io = io,
    };
    t->saving.options.directory = directory;
    assert_int_equal(
        saving_open(&t->saving, &(struct training_position){ .seed = 1, .run_option = "single" }, -1, NULL), OK);
}

static inline void end(struct training *t)
{
    saving_close(&t->saving, 1);
    close(t->log.fd);
    if (t->lock >= 0)
        close(t->lock);
    world_close(t->world);
    optimizer_free(t->optimizer);
    network_free(t->network);
    saver_free(t->saver);
}

static inline int save_at(struct training *t, int64_t step, struct error *e)
{
    const struct training_position p = { .global_step = step, .seed = 1, .run_option = "single" };

    train_to(t, step);
    return saving_start(&t->saving, &p, e);
}

/* The outcome of the checkpoint that is being written. */
static inline int outcome(struct training *t, struct error *e)
{
    int rc = OK;

    while (saving_busy(&t->saving) && rc == OK) {
        saving_wait(&t->saving, 60);
        rc = saving_look(&t->saving, e);
    }
    return rc;
}

static inline int saved_at(struct training *t, int64_t step, struct error *e)
{
    const int rc = save_at(t, step, e);

    return rc == OK ? outcome(t, e) : rc;
}

/* The newest checkpoint is whole, is of `step`, and has its weights. */
static inline void assert_newest(int64_t step)
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
static inline int logged(const char *text)
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

static inline int set_up(void **state)
{
    (void)state;
    snprintf(top, sizeof top, "/tmp/saving-XXXXXX");
    if (!mkdtemp(top))
        return -1;
    snprintf(directory, sizeof directory, "%s/ckpt", top);
    snprintf(log_path, sizeof log_path, "%s/log", top);
    return mkdir(directory, 0777);
}

static inline int tear_down(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    return system(command);
}

#endif
