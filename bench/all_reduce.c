/*
 * all_reduce - milliseconds of an all-reduce of floats: ours in shared memory, and MPI_Allreduce, in turns.
 * usage: mpirun -n RANKS all_reduce ROUNDS COUNT...     prints a line a COUNT: COUNT OURS MPI, medians on rank 0
 */
#include "base/clock.h"
#include "trainer/collective/transport.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUCKET = 61440 / sizeof(real), TIMES_MAX = 1000 };

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *times, int count)
{
    qsort(times, (size_t)count, sizeof *times, compare_doubles);
    return times[count / 2] * 1e3;
}

static void fill(real *vector, size_t count, int rank)
{
    for (size_t i = 0; i < count; i++)
        vector[i] = (real)(i % 100) + (real)rank;
}

static double ours(struct transport *t, int64_t step)
{
    const struct tally_part part = { .flags = 0 };
    struct tally_part *parts = calloc((size_t)t->plan.ranks, sizeof *parts);
    struct error e = { 0 };
    double begun;

    fill(t->vectors[0], t->plan.total, t->plan.rank);
    MPI_Barrier(MPI_COMM_WORLD);
    begun = clock_monotonic();
    t->operations->begin(t, step);
    if (t->operations->complete(t, &part, parts, &e) < 0) {
        fprintf(stderr, "all_reduce: %s\n", e.message);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    begun = clock_monotonic() - begun;
    free(parts);
    return begun;
}

static double theirs(real *vector, size_t count, int rank)
{
    double begun;

    fill(vector, count, rank);
    MPI_Barrier(MPI_COMM_WORLD);
    begun = clock_monotonic();
    MPI_Allreduce(MPI_IN_PLACE, vector, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return clock_monotonic() - begun;
}

static void measure(struct world *w, size_t count, int rounds)
{
    static double times[2][TIMES_MAX];
    struct reduction reduction;
    const struct transport_plan plan = { .world = w,
                                         .total = count,
                                         .bucket = BUCKET,
                                         .buckets = bucket_count(count, BUCKET),
                                         .ranks = world_size(w),
                                         .rank = world_rank(w),
                                         .reduction = &reduction };
    real *vector = reals_new(count);
    struct transport *t = NULL;
    struct error e = { 0 };

    if (!vector || reduction_init(&reduction, plan.ranks, 0, &e) < 0 || shared_window_new(&t, &plan, &e) < 0) {
        fprintf(stderr, "all_reduce: %s\n", vector ? e.message : "no memory");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    ours(t, 0); /* touches all pages */
    theirs(vector, count, plan.rank);
    for (int i = 0; i < rounds; i++) {
        times[0][i] = ours(t, i + 1);
        times[1][i] = theirs(vector, count, plan.rank);
        if (vector[count / 2] != t->result[count / 2])
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (plan.rank == 0)
        printf("%zu %.4f %.4f\n", count, median(times[0], rounds), median(times[1], rounds));
    fflush(stdout);
    t->operations->free(t);
    reduction_release(&reduction);
    free(vector);
}

int main(int argc, char **argv)
{
    const int rounds = argc > 2 ? atoi(argv[1]) : 0;
    struct error e = { 0 };
    struct world *w;

    if (rounds < 1 || rounds > TIMES_MAX || world_open(&w, 60, &e) < 0 || world_size(w) < 2) {
        fprintf(stderr, "usage: mpirun -n RANKS all_reduce ROUNDS COUNT... %s\n", e.message);
        return 2;
    }
    for (int i = 2; i < argc; i++)
        measure(w, strtoul(argv[i], NULL, 10), rounds);
    world_close(w);
    return 0;
}
