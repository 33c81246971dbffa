/* The EXAMPLE of each page of libeventlog_mpi, as in examples.c. */
#include <eventlog/eventlog_mpi.h>

#include <stdio.h>

/* eventlog_mpi_open */
static struct eventlog_mpi *open_log(MPI_Comm comm,
                                     const char *directory)
{
    struct eventlog_mpi_options options = { .deadline_seconds = 60 };
    struct eventlog_mpi *log;
    struct eventlog_error error;

    if (eventlog_mpi_open(&log, comm, directory, &options, &error)) {
        fprintf(stderr, "%s\n", error.message); /* on each rank */
        return NULL;
    }
    return log;
}

/* eventlog_mpi_scalars */
static int log_step(struct eventlog_mpi *log, int64_t step, double loss,
                    double seconds)
{
    struct eventlog_mpi_scalar scalars[] = {
        { "loss", loss, EVENTLOG_MPI_MEAN },
        { "seconds/slowest rank", seconds, EVENTLOG_MPI_MAX },
    };

    return eventlog_mpi_scalars(log, scalars, 2, step, 0, NULL);
}

/* eventlog_mpi_scalar */
static int log_images(struct eventlog_mpi *log, int64_t step,
                      double images)
{
    struct eventlog_error error;

    if (eventlog_mpi_scalar(log, "images", step, 0, images,
                            EVENTLOG_MPI_SUM, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return -1;
    }
    return 0;
}

/* eventlog_mpi_flush */
static int checkpoint_saved(struct eventlog_mpi *log)
{
    return eventlog_mpi_flush(log, NULL); /* every rank calls it */
}

/* eventlog_mpi_writer */
static void log_note(struct eventlog_mpi *log, const char *text)
{
    struct eventlog_writer *writer = eventlog_mpi_writer(log);

    if (writer) /* rank 0 */
        eventlog_writer_text(writer, "notes", 0, 0, text, NULL, NULL);
}

/* eventlog_mpi_close */
static int close_log(struct eventlog_mpi *log)
{
    struct eventlog_error error;
    int failed = eventlog_mpi_close(log, &error);

    if (failed)
        fprintf(stderr, "%s\n", error.message);
    MPI_Finalize(); /* behind it */
    return failed != 0;
}

int main(int argc, char **argv)
{
    struct eventlog_mpi *log;

    MPI_Init(&argc, &argv);
    if (argc < 2 || !(log = open_log(MPI_COMM_WORLD, argv[1])))
        return 1;
    for (int step = 0; step < 3; step++)
        if (log_step(log, step, 1.0 / (step + 1), 0.1) || log_images(log, step, 32))
            return 1;
    log_note(log, "hello");
    return checkpoint_saved(log) ? 1 : close_log(log);
}
