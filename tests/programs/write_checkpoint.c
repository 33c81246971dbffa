/*
 * write_checkpoint - writes checkpoints of a model with initial values (seed: the step), as a training would: in the
 * orders that TensorFlow's savers have, at intervals, with pauses between any two writes. For the evaluator's tests.
 * Prints for each: its step and the wall time right before its index appeared (order A: by rename).
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/program/options.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "checkpoint/directory/training_state.h"
#include "checkpoint/tensor_bundle.h"
#include "model/network.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct command {
    const char *directory, *model, *order, *tensor, *value;
    int64_t first, last, step, keep, seed;
    double interval, pause;
    int finish, no_state, averages, constant;
};

static void sleep_for(double seconds)
{
    struct timespec t = { (time_t)seconds, (long)(fmod(seconds, 1) * 1e9) };

    if (seconds > 0)
        nanosleep(&t, NULL);
}

static int add(struct tensor_bundle_writer *w, const struct variable *v, const char *suffix, const real *values,
               struct error *e)
{
    char name[256];

    snprintf(name, sizeof name, "%s%s", v->name, suffix);
    return tensor_bundle_writer_add(w, name, TENSOR_FLOAT, v->rank, v->shape, values, v->count * sizeof(float), e);
}

/* The whole checkpoint under another directory: from there its files are brought in one by one. */
static int stage(const struct command *c, struct network *n, int64_t step, const char *prefix, struct error *e)
{
    struct tensor_bundle_writer *w;
    size_t count;
    const struct variable *v = network_variables(n, &count);
    int rc;

    if (!c->constant || step == c->first)
        network_initialize(n, (uint64_t)(c->seed + step));
    if (c->value && !strcmp(c->value, "nan"))
        network_parameters(n)[0] = NAN;
    if ((rc = tensor_bundle_writer_open(&w, NULL, prefix, e)) != OK)
        return rc;
    for (size_t i = 0; i < count && rc == OK; i++) {
        const real *values = (v[i].kind == VARIABLE_WEIGHT ? network_parameters(n) : network_statistics(n)) +
                             v[i].offset;

        rc = add(w, &v[i], "", values, e);
        if (rc == OK && c->averages && v[i].kind == VARIABLE_WEIGHT)
            rc = add(w, &v[i], "/ExponentialMovingAverage", values, e);
    }
    if (rc == OK)
        rc = tensor_bundle_writer_add(w, "global_step", TENSOR_INT64, 0, NULL, &step, sizeof step, e);
    if (rc == OK)
        return tensor_bundle_writer_finish(w, e);
    tensor_bundle_writer_abandon(w);
    return rc;
}

/* Writes the bytes in two halves with a pause between, then renames to `final` unless it is the same. */
static int bring(const struct command *c, const char *from, const char *to, const char *final, double *appeared,
                 struct error *e)
{
    struct buffer bytes = BUFFER_EMPTY;
    int fd, rc = file_read(from, (size_t)1 << 30, &bytes, e);

    if (rc != OK)
        return rc;
    *appeared = clock_wall();
    if ((fd = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0666)) < 0)
        return error_system(e, "create %s", to);
    if (io_write_full(&io_real, fd, bytes.data, bytes.length / 2) < 0)
        return error_system(e, "write %s", to);
    sleep_for(c->pause);
    if (io_write_full(&io_real, fd, bytes.data + bytes.length / 2, bytes.length - bytes.length / 2) < 0)
        return error_system(e, "write %s", to);
    close(fd);
    buffer_release(&bytes);
    if (strcmp(to, final)) {
        sleep_for(c->pause);
        *appeared = clock_wall();
        if (rename(to, final) < 0)
            return error_system(e, "rename %s", final);
    }
    sleep_for(c->pause);
    return OK;
}

static int write_one(const struct command *c, struct network *n, int64_t step, double *appeared, struct error *e)
{
    char name[64], beside[PATH_MAX], staged[PATH_MAX + 64], from[PATH_MAX + 96], final[PATH_MAX], to[PATH_MAX + 64];
    char parts[PATH_MAX];
    const char *last = file_base_name(c->directory);
    int rc, b = *c->order != 'A';

    snprintf(name, sizeof name, "model.ckpt-%lld", (long long)step);
    /* Hidden, since the directory may lie in a tree that is watched. */
    snprintf(beside, sizeof beside, "%.*s.%s.staged", (int)(last - c->directory), c->directory, last);
    snprintf(parts, sizeof parts, "%s/%s_temp", c->directory, name);
    if ((rc = file_make_directories(c->directory, e)) != OK || (rc = file_make_directories(beside, e)) != OK)
        return rc;
    if (b && (rc = file_make_directories(parts, e)) != OK)
        return rc;
    snprintf(staged, sizeof staged, "%s/%s", beside, name);
    if ((rc = stage(c, n, step, staged, e)) != OK)
        return rc;

    snprintf(from, sizeof from, "%s.data-00000-of-00001", staged);
    snprintf(final, sizeof final, "%s/%s.data-00000-of-00001", c->directory, name);
    if (b)
        snprintf(to, sizeof to, "%s/part-00000-of-00001.data-00000-of-00001", parts);
    else
        snprintf(to, sizeof to, "%s.tempstate1234567890", final);
    if ((rc = bring(c, from, to, final, appeared, e)) != OK)
        return rc;
    unlink(from);
    snprintf(from, sizeof from, "%s.index", staged);
    snprintf(final, sizeof final, "%s/%s.index", c->directory, name);
    if (b)
        snprintf(to, sizeof to, "%s", final); /* in place: the index is there before it is whole */
    else
        snprintf(to, sizeof to, "%s.tempstate1234567890", final);
    if ((rc = bring(c, from, to, final, appeared, e)) != OK)
        return rc;
    unlink(from);
    if (b)
        rmdir(parts);
    rmdir(beside);
    if (c->no_state)
        return OK;
    rc = checkpoint_directory_commit(NULL, c->directory, name, (size_t)c->keep, e);
    if (rc == OK && *c->order == 'C') { /* the manager replaces the state a second time */
        sleep_for(c->pause);
        rc = checkpoint_directory_commit(NULL, c->directory, name, (size_t)c->keep, e);
    }
    return rc;
}

