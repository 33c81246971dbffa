#include "trainer/collective/watchdog.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"
#include "base/process.h"
#include "base/program/log.h"
#include "trainer/collective/launcher_end.h"
#include "trainer/collective/places.h"
#include "trainer/collective/stand_in.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MILLISECONDS = 50, FOLLOW_MILLISECONDS = 500, STAY_MILLISECONDS = 500, LAUNCHER_MILLISECONDS = 2000 };
enum { ENVIRONMENT_MAX = 8 << 20, RANKS_MAX = 1 << 20, HAND_OVER_SECONDS = 30 };

/* The thread's name: 15 letters at most. */
static const char *const names[WATCHDOG_PHASES] = { "MPI starts", "MPI runs", "MPI ends" };

struct watchdog {
    pthread_t thread;
    double deadline;
    int status, changed, launcher; /* an eventfd; of pidfd_open(2), this rank's stand-in or launcher, -1: seen to end */
    _Atomic int outlives;          /* 1: this rank may live without its launcher */
    _Atomic int phase;
    const struct process *_Atomic places; /* (ranks) */
    int ranks;
    struct sigaction before; /* what SIGTERM did before this rank started MPI */
    int listens;             /* 1: SIGTERM is told_to_end()'s */
    int mark;                /* this rank's file while MPI starts; -1: none */
    double stood;            /* the seconds for which this process did not run; 0: it did not stand for long */
};

/* The only globals: the handler has no other way to pass information. */
static volatile sig_atomic_t to_end; /* 1: SIGTERM came while MPI started */
static int wake;                     /* the watchdog's eventfd */

/* The value of a variable in an environment block; NULL: not set. */
static const char *value_of(const struct buffer *environment, const char *name)
{
    const size_t length = strlen(name);

    for (size_t at = 0; at < environment->length; at += strlen(environment->data + at) + 1) {
        const char *word = environment->data + at;

        if (!strncmp(word, name, length) && word[length] == '=')
            return word + length + 1;
    }
    return NULL;
}

static int number_of(const char *text)
{
    int64_t n = -1;

    return text && number_parse_int(text, &n) && n >= 0 && n < RANKS_MAX ? (int)n : -1;
}

/* The rank according to the launcher's environment of this process, -1: none. */
static int own_rank(void)
{
    static const char *const variables[] = { "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK" };
    int rank = -1;

    for (size_t i = 0; i < sizeof variables / sizeof *variables && rank < 0; i++)
        rank = number_of(getenv(variables[i]));
    return rank;
}

static int same_program(const char *pid)
{
    char path[64], own[4096], its[4096];
    ssize_t n = readlink("/proc/self/exe", own, sizeof own), m;

    snprintf(path, sizeof path, "/proc/%.20s/exe", pid);
    m = readlink(path, its, sizeof its);
    return n > 0 && n == m && !memcmp(own, its, (size_t)n);
}

/* The process's rank in this run, -1: none. */
static int rank_of(const char *pid)
{
    const char *run = getenv("PMIX_NAMESPACE"), *its;
    struct buffer environment = BUFFER_EMPTY;
    char path[64];
    int rank = -1;

    snprintf(path, sizeof path, "/proc/%.20s/environ", pid);
    if (run && same_program(pid) && file_read(path, ENVIRONMENT_MAX, &environment, NULL) == OK &&
        (its = value_of(&environment, "PMIX_NAMESPACE")) && !strcmp(its, run))
        rank = number_of(value_of(&environment, "PMIX_RANK"));
    buffer_release(&environment);
    return rank;
}

/* The phase of that process, from the name of its watchdog; -1: it has none yet. */
static int phase_of(const char *pid)
{
    char path[96], name[32];
    struct dirent *entry;
    int phase = -1;
    DIR *tasks;

    snprintf(path, sizeof path, "/proc/%.20s/task", pid);
    if (!(tasks = opendir(path)))
        return -1;
    while ((entry = readdir(tasks))) {
        struct buffer text = BUFFER_EMPTY;

        snprintf(path, sizeof path, "/proc/%.20s/task/%.20s/comm", pid, entry->d_name);
        if (file_read(path, sizeof name, &text, NULL) == OK)
            for (int p = 0; p < WATCHDOG_PHASES; p++) {
                snprintf(name, sizeof name, "%s\n", names[p]);
                if (!strcmp(buffer_text(&text), name))
                    phase = p;
            }
        buffer_release(&text);
    }
    closedir(tasks);
    return phase;
}

enum { NOT_HERE, HERE, WAITS, LATE };

