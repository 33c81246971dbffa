"""Functions of the C library that a program calls in another version: for what cannot be had otherwise, as a clock that
is set back, a disk that turns read-only, a data set that takes long to open. Sources, and the environment to run it in.
"""
import os
import subprocess

# No library is found whose name has $NO_LIBRARY in it.
NO_LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
void *dlopen(const char *name, int flags)
{
    void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    return next(name && strstr(name, getenv("NO_LIBRARY")) ? "/nowhere/library.so" : name, flags);
}
"""

# Moves the wall clock of a program by the seconds in a file. Monotonic clocks stay, as they do in truth.
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long shift(void)
{
    FILE *f = fopen(getenv("CLOCK_SHIFT_FILE"), "r");
    long seconds = 0;
    if (f && fscanf(f, "%ld", &seconds) != 1)
        seconds = 0;
    if (f)
        fclose(f);
    return seconds;
}
int clock_gettime(clockid_t id, struct timespec *t)
{
    int (*next)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int rc = next(id, t);
    if (rc == 0 && id == CLOCK_REALTIME)
        t->tv_sec += shift();
    return rc;
}
int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
"""

# Moves the monotonic clock of a program by the seconds in a file: its time-outs pass without being waited for.
LATER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *t)
{
    int (*next)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    FILE *f = id == CLOCK_MONOTONIC ? fopen(getenv("LATER_FILE"), "r") : NULL;
    long seconds = 0;
    if (f && fscanf(f, "%ld", &seconds) != 1)
        seconds = 0;
    if (f)
        fclose(f);
    int rc = next(id, t);
    t->tv_sec += rc == 0 ? seconds : 0;
    return rc;
}
"""

# A busy machine on which some time goes by at each look at the wall clock. Monotonic clocks stay.
SLOW_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *t)
{
    if (id == CLOCK_REALTIME)
        nanosleep(&(struct timespec){ .tv_nsec = 30000000 }, NULL);
    return ((int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime"))(id, t);
}
"""

# open() that asks refused() first.
OPEN = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
static int refused(const char *path, int flags);
int open(const char *path, int flags, ...)
{
    va_list list;
    int mode;
    va_start(list, flags);
    mode = flags & O_CREAT ? va_arg(list, int) : 0;
    va_end(list);
    return refused(path, flags) ? -1 : NEXT(open)(path, flags, mode);
}
"""

# A file system that turns read-only under a program that has files open on it, as one does after an error of its disk; a
# remount is refused then. While READ_ONLY_WHILE exists, whatever would change something beneath READ_ONLY_UNDER fails.
READ_ONLY = OPEN + r"""
static int beneath(const char *path)
{
    const char *where = getenv("READ_ONLY_UNDER");
    return !strncmp(path, where, strlen(where)) && access(getenv("READ_ONLY_WHILE"), F_OK) == 0 ? (errno = EROFS) : 0;
}
static int held(int fd)
{
    char name[64], path[4096] = "";
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return readlink(name, path, sizeof path - 1) > 0 && beneath(path);
}
static int refused(const char *path, int flags)
{
    return (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) && beneath(path);
}
ssize_t write(int fd, const void *data, size_t n) { return held(fd) ? -1 : NEXT(write)(fd, data, n); }
ssize_t pwrite(int fd, const void *data, size_t n, off_t at) { return held(fd) ? -1 : NEXT(pwrite)(fd, data, n, at); }
int fsync(int fd) { return held(fd) ? -1 : NEXT(fsync)(fd); }
int fdatasync(int fd) { return held(fd) ? -1 : NEXT(fdatasync)(fd); }
int ftruncate(int fd, off_t size) { return held(fd) ? -1 : NEXT(ftruncate)(fd, size); }
int rename(const char *from, const char *to) { return beneath(to) ? -1 : NEXT(rename)(from, to); }
int mkdir(const char *path, mode_t mode) { return beneath(path) ? -1 : NEXT(mkdir)(path, mode); }
int unlink(const char *path) { return beneath(path) ? -1 : NEXT(unlink)(path); }
"""

# A rank that computes wrongly: log(), which only losses need, gives NaN in rank NAN_RANK from call NAN_CALL on.
NAN_LOSS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
double log(double x)
{
    static int calls;
    double (*next)(double) = (double (*)(double))dlsym(RTLD_NEXT, "log");
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    return rank && !strcmp(rank, getenv("NAN_RANK")) && ++calls >= atoi(getenv("NAN_CALL")) ? NAN : next(x);
}
"""

