/* What one core of this machine does at most, for the roofs in the table of `make bench`. Prints four numbers, each the
 * best of a few times by processor time: 10^9 operations a second of products of matrices as training has them, 10^9 bytes
 * a second copied in memory and written to a file in memory, and nanoseconds of a system call. */
#include "model/kernels/blas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SIDE = 1024, TIMES = 7, COPIED = 64 << 20, WRITTEN = 256 << 10, WRITES = 256, CALLS = 200000 };

static real *matrices[3];
static char *from, *to;
static int file = -1;

static double processor_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void multiply(void)
{
    blas_product(0, 0, SIDE, SIDE, SIDE, matrices[0], matrices[1], 0, matrices[2]);
}

static void copy(void)
{
    memcpy(to, from, COPIED);
}

/* Over the same pages again and again, which the kernel has already. */
static void write_file(void)
{
    for (size_t i = 0; i < WRITES; i++)
        if (pwrite(file, from, WRITTEN, (off_t)(i * WRITTEN)) != WRITTEN)
            exit(1);
}

static void call(void)
{
    for (int i = 0; i < CALLS; i++)
        syscall(SYS_getppid);
}

static double least(void (*work)(void))
{
    double best = 0;

    for (int i = 0; i <= TIMES; i++) {
        const double began = processor_seconds();
        double took;

        work();
        took = processor_seconds() - began;
        if (i == 1 || (i > 1 && took < best)) /* the first one touches its memory */
            best = took;
    }
    return best;
}

int main(void)
{
    struct error e = { 0 };

    if (blas_load(&e) != OK) {
        fprintf(stderr, "machine_roof: %s\n", e.message);
        return 1;
    }
    for (int i = 0; i < 3; i++)
        if (!(matrices[i] = calloc((size_t)SIDE * SIDE, sizeof *matrices[i])))
            return 1;
    for (size_t i = 0; i < (size_t)SIDE * SIDE; i++)
        matrices[0][i] = matrices[1][i] = (real)(i % 1000) / 1000;
    from = calloc(1, COPIED);
    to = malloc(COPIED);
    file = memfd_create("roof", MFD_CLOEXEC);
    if (!from || !to || file < 0)
        return 1;
    printf("%.4g", 2.0 * (double)SIDE * (double)SIDE * (double)SIDE / least(multiply) / 1e9);
    printf(" %.4g", (double)COPIED / least(copy) / 1e9);
    printf(" %.4g", (double)WRITTEN * (double)WRITES / least(write_file) / 1e9);
    printf(" %.4g\n", least(call) / (double)CALLS * 1e9);
    return 0;
}