/* How many of this host's ranks have ended: mpirun ends the others then, and whoever knew why has said so. */
static int count_ended(const char *ranks, int count)
{
    int ended = number_of(getenv("OMPI_COMM_WORLD_LOCAL_SIZE"));

    for (int r = 0; r < count; r++)
        ended -= ranks[r] != NOT_HERE;
    return ended;
}

static char state_of(int phase, int its_phase, int stopped)
{
    if (stopped || its_phase < WATCHDOG_STARTING)
        return LATE;
    return its_phase < phase ? WAITS : HERE;
}

/* The state of each rank: NOT_HERE on this host, HERE and as far as we are, WAITS for others with the deadline of
 * world.h, since MPI runs, or LATE. */
static void look_around(int phase, char *ranks, int count)
{
    struct dirent *entry;
    DIR *processes = opendir("/proc");

    while (processes && (entry = readdir(processes))) {
        const char *pid = entry->d_name;
        const int rank = pid[0] >= '1' && pid[0] <= '9' ? rank_of(pid) : -1;

        if (rank >= 0 && rank < count)
            ranks[rank] = state_of(phase, phase_of(pid), process_stopped(number_of(pid)));
    }
    if (processes)
        closedir(processes);
}

/* ---- ranks that end while MPI starts ------------------------------------------------------------------------------
 * mpirun (4.1) forgets which rank it was if not all were running yet, says only that "1 process returned a non-zero
 * exit code", and ends the others by SIGTERM. So each rank holds a locked file while MPI starts, in the directory that
 * the launcher has for its session on each host. When SIGTERM comes, one of the ranks there says whose file is not
 * locked any more: the lock ends with the process, however that ends. */

/* The file of a rank, open; -1: there is none. flags: of open(). */
static int open_mark(int rank, int flags)
{
    const char *directory = getenv("PMIX_SERVER_TMPDIR"), *run = getenv("PMIX_NAMESPACE");
    char path[PATH_MAX];
    const int n = directory && run && rank >= 0 ? snprintf(path, sizeof path, "%s/starting.%s.%d", directory, run, rank)
                                                : -1;

    return n < 0 || (size_t)n >= sizeof path ? -1 : open(path, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* Nothing is to be said of this rank: it has started, is told to end, or was named. */
static void settle_mark(int fd)
{
    if (fd >= 0 && write(fd, "-", 1) < 0)
        return; /* a full disk: at worst the rank is named though it ended as it was told */
}

/* 1: this rank of this host ended while MPI started, and nobody has said so yet: now it is this rank's to say. */
static int ended_unsaid(int rank)
{
    const int fd = open_mark(rank, 0);
    struct stat file;
    int unsaid;

    if (fd < 0)
        return 0;
    unsaid = flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &file) == 0 && file.st_size == 0;
    if (unsaid)
        settle_mark(fd);
    close(fd);
    return unsaid;
}

/* Says that this rank did not run, if the others may have ended for that; or else which ranks of this host ended while
 * MPI started, unless another rank has. */
static void tell_ended(const struct watchdog *d)
{
    const int size = number_of(getenv("OMPI_COMM_WORLD_SIZE")), count = size > 0 ? size : 0, rank = own_rank();
    struct buffer whom = BUFFER_EMPTY;
    char *ended = calloc((size_t)count + 1, 1);
    struct process self;
    struct log log;

    for (int r = 0; ended && r < count; r++)
        ended[r] = r != rank && ended_unsaid(r);
    process_self(&self);
    log_init(&log, "trainer", 2);
    if (d->stood > 0)
        log_line(&log, "rank %d on host %s: mpirun ends the ranks; this one did not run for %.1f s", rank, self.host,
                 d->stood);
    else if (ended && places_text(&whom, NULL, ended, count, 1) && buffer_ok(&whom))
        log_line(&log, "rank %d on host %s: MPI cannot start since %s on host %s ended; mpirun ends all ranks", rank,
                 self.host, buffer_text(&whom), self.host);
    buffer_release(&whom);
    free(ended);
}

static void told_to_end(int number)
{
    const uint64_t one = 1;
    const int before = errno;

    (void)number;
    to_end = 1;
    if (write(wake, &one, sizeof one) < 0) /* eight bytes to an eventfd that is read */
        to_end = 1;
    errno = before;
}

static void listen_for_end(struct watchdog *d)
{
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_handler = told_to_end;
    action.sa_flags = SA_RESTART;
    to_end = 0;
    wake = d->changed;
    d->listens = sigaction(SIGTERM, NULL, &d->before) == 0 && d->before.sa_handler == SIG_DFL &&
                 sigaction(SIGTERM, &action, NULL) == 0;
    d->mark = open_mark(own_rank(), O_CREAT);
    if (d->mark >= 0)
        flock(d->mark, LOCK_EX | LOCK_NB);
}

/* MPI has started, or failed to: SIGTERM does again what it did. */
static void listen_no_more(struct watchdog *d)
{
    settle_mark(d->mark);
    if (d->mark >= 0)
        close(d->mark);
    d->mark = -1;
    if (!d->listens)
        return;
    d->listens = 0;
    sigaction(SIGTERM, &d->before, NULL);
    if (to_end)
        raise(SIGTERM);
}

/* SIGTERM came: ends this process as it does without the handler, but later. mpirun kills the others as soon as the
 * first one has ended, so all stay until they have looked at each other. */
static _Noreturn void end_as_told(const struct watchdog *d)
{
    struct sigaction action;
    sigset_t term;

    tell_ended(d);
    settle_mark(d->mark);
    nanosleep(&(struct timespec){ 0, STAY_MILLISECONDS * 1000000L }, NULL);
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    sigaction(SIGTERM, &action, NULL);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &term, NULL);
    kill(getpid(), SIGTERM);
    for (;;)
        pause();
}

