/*
 * saving_speed - what saving every 10 steps costs a step of training, beside it (saving.h) and in its place.
 * usage: saving_speed MODEL BATCH STEPS ROUNDS DIRECTORY
 * MODEL: one of ours, or "wide", 100 MB of weights in four dense layers. A round is STEPS steps without saving, STEPS
 * with a checkpoint every 10 steps beside the training, and STEPS with one every 10 steps that the training waits for,
 * each from its first step to its last checkpoint, and prints the seconds a step of the three, then their seconds of
 * processor time, which a busy machine changes less; last those that the checkpoints beside the training took themselves:
 * copying the state, and the saver.
 * (Noise for images: the arithmetic does not care.)
 */
#include "base/clock.h"
#include "base/random.h"
#include "model/network.h"
#include "model/network_builder.h"
#include "tests/model/images_batch.h"
#include "trainer/saving.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EVERY = 10 };
enum way { NOT, BESIDE, HERE, WAYS };

static int wide_build(struct network_builder *b, struct error *e)
{
    static const struct {
        const char *weights, *biases;
        int outputs;
    } layers[] = { { "fc1/weights", "fc1/biases", 4096 },
                   { "fc2/weights", "fc2/biases", 4096 },
                   { "fc3/weights", "fc3/biases", 1280 },
                   { "fc4/weights", "fc4/biases", 10 } };
    const struct kernel_options kernel = { INITIAL_UNIFORM, 0.01, 0 };
    int x = network_builder_images(b);

    (void)e;
    for (int i = 0; i < 4; i++) {
        x = network_builder_dense(b, x, layers[i].weights, layers[i].outputs, &kernel);
        x = network_builder_bias(b, x, layers[i].biases, 0, i < 3 ? RELU : RELU_NONE);
    }
    network_builder_cross_entropy(b, x);
    return OK;
}

static const struct model wide = {
    .name = "wide", .height = 28, .width = 28, .channels = 1, .classes = 10, .transform = "unit", .build = wide_build
};

struct training {
    const struct model *model;
    struct network *network;
    struct optimizer *optimizer;
    struct loss_averages losses;
    struct batch batch;
    real *images, *sum;
    int32_t *labels;
    int64_t step;
    struct world *world;
    struct log log;
    int lock;
    struct saving saving;
    double copying; /* seconds of processor time */
    clockid_t saver_clock;
};

/* The processor time of the only child. */
static clockid_t clock_of_child(void)
{
    clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
    FILE *f = fopen("/proc/thread-self/children", "r");
    int pid;

    if (f && fscanf(f, "%d", &pid) == 1)
        clock_getcpuclockid(pid, &clock);
    if (f)
        fclose(f);
    return clock;
}

static int open_training(struct training *t, int count, const char *directory, struct error *e)
{
    const struct model *m = t->model;
    const struct optimizer_options how = { .kind = OPTIMIZER_MOMENTUM, .learning_rate = 1e-6, .momentum = 0.9 };
    const size_t size = (size_t)count * (size_t)m->height * (size_t)m->width * (size_t)m->channels;
    struct random r;
    int rc;

    if ((rc = world_open(&t->world, 60, e)) < 0 || (rc = network_new(&t->network, m, count, e)) < 0 ||
        (rc = optimizer_new(&t->optimizer, t->network, &how, e)) < 0)
        return rc;
    t->images = malloc(size * sizeof *t->images);
    t->labels = malloc((size_t)count * sizeof *t->labels);
    t->sum = network_exchange(t->network);
    if (!t->images || !t->labels)
        return error_memory(e, NULL, "for a batch");
    random_init(&r, 1, RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < size; i++)
        t->images[i] = (real)random_normal(&r);
    for (int i = 0; i < count; i++)
        t->labels[i] = (int32_t)random_below(&r, (uint64_t)m->classes);
    t->batch = images_batch(m, t->images, t->labels, NULL, count);
    network_initialize(t->network, 1);
    optimizer_reset(t->optimizer, 0);
    log_init(&t->log, NULL, open("/dev/null", O_WRONLY | O_CLOEXEC));
    t->lock = -1;
    t->saving = (struct saving){
        .options = { .directory = directory, .keep = 2, .steps = EVERY, .quiet = 1 },
        .optimizer = t->optimizer,
        .losses = &t->losses,
        .world = t->world,
        .log = &t->log,
        .lock = &t->lock,
    };
    if ((rc = saver_start(&t->saving.saver, NULL, e)) < 0 ||
        (rc = saver_take(t->saving.saver, t->optimizer, &t->losses, e)) < 0)
        return rc;
    t->saver_clock = clock_of_child();
    return saving_open(&t->saving, &(struct training_position){ .run_option = "single" }, -1, e);
}