# A data set that cannot be opened while HOLD_WHILE exists.
HELD_DATA = OPEN + r"""
static int refused(const char *path, int flags)
{
    (void)flags;
    while (strstr(path, "t10k-images") && access(getenv("HOLD_WHILE"), F_OK) == 0)
        usleep(5000);
    return 0;
}
"""


# A log in which things are removed between listing and opening: the directory VANISHING_DIRECTORY goes when it is about
# to be entered, the file VANISHING_FILE when it is about to be opened, both by the new name VANISHED_TO.
VANISHING = OPEN + r"""
#include <dirent.h>
#include <fts.h>
static void vanish(const char *path, const char *of)
{
    const char *vanishing = getenv(of);
    if (vanishing && !strcmp(path, vanishing))
        rename(path, getenv("VANISHED_TO"));
}
static int refused(const char *path, int flags)
{
    (void)flags;
    vanish(path, "VANISHING_FILE");
    return 0;
}
DIR *opendir(const char *path)
{
    vanish(path, "VANISHING_DIRECTORY");
    return NEXT(opendir)(path);
}
FTSENT *fts_read(FTS *tree) /* which enters a directory with the call after the one that names it */
{
    FTSENT *entry = NEXT(fts_read)(tree);
    if (entry && entry->fts_info == FTS_D)
        vanish(entry->fts_path, "VANISHING_DIRECTORY");
    return entry;
}
"""

