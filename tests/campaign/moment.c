/*
 * moment.c - a rank that fails at a moment that can be repeated, for tests/campaign/: loaded with LD_PRELOAD, it counts
 * the calls of some functions in each rank of the trainer: of MPI, of OpenBLAS (a worker computes), of files (rank 0
 * saves: also the calls of the process that does it for the rank count, and what happens there happens to the rank).
 *
 *   MOMENT_RANK     the rank; one that no mpirun started is rank 0
 *   MOMENT_CALL     the function, before whose call number MOMENT_AT it happens
 *   MOMENT_DOES     kill, stop: the rank gets that signal; hold: it waits until MOMENT_FIRED is gone
 *   MOMENT_FIRED    the file that is made when it happens
 *   MOMENT_COUNTS   the directory in which each rank puts "FUNCTION CALLS" lines at its end, in a file named by its number
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NEXT(result, name, ...) ((result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))

enum function { INIT, SEND, RECEIVE, FINALIZE, PRODUCT, RENAME, SYNC, FUNCTIONS };
static const char *const names[FUNCTIONS] = { "MPI_Init_thread", "MPI_Isend", "MPI_Irecv", "MPI_Finalize",
                                              "cblas_sgemm",     "rename",    "fsync" };
static struct {
    int trainer, mine; /* 1: the moment is this rank's */
    const char *rank;
    pid_t pid;
    atomic_long *calls; /* (FUNCTIONS) shared with processes that the rank forks */
    void *openblas;
} here;

__attribute__((constructor)) static void begin(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *chosen = getenv("MOMENT_RANK");
    char self[PATH_MAX] = "";

    here.rank = rank ? rank : "0";
    here.trainer = readlink("/proc/self/exe", self, sizeof self - 1) > 0 && !strcmp(strrchr(self, '/') + 1, "trainer");
    here.pid = getpid();
    here.calls = mmap(NULL, FUNCTIONS * sizeof *here.calls, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (here.calls == MAP_FAILED)
        abort();
    here.mine = here.trainer && chosen && !strcmp(chosen, here.rank);
}

__attribute__((destructor)) static void end(void)
{
    const char *directory = getenv("MOMENT_COUNTS");
    char path[PATH_MAX];
    FILE *out;

    snprintf(path, sizeof path, "%s/%s", directory ? directory : "", here.rank);
    if (!here.trainer || !directory || !(out = fopen(path, "w")))
        return;
    for (int f = 0; f < FUNCTIONS; f++)
        fprintf(out, "%s %ld\n", names[f], (long)here.calls[f]);
    fclose(out);
}

static void happen(const char *name)
{
    const struct timespec pause = { 0, 1000000 };
    const char *does = getenv("MOMENT_DOES"), *fired = getenv("MOMENT_FIRED");
    const int fd = open(fired, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

    if (fd < 0 || write(fd, name, strlen(name)) < 0)
        abort();
    close(fd);
    if (strcmp(does, "hold") != 0)
        kill(here.pid, !strcmp(does, "kill") ? SIGKILL : SIGSTOP);
    while (!strcmp(does, "hold") && access(fired, F_OK) == 0)
        nanosleep(&pause, NULL);
}

static void called(enum function f)
{
    const long number = here.calls ? atomic_fetch_add(&here.calls[f], 1) + 1 : 0;

    if (here.mine && !strcmp(names[f], getenv("MOMENT_CALL")) && number == atol(getenv("MOMENT_AT")))
        happen(names[f]);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided);
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    called(INIT);
    return NEXT(int, "MPI_Init_thread", int *, char ***, int, int *)(argc, argv, required, provided);
}

int MPI_Isend(const void *bytes, int count, void *type, int to, int tag, void *comm, void *request);
int MPI_Isend(const void *bytes, int count, void *type, int to, int tag, void *comm, void *request)
{
    called(SEND);
    return NEXT(int, "MPI_Isend", const void *, int, void *, int, int, void *, void *)(bytes, count, type, to, tag,
                                                                                       comm, request);
}

int MPI_Irecv(void *bytes, int count, void *type, int from, int tag, void *comm, void *request);
int MPI_Irecv(void *bytes, int count, void *type, int from, int tag, void *comm, void *request)
{
    called(RECEIVE);
    return NEXT(int, "MPI_Irecv", void *, int, void *, int, int, void *, void *)(bytes, count, type, from, tag, comm,
                                                                                 request);
}

int MPI_Finalize(void);
int MPI_Finalize(void)
{
    called(FINALIZE);
    return NEXT(int, "MPI_Finalize", void)();
}

int rename(const char *from, const char *to)
{
    called(RENAME);
    return NEXT(int, "rename", const char *, const char *)(from, to);
}

int fsync(int fd)
{
    called(SYNC);
    return NEXT(int, "fsync", int)(fd);
}

/* OpenBLAS is loaded by its name: this library's product is found first in the handle that the trainer gets. */
void *dlopen(const char *name, int flags)
{
    if (!here.trainer || !name || !strstr(name, "openblas"))
        return NEXT(void *, "dlopen", const char *, int)(name, flags);
    here.openblas = NEXT(void *, "dlopen", const char *, int)(name, flags | RTLD_GLOBAL);
    return here.openblas ? NEXT(void *, "dlopen", const char *, int)(NULL, flags) : NULL;
}

typedef void product(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                     const float *b, int ldb, float beta, float *c, int ldc);
product cblas_sgemm;
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                 int ldb, float beta, float *c, int ldc)
{
    called(PRODUCT);
    ((product *)dlsym(here.openblas, "cblas_sgemm"))(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
