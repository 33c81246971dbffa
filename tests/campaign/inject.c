/*
 * inject.c - a fault at a moment that can be repeated, for tests/campaign/: loaded with LD_PRELOAD, it counts the calls
 * of a program that concern files beneath a directory. The fault happens before call number FAULT_CALL, or the first
 * after it that such a fault can hit.
 *
 *   FAULT_UNDER      the directory; what is elsewhere is not counted
 *   FAULT_MATCH      if it is set, only calls are counted in whose "CALL PATH" it stands
 *   FAULT_PROGRAM    the name of the program that it is for; its children are left alone. FAULT_RANK: the MPI rank
 *   FAULT_KIND       errno      FAULT_TIMES calls that can fail with FAULT_NUMBER do so
 *                    short      FAULT_TIMES writes or reads do half of what they are asked to
 *                    signal     the process gets the signal FAULT_NUMBER; launcher: the process that started it
 *                    slow       FAULT_TIMES calls take FAULT_NUMBER microseconds longer
 *                    clock      the wall clock jumps by FAULT_NUMBER seconds
 *                    gone, moved, replaced   FAULT_DIRECTORY is deleted, renamed to NAME.moved, or that with an empty
 *                               one in its place
 *   FAULT_SHARE      of a thousand calls that can fail so many do, at random, from call FAULT_CALL on
 *   FAULT_LOOKS      if it is set, stat(), fstatat() and readdir() are counted as well
 *   FAULT_FIRED      the file in which "CALL PATH" is put when it happens
 *   FAULT_COUNT      the file to which the number of calls is added at the end
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* what a call does, bits */
enum call {
    OPENS = 1,
    CREATES = 2, /* a name */
    WRITES = 4,
    READS = 8,
    SYNCS = 16,
    REMOVES = 32, /* a name; a rename does so and creates another */
    CUTS = 64,
    LOOKS = 128, /* at a name: stat, or reading a directory */
};

static const struct {
    int number;
    unsigned hits;
} errors[] = {
    { ENOSPC, CREATES | WRITES | SYNCS },
    { EDQUOT, CREATES | WRITES | SYNCS },
    { EIO, WRITES | READS | SYNCS | CUTS },
    { EFBIG, WRITES | CUTS },
    { EMFILE, OPENS },
    { EROFS, CREATES | WRITES | REMOVES | CUTS },
    { ESTALE, OPENS | READS | LOOKS },
    { EACCES, OPENS | LOOKS },
    { ENOENT, OPENS | LOOKS },
    { ETIMEDOUT, OPENS | READS | LOOKS },
};

static struct {
    const char *under, *match, *kind, *directory, *fired, *count;
    unsigned hits; /* by this fault */
    long call, number, times, share;
    int looks;
    atomic_long calls, happened;
    atomic_int jumped, on;
} fault;

static long number_of(const char *variable)
{
    const char *text = getenv(variable);

    return text ? atol(text) : 0;
}

static unsigned hits_of(const char *kind, long number)
{
    if (!strcmp(kind, "short"))
        return WRITES | READS;
    for (size_t i = 0; !strcmp(kind, "errno") && i < sizeof errors / sizeof *errors; i++)
        if (errors[i].number == number)
            return errors[i].hits;
    return ~0u;
}

__attribute__((constructor)) static void begin(void)
{
    const char *program = getenv("FAULT_PROGRAM"), *rank = getenv("FAULT_RANK"), *mine = getenv("OMPI_COMM_WORLD_RANK");
    char self[PATH_MAX] = "";

    if (!program || readlink("/proc/self/exe", self, sizeof self - 1) < 0 || strcmp(strrchr(self, '/') + 1, program) ||
        (rank && (!mine || strcmp(rank, mine))))
        return;
    fault.under = getenv("FAULT_UNDER");
    fault.match = getenv("FAULT_MATCH");
    fault.kind = getenv("FAULT_KIND");
    fault.directory = getenv("FAULT_DIRECTORY");
    fault.fired = getenv("FAULT_FIRED");
    fault.count = getenv("FAULT_COUNT");
    fault.call = number_of("FAULT_CALL");
    fault.number = number_of("FAULT_NUMBER");
    fault.times = number_of("FAULT_TIMES");
    fault.share = number_of("FAULT_SHARE");
    fault.looks = getenv("FAULT_LOOKS") != NULL;
    fault.hits = hits_of(fault.kind, fault.number) | (fault.looks ? OPENS | LOOKS : 0);
    fault.on = 1;
}

/* By system calls, which are not counted. */
static void put_down(const char *path, int flags, const char *text)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);

    if (fd >= 0) {
        if (syscall(SYS_write, fd, text, strlen(text)) < 0)
            abort();
        syscall(SYS_close, fd);
    }
}

