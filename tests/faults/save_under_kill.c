/*
 * save_under_kill DIRECTORY STEP CALL: saves a checkpoint of lenet at STEP (weights from seed STEP) as the trainer does,
 * and is killed (SIGKILL) just before system call number CALL of the saving, which it then makes itself; CALL 0: is not.
 * Exit 0: saved, and the number of calls it took is printed.
 * save_under_kill DIRECTORY: loads the newest checkpoint as a resume does, compares the weights with those of its step,
 * prints the step.
 */
#include "checkpoint/directory/checkpoint_directory.h"
#include "tests/failing_io.h"
#include "trainer/saving.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct loss_averages none; /* lenet has none */

static int save(const char *directory, struct optimizer *o, int64_t step, long call, struct error *e)
{
    struct io_failing failing = { .fail_at = call, .kill = 1, .short_writes = 1 };
    const struct io io = io_failing_table(&failing);
    const struct training_position p = { .global_step = step, .seed = 1, .run_option = "single", .shard = "records" };
    struct log log;
    int lock = -1, rc;
    struct saving s = {
        .options = { .directory = directory, .keep = 2, .quiet = 1 },
        .optimizer = o,
        .losses = &none,
        .log = &log,
        .lock = &lock,
        .io = &io,
    };

    log_init(&log, NULL, 2);
    if ((rc = world_open(&s.world, 60, e)) < 0)
        return rc;
    if ((rc = saving_open(&s, &p, -1, e)) < 0)
        return rc;
    network_initialize(optimizer_network(o), (uint64_t)step);
    rc = saving_start(&s, &p, e);
    network_initialize(optimizer_network(o), (uint64_t)step + 1); /* goes on */
    while (rc == OK && saving_busy(&s)) {
        saving_wait(&s, 60);
        rc = saving_look(&s, e);
    }
    saving_close(&s, 1);
    world_close(s.world);
    if (rc > 0)
        printf("%ld\n", failing.calls);
    return rc;
}

static int load(const char *directory, struct network *n, struct optimizer *o, struct error *e)
{
    struct training_position p = { 0 };
    size_t count = network_parameter_count(n);
    real *was = malloc(count * sizeof *was);
    char name[256], prefix[4096];
    int rc = checkpoint_directory_newest(directory, name, sizeof name, e);

    if (rc == 0)
        rc = error_set(e, ERR_IO, "%s: no checkpoint", directory);
    if (rc > 0) {
        snprintf(prefix, sizeof prefix, "%s/%s", directory, name);
        rc = training_checkpoint_load(prefix, o, &none, &p, e);
    }
    if (rc >= 0 && was) {
        memcpy(was, network_parameters(n), count * sizeof *was);
        network_initialize(n, (uint64_t)p.global_step);
        if (memcmp(was, network_parameters(n), count * sizeof *was) != 0)
            rc = error_set(e, ERR_CORRUPT, "%s does not hold the weights of its step", prefix);
        else
            printf("%" PRId64 "\n", p.global_step);
    }
    free(was);
    return rc;
}

int main(int argc, char **argv)
{
    const struct optimizer_options options = { .kind = OPTIMIZER_MOMENTUM, .learning_rate = 0.1, .momentum = 0.9 };
    struct error e = { 0 };
    struct optimizer *o = NULL;
    struct network *n = NULL;
    int rc;

    if (argc != 2 && argc != 4)
        return 2;
    rc = network_new(&n, model_find("lenet"), 0, &e);
    if (rc == OK)
        rc = optimizer_new(&o, n, &options, &e);
    if (rc == OK)
        rc = argc == 2 ? load(argv[1], n, o, &e) : save(argv[1], o, atoll(argv[2]), atol(argv[3]), &e);
    if (rc < 0)
        fprintf(stderr, "%s\n", e.message);
    optimizer_free(o);
    network_free(n);
    return rc < 0;
}
