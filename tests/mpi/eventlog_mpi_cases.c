/*
 * eventlog_mpi_cases CASE DIRECTORY SAID - what a program of several ranks does with eventlog_mpi.h, right and wrong.
 * Every rank appends a line "WHAT<tab>CODE<tab>SENTENCE" to the file SAID<rank> for each call that is looked at: on the
 * standard output that mpirun passes on, lines of several ranks may mix.
 */
#include "eventlog_mpi/eventlog_mpi.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
    int rank, size;
    const char *directory, *said;
    struct eventlog_mpi *log;
};

static void tell(const struct job *j, const char *what, int code, const struct eventlog_error *e)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof path, "%s%d", j->said, j->rank);
    if (!(file = fopen(path, "a")))
        exit(1);
    fprintf(file, "%s\t%d\t%s\n", what, code, code ? e->message : "");
    fclose(file);
}

static void open_log(struct job *j, const struct eventlog_mpi_options *options)
{
    struct eventlog_error e;
    int rc = eventlog_mpi_open(&j->log, MPI_COMM_WORLD, j->directory, options, &e);

    tell(j, "open", rc, &e);
}

static void close_log(struct job *j)
{
    struct eventlog_error e;
    int rc = eventlog_mpi_close(j->log, &e);

    tell(j, "close", rc, &e);
}

static void one(struct job *j, const char *what, const char *tag, int64_t step, double value,
                enum eventlog_mpi_operation operation)
{
    struct eventlog_error e;
    int rc = eventlog_mpi_scalar(j->log, tag, step, 0, value, operation, &e);

    tell(j, what, rc, &e);
}

/* Ten steps of all operations, one rank's NaN, and more scalars in a call than fit into one packet. */
static void reduce(struct job *j)
{
    enum { MANY = 5000 };
    static const double orders[] = { 1, 1e17, -1e17, 1 }; /* another order of adding has another sum */
    struct eventlog_mpi_scalar *many = calloc(MANY, sizeof *many);
    char(*tags)[24] = calloc(MANY, sizeof *tags);
    struct eventlog_error e;

    if (!many || !tags)
        exit(1);
    for (int64_t step = 0; step < 10; step++) {
        double v = (double)(j->rank + 1) * (double)(step + 1);
        const struct eventlog_mpi_scalar all[] = {
            { "mean", v, EVENTLOG_MPI_MEAN },
            { "sum", v, EVENTLOG_MPI_SUM },
            { "min", v, EVENTLOG_MPI_MIN },
            { "max", -v, EVENTLOG_MPI_MAX },
            { "nan", j->rank == j->size - 1 ? NAN : v, EVENTLOG_MPI_MIN },
            { "order", orders[j->rank % 4], EVENTLOG_MPI_SUM },
        };
        int rc = eventlog_mpi_scalars(j->log, all, 6, step, 1700000000.0 + (double)step + j->rank, &e);

        if (rc != EVENTLOG_OK)
            tell(j, "scalars", rc, &e);
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(tags[i], sizeof tags[i], "many/%d", i);
        many[i] = (struct eventlog_mpi_scalar){ tags[i], j->rank + i, EVENTLOG_MPI_SUM };
    }
    tell(j, "many", eventlog_mpi_scalars(j->log, many, MANY, 0, 0, &e), &e);
    tell(j, "flush", eventlog_mpi_flush(j->log, &e), &e);
    free(many);
    free(tags);
}

/* The last rank does something else than the others, again and again; what fits goes on working between. */
static void differ(struct job *j)
{
    struct eventlog_mpi_scalar two[] = { { "a", 1, EVENTLOG_MPI_SUM }, { "b", 2, EVENTLOG_MPI_SUM } };
    struct eventlog_error e;
    int last = j->rank == j->size - 1;

    one(j, "tag", last ? "other" : "loss", 0, 1, EVENTLOG_MPI_MEAN);
    one(j, "fine", "loss", 1, 1, EVENTLOG_MPI_SUM);
    one(j, "step", "loss", last ? 3 : 2, 1, EVENTLOG_MPI_MEAN);
    one(j, "operation", "loss", 3, 1, last ? EVENTLOG_MPI_MIN : EVENTLOG_MPI_MEAN);
    tell(j, "count", eventlog_mpi_scalars(j->log, two, last ? 1 : 2, 4, 0, &e), &e);
    two[1].tag = last ? "c" : "b";
    tell(j, "second", eventlog_mpi_scalars(j->log, two, 2, 5, 0, &e), &e);
    if (last)
        tell(j, "function", eventlog_mpi_flush(j->log, &e), &e);
    else
        one(j, "function", "loss", 6, 1, EVENTLOG_MPI_MEAN);
    one(j, "no tag", last ? NULL : "loss", 7, 1, EVENTLOG_MPI_MEAN);
    tell(j, "none", eventlog_mpi_scalars(j->log, two, last ? 0 : 2, 8, 0, &e), &e);
    one(j, "no operation", "loss", 9, 1, last ? (enum eventlog_mpi_operation)7 : EVENTLOG_MPI_MEAN);
    one(j, "not UTF-8", "lo\xff", 10, 1, EVENTLOG_MPI_MEAN);
    one(j, "fine", "loss", 11, 1, EVENTLOG_MPI_SUM);
}

/* The last rank does not come; the others must not wait for ever, and are left with closing. */
static void miss(struct job *j)
{
    const struct eventlog_mpi_options options = { .deadline_seconds = 0.2 };

    open_log(j, &options);
    one(j, "fine", "loss", 0, 1, EVENTLOG_MPI_SUM);
    if (j->rank < j->size - 1) {
        one(j, "missed", "loss", 1, 1, EVENTLOG_MPI_SUM);
        one(j, "after", "loss", 2, 1, EVENTLOG_MPI_SUM);
        close_log(j);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* there is no way to finalize with a collective open */
    _exit(0);
}

int main(int argc, char **argv)
{
    struct job j = { 0, 0, argc > 2 ? argv[2] : "", argc > 3 ? argv[3] : "said", NULL };
    struct eventlog_mpi_options options = { .runs = EVENTLOG_MPI_REDUCED };
    const char *name = argc > 1 ? argv[1] : "";

    if (!strcmp(name, "early"))
        open_log(&j, NULL);
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS || MPI_Comm_rank(MPI_COMM_WORLD, &j.rank) != MPI_SUCCESS ||
        MPI_Comm_size(MPI_COMM_WORLD, &j.size) != MPI_SUCCESS)
        return 1;
    if (!strcmp(name, "miss"))
        miss(&j);
    if (!strcmp(name, "ranks") || (!strcmp(name, "mixed") && j.rank))
        options.runs = EVENTLOG_MPI_RUN_PER_RANK;
    if (strcmp(name, "early") != 0)
        open_log(&j, &options);
    if (j.log && !strcmp(name, "reduce"))
        reduce(&j);
    if (j.log && !strcmp(name, "differ"))
        differ(&j);
    if (j.log && !strcmp(name, "ranks"))
        for (int step = 0; step <= j.rank; step++) /* each as often as it likes */
            one(&j, "point", "loss", step, j.rank * 10 + step, EVENTLOG_MPI_MEAN);
    if (j.log && !strcmp(name, "late")) {
        one(&j, "fine", "loss", 0, 1, EVENTLOG_MPI_SUM);
        MPI_Finalize();
        close_log(&j);
        return 0;
    }
    close_log(&j);
    MPI_Finalize();
    return 0;
}