__attribute__((destructor)) static void end(void)
{
    char text[32];

    snprintf(text, sizeof text, "%ld\n", (long)fault.calls);
    if (fault.on && fault.count)
        put_down(fault.count, O_APPEND, text);
}

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *where)
{
    (void)about;
    (void)where;
    syscall(SYS_unlinkat, AT_FDCWD, path, type == FTW_DP ? AT_REMOVEDIR : 0);
    return 0;
}

static void take_away(void)
{
    char other[PATH_MAX];

    if (!strcmp(fault.kind, "gone")) {
        nftw(fault.directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        return;
    }
    snprintf(other, sizeof other, "%s.moved", fault.directory);
    syscall(SYS_renameat, AT_FDCWD, fault.directory, AT_FDCWD, other);
    if (!strcmp(fault.kind, "replaced"))
        syscall(SYS_mkdirat, AT_FDCWD, fault.directory, 0777);
}

static void happen_once(void)
{
    if (!strcmp(fault.kind, "signal"))
        kill(getpid(), (int)fault.number);
    else if (!strcmp(fault.kind, "launcher"))
        kill(getppid(), (int)fault.number);
    else if (!strcmp(fault.kind, "clock"))
        fault.jumped = 1;
    else
        take_away();
}

/* 1: this call is to fail, or be short. errno stays but for that. */
static int hit(unsigned does, const char *path, const char *name)
{
    static _Thread_local unsigned dice = 1;
    const int was = errno;
    char text[PATH_MAX + 64];
    long before;

    if (!fault.on || strncmp(path, fault.under, strlen(fault.under)) || (does == LOOKS && !fault.looks))
        return 0;
    snprintf(text, sizeof text, "%s %s\n", name, path);
    if (fault.match && !strstr(text, fault.match))
        return 0;
    if (atomic_fetch_add(&fault.calls, 1) + 1 < fault.call || !fault.call || !(does & fault.hits))
        return 0;
    if (fault.share && rand_r(&dice) % 1000 >= fault.share)
        return 0;
    before = atomic_fetch_add(&fault.happened, 1);
    if (before == 0)
        put_down(fault.fired, O_APPEND, text);
    if (!strcmp(fault.kind, "errno") || !strcmp(fault.kind, "short")) {
        errno = !strcmp(fault.kind, "errno") && before < fault.times ? (int)fault.number : was;
        return before < fault.times;
    }
    if (!strcmp(fault.kind, "slow") && before < fault.times)
        usleep((unsigned)fault.number);
    else if (before == 0)
        happen_once();
    errno = was;
    return 0;
}

static int hit_at(unsigned does, int directory, const char *path, const char *name)
{
    char link[64], whole[2 * PATH_MAX] = "";
    ssize_t n = 0;

    if (!fault.on)
        return 0;
    if (*path == '/')
        return hit(does, path, name);
    snprintf(link, sizeof link, directory == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", directory);
    if ((n = readlink(link, whole, PATH_MAX)) < 0)
        return 0;
    snprintf(whole + n, sizeof whole - (size_t)n, "%s%s", *path ? "/" : "", path);
    return hit(does, whole, name);
}

static int hit_held(unsigned does, int fd, const char *name)
{
    return hit_at(does, fd, "", name);
}

static int half(void)
{
    return !strcmp(fault.kind, "short");
}

static unsigned opening(int flags)
{
    return OPENS | (flags & (O_CREAT | O_TRUNC) ? CREATES : 0);
}

static mode_t mode_of(int flags, va_list list)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
}

#define OPEN() \
    va_list list; \
    mode_t mode; \
\
    va_start(list, flags); \
    mode = mode_of(flags, list); \
    va_end(list)

int open(const char *path, int flags, ...)
{
    OPEN();
    return hit_at(opening(flags), AT_FDCWD, path, "open") ? -1 : NEXT(open)(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    OPEN();
    return hit_at(opening(flags), AT_FDCWD, path, "open") ? -1 : NEXT(open64)(path, flags, mode);
}

int openat(int directory, const char *path, int flags, ...)
{
    OPEN();
    return hit_at(opening(flags), directory, path, "openat") ? -1 : NEXT(openat)(directory, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    const unsigned does = OPENS | (strpbrk(mode, "wa") ? CREATES : 0);

    return hit_at(does, AT_FDCWD, path, "fopen") ? NULL : NEXT(fopen)(path, mode);
}

DIR *opendir(const char *path)
{
    return hit_at(OPENS, AT_FDCWD, path, "opendir") ? NULL : NEXT(opendir)(path);
}

struct dirent *readdir(DIR *d)
{
    return hit_held(LOOKS, dirfd(d), "readdir") ? NULL : NEXT(readdir)(d);
}

int stat(const char *path, struct stat *out)
{
    return hit_at(LOOKS, AT_FDCWD, path, "stat") ? -1 : NEXT(stat)(path, out);
}

int fstatat(int directory, const char *path, struct stat *out, int flags)
{
    return hit_at(LOOKS, directory, path, "fstatat") ? -1 : NEXT(fstatat)(directory, path, out, flags);
}

int mkdir(const char *path, mode_t mode)
{
    return hit_at(CREATES, AT_FDCWD, path, "mkdir") ? -1 : NEXT(mkdir)(path, mode);
}

int mkdirat(int directory, const char *path, mode_t mode)
{
    return hit_at(CREATES, directory, path, "mkdirat") ? -1 : NEXT(mkdirat)(directory, path, mode);
}

int pipe2(int fds[2], int flags)
{
    return hit(OPENS, fault.on ? fault.under : "", "pipe2") ? -1 : NEXT(pipe2)(fds, flags);
}

int link(const char *from, const char *to)
{
    return hit_at(CREATES, AT_FDCWD, to, "link") ? -1 : NEXT(link)(from, to);
}

int linkat(int from_directory, const char *from, int directory, const char *to, int flags)
{
    return hit_at(CREATES, directory, to, "linkat") ? -1 : NEXT(linkat)(from_directory, from, directory, to, flags);
}

int symlink(const char *from, const char *to)
{
    return hit_at(CREATES, AT_FDCWD, to, "symlink") ? -1 : NEXT(symlink)(from, to);
}

int rename(const char *from, const char *to)
{
    return hit_at(CREATES | REMOVES, AT_FDCWD, to, "rename") ? -1 : NEXT(rename)(from, to);
}

int renameat(int from_directory, const char *from, int directory, const char *to)
{
    return hit_at(CREATES | REMOVES, directory, to, "renameat") ? -1
                                                                : NEXT(renameat)(from_directory, from, directory, to);
}

int renameat2(int from_directory, const char *from, int directory, const char *to, unsigned flags)
{
    return hit_at(CREATES | REMOVES, directory, to, "renameat2")
               ? -1
               : NEXT(renameat2)(from_directory, from, directory, to, flags);
}

int unlink(const char *path)
{
    return hit_at(REMOVES, AT_FDCWD, path, "unlink") ? -1 : NEXT(unlink)(path);
}

int unlinkat(int directory, const char *path, int flags)
{
    return hit_at(REMOVES, directory, path, "unlinkat") ? -1 : NEXT(unlinkat)(directory, path, flags);
}

int rmdir(const char *path)
{
    return hit_at(REMOVES, AT_FDCWD, path, "rmdir") ? -1 : NEXT(rmdir)(path);
}

int truncate(const char *path, off_t size)
{
    return hit_at(CUTS, AT_FDCWD, path, "truncate") ? -1 : NEXT(truncate)(path, size);
}

int ftruncate(int fd, off_t size)
{
    return hit_held(CUTS, fd, "ftruncate") ? -1 : NEXT(ftruncate)(fd, size);
}

int fsync(int fd)
{
    return hit_held(SYNCS, fd, "fsync") ? -1 : NEXT(fsync)(fd);
}

int fdatasync(int fd)
{
    return hit_held(SYNCS, fd, "fdatasync") ? -1 : NEXT(fdatasync)(fd);
}

/* How many of n bytes are to be moved; -1: it fails. */
static ssize_t length_after(unsigned does, int fd, size_t n, const char *name)
{
    if (!hit_held(does, fd, name))
        return (ssize_t)n;
    return half() ? (ssize_t)(n + 1) / 2 : -1;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    ssize_t length = length_after(WRITES, fd, n, "write");

    return length < 0 ? -1 : NEXT(write)(fd, bytes, (size_t)length);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    ssize_t length = length_after(WRITES, fd, n, "pwrite");

    return length < 0 ? -1 : NEXT(pwrite)(fd, bytes, (size_t)length, at);
}

ssize_t read(int fd, void *bytes, size_t n)
{
    ssize_t length = length_after(READS, fd, n, "read");

    return length < 0 ? -1 : NEXT(read)(fd, bytes, (size_t)length);
}

ssize_t pread(int fd, void *bytes, size_t n, off_t at)
{
    ssize_t length = length_after(READS, fd, n, "pread");

    return length < 0 ? -1 : NEXT(pread)(fd, bytes, (size_t)length, at);
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    const int rc = NEXT(clock_gettime)(id, t);

    if (rc == 0 && id == CLOCK_REALTIME && fault.jumped)
        t->tv_sec += fault.number;
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