/* ---- deadlines --------------------------------------------------------------------------------------------------- */

/* When the deadline passes, the first rank of a host speaks that sees who is late there. A grace later, the first one
 * of each host speaks, since if all are there, one of another host is late; and after another, any rank. Ranks that
 * wait for others as MPI runs know more: they have the word until then. */
enum { SEES, INFERS, ANYONE };
static const int preceding[] = { 0, 2, 6 }; /* kinds of ranks (places_precedence) */

/* 1: another rank has the word, on this host or, before a grace has passed, on another. */
static int yields(const char *ranks, int count, int rank, int grace)
{
    const int sees = memchr(ranks, LATE, (size_t)count) || count_ended(ranks, count) > 0;

    if (!sees && (grace == SEES || (grace == INFERS && memchr(ranks, WAITS, (size_t)count))))
        return 1;
    for (int r = 0; grace < ANYONE && r < rank && r < count; r++)
        if (ranks[r] == HERE)
            return 1;
    return 0;
}

/* Reports, unless a rank of this host has done so, and ends this process; returns if another one may know more. */
static void give_up(const struct watchdog *d, int phase, int grace)
{
    const struct process *places = atomic_load(&d->places);
    const int size = number_of(getenv("OMPI_COMM_WORLD_SIZE")), count = size > 0 ? size : 0, rank = own_rank();
    struct buffer whom = BUFFER_EMPTY;
    char *ranks = calloc((size_t)count + 1, 1);
    struct process self;
    struct log log;
    int late;

    process_self(&self);
    if (ranks) {
        look_around(phase, ranks, count);
        if (grace > SEES) { /* one that has just reported, and is ending, looks like one that has not begun */
            nanosleep(&(struct timespec){ 1, 0 }, NULL);
            memset(ranks, NOT_HERE, (size_t)count);
            look_around(phase, ranks, count);
        }
        if (yields(ranks, count, rank, grace)) {
            free(ranks);
            return;
        }
        settle_mark(d->mark);
        if (count_ended(ranks, count) > 0) {
            launcher_end_later(LAUNCHER_END_MILLISECONDS);
            _Exit(d->status);
        }
        late = places_text(&whom, places, ranks, count, LATE);
        if (!late)
            late = places_text(&whom, places, ranks, count, WAITS);
        if (!late)
            places_text(&whom, places, ranks, count, NOT_HERE);
        if (!places && late)
            buffer_format(&whom, " on host %s", self.host);
        else if (!places && whom.length)
            buffer_append_text(&whom, " on another host");
    }
    log_init(&log, "trainer", 2);
    log_line(&log, "rank %d on host %s: waited %g s for %s to %s MPI; ending all ranks", rank, self.host, d->deadline,
             whom.length && buffer_ok(&whom) ? buffer_text(&whom) : "the other ranks",
             phase == WATCHDOG_STARTING ? "start" : "end");
    launcher_end_later(LAUNCHER_END_MILLISECONDS);
    _Exit(d->status);
}

/* 0: a rank of this host has died, or is about to abort MPI. */
static int all_run(const struct watchdog *d)
{
    const struct process *places = atomic_load(&d->places);
    int run = 1;

    for (int r = 0; places && r < d->ranks; r++) {
        char pid[24];

        snprintf(pid, sizeof pid, "%" PRId64, places[r].pid);
        run = run && (process_judge(&places[r]) == PROCESS_ELSEWHERE || phase_of(pid) == WATCHDOG_RUNNING);
    }
    return run;
}

/* Without mpirun nobody else ends a rank that waits for one that has died or ended, or that hangs. One that has a
 * stand-in was to be killed, perhaps as another host is lost: it has less time for handing over what it has. */