# Matrix products that take SLOW_MICROSECONDS longer each: long steps that cost no processor and no memory. OpenBLAS is
# loaded by its name: this one's product is found first in the handle that the program gets.
SLOW_PRODUCTS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *library;
void *dlopen(const char *name, int flags)
{
    void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    if (!name || !strstr(name, "openblas"))
        return next(name, flags);
    library = next(name, flags | RTLD_GLOBAL);
    return next(NULL, flags);
}
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                 int ldb, float beta, float *c, int ldc)
{
    __typeof__(&cblas_sgemm) next = (__typeof__(&cblas_sgemm))dlsym(library, "cblas_sgemm");
    usleep((unsigned)atoi(getenv("SLOW_MICROSECONDS")));
    next(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
"""

# A machine that lacks memory for another process (fork), descriptors (pipe2), or processes of this user (execvpe), while
# LACK_WHILE exists.
LACKING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
static int lacks(const char *call, int number)
{
    const int lacking = !strcmp(getenv("LACK_OF"), call) && access(getenv("LACK_WHILE"), F_OK) == 0;
    errno = number;
    return lacking;
}
pid_t fork(void)
{
    return lacks("fork", ENOMEM) ? -1 : ((pid_t (*)(void))dlsym(RTLD_NEXT, "fork"))();
}
int pipe2(int fds[2], int flags)
{
    return lacks("pipe2", EMFILE) ? -1 : ((int (*)(int *, int))dlsym(RTLD_NEXT, "pipe2"))(fds, flags);
}
typedef int exec_function(const char *, char *const *, char *const *);
int execvpe(const char *file, char *const argv[], char *const envp[])
{
    return lacks("execvpe", EAGAIN) ? -1 : ((exec_function *)dlsym(RTLD_NEXT, "execvpe"))(file, argv, envp);
}
"""

# Says at the end how many bytes the largest message of a step had; those of the start have tags from 20000 on.
LARGEST_MESSAGE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
static int largest;
int MPI_Isend(const void *bytes, int count, void *type, int to, int tag, void *comm, void *request)
{
    int (*next)(const void *, int, void *, int, int, void *, void *) =
        (int (*)(const void *, int, void *, int, int, void *, void *))dlsym(RTLD_NEXT, "MPI_Isend");
    if (tag < 20000 && count > largest)
        largest = count;
    return next(bytes, count, type, to, tag, comm, request);
}
int MPI_Finalize(void)
{
    fprintf(stderr, "largest message: %d\n", largest);
    return ((int (*)(void))dlsym(RTLD_NEXT, "MPI_Finalize"))();
}
"""

# A rank that hangs: STOP_RANK of a run stops when it calls STOP_CALL for the STOP_AT-th time.
HANGING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#define NEXT(result, name, ...) ((result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))
static void called(const char *call)
{
    static int calls;
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (rank && !strcmp(rank, getenv("STOP_RANK")) && !strcmp(call, getenv("STOP_CALL")) &&
        ++calls == atoi(getenv("STOP_AT")))
        raise(SIGSTOP);
}
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    called("MPI_Init_thread");
    return NEXT(int, "MPI_Init_thread", int *, char ***, int, int *)(argc, argv, required, provided);
}
int MPI_Isend(const void *bytes, int count, void *type, int to, int tag, void *comm, void *request)
{
    called("MPI_Isend");
    return NEXT(int, "MPI_Isend", const void *, int, void *, int, int, void *, void *)(bytes, count, type, to, tag,
                                                                                       comm, request);
}
int MPI_Finalize(void)
{
    called("MPI_Finalize");
    return NEXT(int, "MPI_Finalize", void)();
}
int rename(const char *from, const char *to)
{
    called("rename");
    return NEXT(int, "rename", const char *, const char *)(from, to);
}
"""

# The death of a rank that another one sees first: once DEATH_WHEN exists, rank 1 finds the connection broken where it sends
# next, and the process whose number is in there dies a little later. The message has to wait first: then it is Open MPI's
# progress that finds the connection broken.
BROKEN_CONNECTION = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
static int broken(int fd)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer;
    FILE *f;
    static int waited;
    char death[80];
    int pid;
    if (rank && !strcmp(rank, "1") && getpeername(fd, (struct sockaddr *)&peer, &size) == 0 && peer.ss_family == AF_INET &&
        (f = fopen(getenv("DEATH_WHEN"), "r"))) {
        if (!waited++) {
            fclose(f);
            errno = EAGAIN;
            return 1;
        }
        if (fscanf(f, "%d", &pid) == 1) {
            snprintf(death, sizeof death, "(sleep 0.3; kill -9 %d) &", pid);
            if (system(death) != 0)
                abort();
        }
        fclose(f);
        errno = ECONNRESET;
        return 1;
    }
    return 0;
}
ssize_t writev(int fd, const struct iovec *parts, int count)
{
    ssize_t (*next)(int, const struct iovec *, int) = (ssize_t (*)(int, const struct iovec *, int))dlsym(RTLD_NEXT, "writev");
    return broken(fd) ? -1 : next(fd, parts, count);
}
ssize_t sendmsg(int fd, const struct msghdr *message, int flags) /* Open MPI 6 */
{
    ssize_t (*next)(int, const struct msghdr *, int) = (ssize_t (*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");
    return broken(fd) ? -1 : next(fd, message, flags);
}
"""

# A disk on which everything takes its time.
SLOW_DISK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
int fsync(int fd)
{
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    usleep(300000);
    return next(fd);
}
"""

# A program that gives itself any time: what it would do when an alarm goes off depends on how busy the machine is.
NO_ALARM = r"""
unsigned alarm(unsigned seconds)
{
    (void)seconds;
    return 0;
}
"""

# A disk on which a sync of a file with HOLD_NAME in its path takes as long as HOLD_WHILE exists; HOLD_SAYS is made when the
# first has begun.
HELD_SYNC = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int fsync(int fd)
{
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    char name[64], path[4096] = "";
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if (readlink(name, path, sizeof path - 1) > 0 && strstr(path, getenv("HOLD_NAME"))) {
        close(open(getenv("HOLD_SAYS"), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
        while (access(getenv("HOLD_WHILE"), F_OK) == 0)
            usleep(5000);
    }
    return next(fd);
}
"""


def interposed(directory, name, source, **variables):
    """The environment in which a program calls these functions instead of the C library's."""
    (directory / f"{name}.c").write_text(source)
    library = directory / f"{name}.so"
    subprocess.run([os.environ.get("CC_FOR_TESTS", "cc"), "-shared", "-fPIC", "-o", library, directory / f"{name}.c",
                    "-ldl"], check=True)
    return {**os.environ, "LD_PRELOAD": str(library), **{key: str(value) for key, value in variables.items()}}


def held_data(directory):
    """The environment in which Fashion-MNIST cannot be read, and the path that is removed when it may be."""
    hold = directory / "hold"
    hold.touch()
    return interposed(directory, "held_data", HELD_DATA, HOLD_WHILE=hold), hold
