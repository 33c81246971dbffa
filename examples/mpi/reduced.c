/*
 * reduced DIRECTORY - a job of several ranks leaves one curve for all, not one for each.
 * cc -o reduced reduced.c $(pkg-config --cflags --libs eventlog_mpi); mpirun -n 4 ./reduced logs
 */
#include <eventlog/eventlog_mpi.h>

#include <stdio.h>

static int train(struct eventlog_mpi *log, int rank, struct eventlog_error *error)
{
    int rc = EVENTLOG_OK;

    for (int step = 0; step < 100 && rc == EVENTLOG_OK; step++) {
        double loss = 1.0 / (1 + step) + 0.01 * rank, seconds = 0.1 + 0.02 * rank; /* the work would be here */
        const struct eventlog_mpi_scalar points[] = {
            /* the same tags and operations on every rank, in the same order */
            { "loss", loss, EVENTLOG_MPI_MEAN },
            { "seconds/slowest rank", seconds, EVENTLOG_MPI_MAX },
            { "images", 32, EVENTLOG_MPI_SUM },
        };

        rc = eventlog_mpi_scalars(log, points, sizeof points / sizeof *points, step, 0, error);
        if (rc == EVENTLOG_OK && rank == 0 && step == 0) /* other kinds of values: by the writer of rank 0 */
            rc = eventlog_writer_text(eventlog_mpi_writer(log), "notes", 0, 0, "loss is the mean over ranks", NULL,
                                      error);
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct eventlog_mpi *log = NULL;
    struct eventlog_error error;
    int rank, rc;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    rc = eventlog_mpi_open(&log, MPI_COMM_WORLD, argc > 1 ? argv[1] : "logs", NULL, &error);
    if (rc == EVENTLOG_OK && (rc = train(log, rank, &error)) == EVENTLOG_OK)
        rc = eventlog_mpi_close(log, &error);
    else
        eventlog_mpi_close(log, NULL);
    if (rc != EVENTLOG_OK && rank == 0) /* all ranks have the same sentence */
        fprintf(stderr, "reduced: %s\n", error.message);
    MPI_Finalize();
    return rc != EVENTLOG_OK;
}