static double processor_seconds(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int start(struct training *t, const struct training_position *p, struct error *e)
{
    const double begun = processor_seconds(CLOCK_THREAD_CPUTIME_ID);
    const int rc = saving_start(&t->saving, p, e);

    t->copying += processor_seconds(CLOCK_THREAD_CPUTIME_ID) - begun;
    return rc;
}

static int saved(struct training *t, struct error *e)
{
    int rc = OK;

    while (saving_busy(&t->saving) && rc == OK) {
        saving_wait(&t->saving, 60);
        rc = saving_look(&t->saving, e);
    }
    return rc < 0 ? rc : OK;
}

static int step(struct training *t, enum way way, struct error *e)
{
    struct training_position p = { .global_step = t->step, .run_option = "single" };
    struct score score;
    int rc = OK;

    if (way != NOT && t->step % EVERY == 0 && (rc = saved(t, e)) == OK)
        rc = way == BESIDE ? start(t, &p, e) : saving_save(&t->saving, &p, e);
    network_train(t->network, at_step(&t->batch, t->step), 1, NULL, &score);
    optimizer_apply(t->optimizer, t->step, t->sum, 0, network_exchange_count(t->network));
    t->step++;
    return rc < 0 ? rc : OK;
}

/* Seconds a step, by both clocks; *own: of processor time, of checkpoints. */
static int block(struct training *t, enum way way, int steps, double *seconds, double *processor, double *own,
                 struct error *e)
{
    const double begun = clock_monotonic(), spent = processor_seconds(CLOCK_PROCESS_CPUTIME_ID);
    const double its = processor_seconds(t->saver_clock);
    int rc;

    t->copying = 0;
    for (int i = 0; i < steps; i++)
        if ((rc = step(t, way, e)) < 0)
            return rc;
    if ((rc = saved(t, e)) < 0)
        return rc;
    *seconds = (clock_monotonic() - begun) / steps;
    *own = (processor_seconds(t->saver_clock) - its + t->copying) / steps;
    *processor = *own + (processor_seconds(CLOCK_PROCESS_CPUTIME_ID) - spent - t->copying) / steps;
    return OK;
}

static int rounds(struct training *t, int steps, int count, struct error *e)
{
    for (int i = -1; i < count; i++) { /* the first one only warms up */
        double seconds[WAYS], processor[WAYS], own[WAYS];
        int rc;

        for (int way = 0; way < WAYS; way++) {
            sync(); /* what an earlier block wrote is not this one's */
            if ((rc = block(t, (enum way)way, i < 0 ? EVERY : steps, &seconds[way], &processor[way], &own[way], e)) < 0)
                return rc;
        }
        if (i >= 0)
            printf("%.6f %.6f %.6f %.6f %.6f %.6f %.6f\n", seconds[NOT], seconds[BESIDE], seconds[HERE], processor[NOT],
                   processor[BESIDE], processor[HERE], own[BESIDE]);
        fflush(stdout);
    }
    return OK;
}

int main(int argc, char **argv)
{
    const int numbers = argc == 6, count = numbers ? atoi(argv[2]) : 0, steps = numbers ? atoi(argv[3]) : 0;
    struct training t;
    struct error e = { 0 };
    int rc;

    memset(&t, 0, sizeof t);
    t.model = !numbers ? NULL : strcmp(argv[1], wide.name) == 0 ? &wide : model_find(argv[1]);
    if (!t.model || count < 1 || steps < 1 || steps % EVERY) {
        fprintf(stderr, "usage: saving_speed MODEL BATCH STEPS ROUNDS DIRECTORY\n");
        return 2;
    }
    if ((rc = open_training(&t, count, argv[5], &e)) == OK && (rc = rounds(&t, steps, atoi(argv[4]), &e)) == OK)
        saving_close(&t.saving, 1);
    if (rc < 0)
        fprintf(stderr, "saving_speed: %s\n", e.message);
    free(t.images);
    free(t.labels);
    optimizer_free(t.optimizer);
    network_free(t.network);
    world_close(t.world);
    return rc < 0;
}
