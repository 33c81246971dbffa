#include "trainer/collective/shared_memory.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    SPIN_NS = 50000,        /* about as long as a sleep takes, so that a wait costs at most twice what it must */
    SPIN_CROWDED_NS = 2000, /* on a core that another rank may need */
    PAUSES = 20,            /* between two looks at the clock */
    SLICE_NS = 20000000,
    NAME_SIZE = 64,
};

size_t shared_memory_rounded(size_t n)
{
    return (n + PAGE - 1) / PAGE * PAGE;
}

int shared_counter_reached(const struct shared_counter *c, uint32_t target)
{
    return (int32_t)(atomic_load(&c->value) - target) >= 0;
}

void shared_counter_post(struct shared_counter *c, uint32_t value)
{
    atomic_store(&c->value, value);
    /* Sequentially consistent, like the waiter's two steps: either it sees the value or we see the waiter. */
    if (atomic_load(&c->waiters))
        syscall(SYS_futex, &c->value, FUTEX_WAKE, 0x7fffffff, NULL, NULL, 0);
}

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

int shared_counter_wait(struct shared_counter *c, uint32_t target, int64_t spin)
{
    const int64_t begun = clock_nanoseconds();
    struct timespec slice = { 0, SLICE_NS };
    uint32_t seen;

    do {
        for (int i = 0; i < PAUSES; i++) {
            if (shared_counter_reached(c, target))
                return 1;
            relax();
        }
    } while (clock_nanoseconds() - begun < spin);
    atomic_fetch_add(&c->waiters, 1);
    seen = atomic_load(&c->value);
    if ((int32_t)(seen - target) < 0)
        syscall(SYS_futex, &c->value, FUTEX_WAIT, seen, &slice, NULL, 0);
    atomic_fetch_sub(&c->waiters, 1);
    return shared_counter_reached(c, target);
}

/* For a rank of a host that has `ranks` of them. */
static int64_t spin_among(int ranks)
{
    cpu_set_t cores;
    const int known = sched_getaffinity(0, sizeof cores, &cores) == 0;

    /* A rank that is bound to its own cores shares them with nobody. */
    return known && (ranks <= CPU_COUNT(&cores) || CPU_COUNT(&cores) < sysconf(_SC_NPROCESSORS_ONLN)) ? SPIN_NS
                                                                                                      : SPIN_CROWDED_NS;
}

/* The first rank of a host makes the memory, which never has a name of its own that a killed rank could leave behind:
 * others open it by the descriptor. That, or an error. */
static int make(char *name, size_t size, struct error *e)
{
    int fd = memfd_create("evalboard", MFD_CLOEXEC), error;

    if (fd < 0)
        return error_system(e, "cannot make shared memory");
    /* Allocates the memory now: a page that cannot be had would be a SIGBUS in the middle of training. */
    if ((error = posix_fallocate(fd, 0, (off_t)size)) != 0) {
        errno = error;
        error_system(e, "cannot allocate %zu bytes of shared memory", size);
        close(fd);
        return ERR_IO;
    }
    snprintf(name, NAME_SIZE, "/proc/%ld/fd/%d", (long)getpid(), fd);
    return fd;
}

static int map(struct shared_memory *m, int fd, size_t size, struct error *e)
{
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (bytes == MAP_FAILED)
        return error_system(e, "cannot map %zu bytes of shared memory", size);
    *m = (struct shared_memory){ .bytes = bytes, .size = size };
    return OK;
}

/* In the ranks that have not made it. */
static int map_other(struct shared_memory *m, const char *name, size_t size, struct error *e)
{
    const int fd = open(name, O_RDWR | O_CLOEXEC);
    int rc;

    if (fd < 0)
        return error_system(e, "cannot open shared memory %s", name);
    rc = map(m, fd, size, e);
    close(fd);
    return rc;
}

int shared_memory_open(struct shared_memory *m, struct world *w, const int *host, int count, size_t size,
                       struct error *e)
{
    const int rank = world_rank(w);
    char name[NAME_SIZE] = "";
    char(*names)[NAME_SIZE] = calloc((size_t)world_size(w), sizeof *names);
    int first = 0, ranks = 0, fd = -1, rc = OK;

    *m = (struct shared_memory){ 0 };
    for (int r = 0; r < count; r++)
        ranks += host[r] == host[rank];
    while (host[first] != host[rank])
        first++;
    if (!names)
        rc = error_memory(e, NULL, "for shared memory");
    else if (first == rank && (fd = make(name, size, e)) < 0)
        rc = fd;
    if ((rc = world_agree(w, "make shared memory", rc, e)) == OK &&
        (rc = world_gather(w, name, sizeof name, names, "send the name of the shared memory", e)) == OK) {
        rc = fd < 0 ? map_other(m, names[first], size, e) : map(m, fd, size, e);
        m->spin = spin_among(ranks);
        rc = world_agree(w, "open shared memory", rc, e);
    }
    if (fd >= 0) /* the others have it open */
        close(fd);
    if (rc < 0)
        shared_memory_close(m);
    free(names);
    return rc;
}

int shared_memory_attend(struct world *w, struct error *e)
{
    const char name[NAME_SIZE] = "";
    char(*names)[NAME_SIZE] = calloc((size_t)world_size(w), sizeof *names);
    int rc = names ? OK : error_memory(e, NULL, "for the names of shared memory");

    if ((rc = world_agree(w, "make shared memory", rc, e)) == OK &&
        (rc = world_gather(w, name, sizeof name, names, "send the name of the shared memory", e)) == OK)
        rc = world_agree(w, "open shared memory", OK, e);
    free(names);
    return rc;
}

void shared_memory_close(struct shared_memory *m)
{
    if (m->bytes)
        munmap(m->bytes, m->size);
    *m = (struct shared_memory){ 0 };
}