static int run(const struct command *c, struct error *e)
{
    struct training_state state = {
        .state = "running", .run_option = "single", .max_steps = c->last, .world_size = 1, .started = clock_wall()
    };
    const struct model *model = model_find(c->model);
    double started = clock_monotonic();
    struct network *n;
    int rc;

    if (!model)
        return error_set(e, ERR_ARG, "unknown model '%s'", c->model);
    if ((rc = network_new(&n, model, 0, e)) != OK || (rc = file_make_directories(c->directory, e)) != OK)
        return rc;
    process_self(&state.process);
    state.updated = state.started;
    if (c->finish)
        rc = training_state_write(c->directory, &state, e);
    for (int64_t step = c->first; rc == OK && step <= c->last; step += c->step) {
        double appeared = 0;

        if (step > c->first) /* in step with the clock where the writing itself is quick enough */
            sleep_for(c->constant ? started + c->interval * (double)((step - c->first) / c->step) - clock_monotonic()
                                  : c->interval);
        if ((rc = write_one(c, n, step, &appeared, e)) == OK) {
            printf("%lld %.6f\n", (long long)step, appeared);
            fflush(stdout);
        }
    }
    state.global_step = c->last;
    state.updated = clock_wall();
    strcpy(state.state, "finished");
    if (rc == OK && c->finish)
        rc = training_state_write(c->directory, &state, e);
    network_free(n);
    return rc;
}

int main(int argc, char **argv)
{
    struct command c = { .model = "lenet", .order = "A", .first = 100, .last = 100, .step = 100 };
    struct option table[] = {
        { OPTION_TEXT, .name = "directory", .value = &c.directory, .argument = "DIR", .help = "Where to." },
        { OPTION_TEXT, .name = "model", .value = &c.model, .argument = "NAME", .help = "Which model." },
        { OPTION_CHOICE, .name = "order", .value = &c.order, .argument = "X", .help = "Order of writes.",
          .choices = "A|B|C" },
        { OPTION_INT, .name = "first", .value = &c.first, .argument = "N", .help = "First step." },
        { OPTION_INT, .name = "last", .value = &c.last, .argument = "N", .help = "Last step." },
        { OPTION_INT, .name = "step", .value = &c.step, .argument = "N", .help = "Steps between." },
        { OPTION_INT, .name = "keep", .value = &c.keep, .argument = "N", .help = "Checkpoints kept; 0: all." },
        { OPTION_INT, .name = "seed", .value = &c.seed, .argument = "N", .help = "Other values for the same steps." },
        { OPTION_DOUBLE, .name = "interval", .value = &c.interval, .argument = "S", .help = "Seconds between." },
        { OPTION_DOUBLE, .name = "pause", .value = &c.pause, .argument = "S", .help = "Seconds between two writes." },
        { OPTION_TEXT, .name = "value", .value = &c.value, .argument = "nan", .help = "Put a NaN into the weights." },
        { OPTION_FLAG, .name = "finish", .value = &c.finish, .help = "Keep training.json, finished at the end." },
        { OPTION_FLAG, .name = "stateless", .value = &c.no_state, .help = "Write no state file." },
        { OPTION_FLAG, .name = "constant", .value = &c.constant,
          .help = "The same values at all steps, and intervals "
                  "from start to start: for many a second." },
        { OPTION_FLAG, .name = "averages", .value = &c.averages, .help = "Also moving averages (the same values)." },
    };
    struct options options = { .program = "write_checkpoint",
                               .usage = "--directory DIR [OPTION...]",
                               .summary = "Writes checkpoints for tests.",
                               .examples = "",
                               .table = table,
                               .count = sizeof table / sizeof *table };
    struct error e = { 0 };
    int positional, rc = options_parse(&options, argc, argv, &positional, &e);

    if (rc == OPTIONS_DONE)
        return 0;
    if (rc == OPTIONS_RUN && !c.directory)
        rc = error_set(&e, ERR_ARG, "--directory is missing");
    if (rc != OPTIONS_RUN || run(&c, &e) != OK) {
        fprintf(stderr, "write_checkpoint: %s\n", e.message);
        return 2;
    }
    return 0;
}
