/*
 * hparams DIRECTORY - an experiment: DIRECTORY says what was varied, DIRECTORY/<rate>-<optimizer> is a session each.
 * cc -o hparams hparams.c $(pkg-config --cflags --libs eventlog)
 */
#include <eventlog/eventlog.h>

#include <stdio.h>

static const double rates[] = { 0.1, 0.01 };
static const char *const optimizers[] = { "sgd", "adam" };

static int write_experiment(const char *directory, struct eventlog_error *error)
{
    const struct eventlog_hparam names[] = { { .type = EVENTLOG_HPARAM_STRING, .text = optimizers[0] },
                                             { .type = EVENTLOG_HPARAM_STRING, .text = optimizers[1] } };
    const struct eventlog_hparam_info settings[] = {
        { .name = "learning_rate", .type = EVENTLOG_HPARAM_NUMBER, .has_interval = 1, .min = 0.001, .max = 1 },
        { .name = "optimizer", .type = EVENTLOG_HPARAM_STRING, .values = names, .value_count = 2 },
    };
    const struct eventlog_metric_info metrics[] = { { .tag = "accuracy", .display_name = "accuracy, the last one" } };
    const struct eventlog_experiment experiment = {
        .name = "rates", .hparams = settings, .hparam_count = 2, .metrics = metrics, .metric_count = 1
    };
    struct eventlog_writer *writer;
    int rc = eventlog_writer_open(&writer, directory, NULL, error);

    if (rc != EVENTLOG_OK)
        return rc;
    rc = eventlog_writer_experiment(writer, 0, &experiment, error);
    if (rc != EVENTLOG_OK)
        eventlog_writer_close(writer, NULL);
    else
        rc = eventlog_writer_close(writer, error);
    return rc;
}

static int write_session(const char *directory, double rate, const char *optimizer, struct eventlog_error *error)
{
    const struct eventlog_hparam settings[] = {
        { .name = "learning_rate", .type = EVENTLOG_HPARAM_NUMBER, .number = rate },
        { .name = "optimizer", .type = EVENTLOG_HPARAM_STRING, .text = optimizer },
    };
    struct eventlog_writer *writer;
    char run[4096];
    int rc;

    snprintf(run, sizeof run, "%s/%g-%s", directory, rate, optimizer);
    if ((rc = eventlog_writer_open(&writer, run, NULL, error)) != EVENTLOG_OK)
        return rc;
    rc = eventlog_writer_session_start(writer, 0, settings, 2, NULL, error);
    for (int step = 0; step < 10 && rc == EVENTLOG_OK; step++)
        rc = eventlog_writer_scalar(writer, "accuracy", step, 0, 0.5f + (float)(rate * step / 10), error);
    if (rc == EVENTLOG_OK)
        rc = eventlog_writer_session_end(writer, 0, EVENTLOG_SESSION_SUCCESS, error);
    if (rc != EVENTLOG_OK)
        eventlog_writer_close(writer, NULL);
    else
        rc = eventlog_writer_close(writer, error);
    return rc;
}

int main(int argc, char **argv)
{
    struct eventlog_error error;
    int rc;

    if (argc != 2) {
        fprintf(stderr, "usage: hparams DIRECTORY\n");
        return 2;
    }
    rc = write_experiment(argv[1], &error);
    for (int i = 0; i < 4 && rc == EVENTLOG_OK; i++)
        rc = write_session(argv[1], rates[i / 2], optimizers[i % 2], &error);
    if (rc != EVENTLOG_OK)
        fprintf(stderr, "hparams: %s\n", error.message);
    return rc != EVENTLOG_OK;
}