static void end_with_others(const struct watchdog *d, double waited)
{
    const int lent = stand_in_watched() >= 0 && waited > HAND_OVER_SECONDS;

    if (atomic_load(&d->phase) == WATCHDOG_RUNNING && (lent || waited > d->deadline || !all_run(d)))
        kill(getpid(), SIGKILL);
}

/* The launcher has ended, or the stand-in before its rank, see there: then this one dies, too, unless all is well but
 * for mpirun. */
static void outlive(struct watchdog *d)
{
    if (stand_in_watched() >= 0 &&
        (atomic_load(&d->phase) != WATCHDOG_RUNNING || !stand_in_launcher_gone(LAUNCHER_MILLISECONDS) || !all_run(d)))
        kill(getpid(), SIGKILL);
    d->launcher = -1;
    atomic_store(&d->outlives, 1);
}

int watchdog_outlives(const struct watchdog *d)
{
    return !d || atomic_load(&d->outlives);
}

static void *watch(void *context)
{
    struct watchdog *d = context;
    double waited = 0, last = clock_monotonic();
    const int quiet = stand_in_watched() >= 0 ? FOLLOW_MILLISECONDS : -1;
    int watched = -1, grace = SEES, alone = 0;

    for (;;) {
        const int phase = atomic_load(&d->phase);
        struct pollfd news[] = { { d->changed, POLLIN, 0 }, { d->launcher, POLLIN, 0 } };
        uint64_t count;
        double passed;

        if (phase == WATCHDOG_PHASES)
            return NULL;
        if (watched != phase)
            waited = 0, grace = SEES;
        watched = phase;
        poll(news, 2, phase == WATCHDOG_RUNNING && !alone ? quiet : LOOK_MILLISECONDS);
        if (!alone)
            stand_in_follow();
        if (news[0].revents && read(d->changed, &count, sizeof count) < 0)
            return NULL;
        if (news[1].revents) {
            outlive(d);
            alone = 1;
            waited = 0;
        }
        passed = clock_monotonic() - last;
        last += passed;
        d->stood = passed >= d->deadline / 2 ? passed : d->stood;
        if (phase == WATCHDOG_STARTING && to_end)
            end_as_told(d);
        waited += passed < 0.1 ? passed : 0.1; /* time in which the run was stopped does not count */
        if (alone)
            end_with_others(d, waited);
        if (phase == WATCHDOG_RUNNING || waited <= d->deadline + places_precedence(d->deadline, preceding[grace]) ||
            atomic_load(&d->phase) != phase)
            continue;
        give_up(d, phase, grace);
        grace += grace < ANYONE;
    }
}

struct watchdog *watchdog_start(double deadline, int status)
{
    struct watchdog *d = calloc(1, sizeof *d);
    sigset_t all, before;
    int rc;

    if (!d)
        return NULL;
    d->deadline = deadline;
    d->status = status;
    d->changed = eventfd(0, EFD_CLOEXEC);
    d->launcher = stand_in_watched();
    d->outlives = d->launcher < 0;
    if (d->outlives)
        d->launcher = (int)syscall(SYS_pidfd_open, getppid(), 0U); /* until this process ends */
    if (d->changed >= 0)
        listen_for_end(d);
    sigfillset(&all); /* signals are for the main thread, whose pauses they interrupt */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = d->changed < 0 ? -1 : pthread_create(&d->thread, NULL, watch, d);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        if (d->changed >= 0) {
            listen_no_more(d);
            close(d->changed);
        }
        free(d);
        return NULL;
    }
    pthread_setname_np(d->thread, names[WATCHDOG_STARTING]);
    return d;
}

void watchdog_know(struct watchdog *d, const struct process *places, int ranks)
{
    if (!d)
        return;
    d->ranks = ranks;
    atomic_store(&d->places, places);
}

static void enter(struct watchdog *d, int phase)
{
    const uint64_t one = 1;
    ssize_t ignored;

    atomic_store(&d->phase, phase);
    ignored = write(d->changed, &one, sizeof one); /* eight bytes to an eventfd that is read */
    (void)ignored;
}

void watchdog_enter(struct watchdog *d, enum watchdog_phase phase)
{
    if (!d)
        return;
    pthread_setname_np(d->thread, names[phase]);
    if (atomic_load(&d->phase) == WATCHDOG_STARTING && phase != WATCHDOG_STARTING)
        listen_no_more(d);
    enter(d, (int)phase);
}

void watchdog_stop(struct watchdog *d)
{
    if (!d)
        return;
    if (atomic_load(&d->phase) == WATCHDOG_STARTING)
        listen_no_more(d);
    enter(d, WATCHDOG_PHASES);
    pthread_join(d->thread, NULL);
    close(d->changed);
    free(d);
}
