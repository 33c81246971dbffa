#include "trainer/saver.h"

#include "base/clock.h"
#include "base/program/log.h"
#include "base/program/memory_kills.h"
#include "trainer/training_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { ALIGNMENT = 4096, BEFORE_MAX = 64 << 20, TORN = -1 }; /* bytes; and no step */

/* What both processes see from the start. Sizes and places are in bytes; the file has the tensors
 * and three places for a state: the state itself, the copy for a checkpoint, and that before the update that is being
 * made. */
struct page {
    char directory[PATH_MAX];
    size_t keep;
    int quiet;
    size_t arrays[ARRAY_KINDS], losses, losses_size; /* in a state */
    size_t places[SAVER_SOURCES], state_size, tensors, tensors_size, tensor_count;
    int64_t saved;                 /* as in the task */
    _Atomic int64_t whole, before; /* the steps of the state and of that before; TORN */
    _Atomic int will;              /* which of the two counts */
    struct training_state wills[2];
    _Atomic int settled;
};

/* Memory of the file that this process has mapped. */
struct mapping {
    char *at;
    size_t size;
};

struct saver {
    struct page *page;
    int file, channel;
    size_t length; /* of the file */
    pid_t pid;     /* 0: it has ended */
    int status;
    struct mapping states[SAVER_SOURCES], tensors;
    /* in the saver itself */
    const struct io *io;
    int lock;
    int64_t saved;
};

enum command { KNOW, LOCK, SAVE };
struct message {
    enum command command;
    enum saver_source what;
    int64_t step;
};

static size_t rounded(size_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int map(const struct saver *s, struct mapping *m, size_t from, size_t size, struct error *e)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, s->file, (off_t)from);

    if (at == MAP_FAILED)
        return error_memory(e, NULL, "for %zu bytes that are shared with the process that saves", size);
    *m = (struct mapping){ at, size };
    return OK;
}

/* The same where the file must first have room. */
static int map_new(struct saver *s, struct mapping *m, size_t from, size_t size, struct error *e)
{
    const size_t end = from + size;

    if (end > s->length && ftruncate(s->file, (off_t)end) < 0)
        return error_memory(e, NULL, "for %zu bytes that are shared with the process that saves", size);
    s->length = end > s->length ? end : s->length;
    return map(s, m, from, size, e);
}

static void unmap(struct mapping *m)
{
    if (m->at)
        munmap(m->at, m->size);
    m->at = NULL;
}

void saver_values(const struct saver *s, enum saver_source what, int64_t step, struct training_values *out)
{
    const char *at = s->states[what].at;

    for (int k = 0; k < ARRAY_KINDS; k++)
        out->arrays[k] = (const real *)(const void *)(at + s->page->arrays[k]);
    out->losses = (const struct loss_average *)(const void *)(at + s->page->losses);
    out->step = step;
}

/* ---- the saver --------------------------------------------------------------------------------------------------- */

/* It is no rank: who looks for ranks by what the launcher says in their environments must not find it. */
static void forget_launcher(void)
{
    static const char *const names[] = { "PMIX_", "PMI_", "OMPI_COMM_WORLD_" };

    for (char **v = environ; v && *v; v++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (!strncmp(*v, names[i], strlen(names[i])))
                memset(*v, 0, strlen(*v));
}

/* Keeps standard error, and what it shares with its owner. */
static void close_others(const struct saver *s)
{
    const int low = s->file < s->channel ? s->file : s->channel, high = s->file < s->channel ? s->channel : s->file;
    const int nothing = open("/dev/null", O_RDWR);

    if (nothing >= 0) {
        dup2(nothing, 0);
        dup2(nothing, 1);
    }
    syscall(SYS_close_range, 3U, (unsigned)low - 1, 0U);
    syscall(SYS_close_range, (unsigned)low + 1, (unsigned)high - 1, 0U);
    syscall(SYS_close_range, (unsigned)high + 1, UINT_MAX, 0U);
}

static int write_checkpoint(struct saver *s, enum saver_source what, int64_t step, struct error *e)
{
    const struct training_tensors tensors = { (void *)s->tensors.at, s->page->tensor_count };
    struct training_values values;
    int rc = OK;

    if (!s->states[what].at)
        rc = map(s, &s->states[what], s->page->places[what], s->page->state_size, e);
    if (rc < 0)
        return rc;
    saver_values(s, what, step, &values);
    rc = training_checkpoint_write(s->io, s->page->directory, s->page->keep, &tensors, &values, e);
    if (rc >= 0)
        s->saved = step;
    return rc;
}

static int learn(struct saver *s)
{
    s->saved = s->page->saved;
    return map(s, &s->tensors, s->page->tensors, s->page->tensors_size, NULL) == OK;
}

/* The next message, with a descriptor or -1. 0: the owner has ended. */
static int next_message(const struct saver *s, struct message *m, int *fd)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    struct iovec part = { m, sizeof *m };
    struct msghdr whole = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control
    };
    const struct cmsghdr *c;
    ssize_t n;

    do
        n = recvmsg(s->channel, &whole, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    *fd = -1;
    if (n == sizeof *m && (c = CMSG_FIRSTHDR(&whole)) && c->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(c), sizeof *fd);
    return n == sizeof *m;
}

/* The directory is still that of the owner, or of nobody. */
static int is_owners(const struct saver *s, const struct training_state *will)
{
    struct training_state there;

    return training_state_read(s->page->directory, &there, NULL) != 1 || there.process.pid == 0 ||
           (there.process.pid == will->process.pid && there.process.start == will->process.start &&
            !strcmp(there.process.host, will->process.host));
}

/* SIGKILL for lack of memory leaves nobody else to say so. */
static void say_memory(const char *memory)
{
    struct log log;

    log_init(&log, "trainer", 2);
    if (*memory)
        log_line(&log, "%s", memory + strspn(memory, "; "));
}

/* The owner has ended, and did not say that nothing is left to do. memory: as memory_kills_text(). */
static void execute_will(struct saver *s, const char *memory)
{
    struct training_state will = s->page->wills[atomic_load(&s->page->will)];
    const int64_t whole = atomic_load(&s->page->whole), step = whole != TORN ? whole : atomic_load(&s->page->before);
    struct error e = { 0 };
    struct log log;
    size_t length;
    int rc = training_lock_keep(s->page->directory, &s->lock, &e);

    log_init(&log, NULL, 2);
    if (!will.process.pid) /* it had not begun */
        return;
    if (rc == 1)
        s->saved = -1;
    if (rc == OK && !is_owners(s, &will))
        return;
    if (rc >= 0 && step != TORN && step != s->saved) {
        if (!s->page->quiet)
            log_line(&log, "Saving checkpoints for %" PRId64 " into %s/model.ckpt.", step, s->page->directory);
        rc = write_checkpoint(s, whole != TORN ? SAVER_STATE : SAVER_BEFORE, step, &e);
    }
    if (rc < 0 && step != TORN)
        log_line(&log, "trainer: no checkpoint of step %" PRId64 ": %s", step, e.message);
    if (step != TORN)
        will.global_step = step;
    if (s->saved != will.global_step)
        snprintf(will.state, sizeof will.state, "failed");
    length = strlen(will.reason);
    snprintf(will.reason + length, sizeof will.reason - length, "%s", memory);
    will.updated = clock_wall();
    if (training_state_write(s->page->directory, &will, &e) < 0)
        log_line(&log, "trainer: %s", e.message);
    training_state_tidy(s->page->directory, &will.process);
}

static _Noreturn void serve(struct saver *s)
{
    static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ, SIGUSR1, SIGQUIT, SIGTSTP };
    const int64_t kills = memory_kills();
    char memory[MEMORY_KILLS_TEXT_MAX];
    struct message m;
    int known = 0, fd;

    setsid();
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    prctl(PR_SET_NAME, "trainer: saver", 0UL, 0UL, 0UL);
    forget_launcher();
    close_others(s);
    while (next_message(s, &m, &fd)) {
        struct saver_answer answer = { .rc = OK };

        if (m.command == KNOW || m.command == LOCK) {
            if (s->lock >= 0)
                close(s->lock);
            s->lock = fd;
        }
        if (m.command == KNOW && !(known = learn(s)))
            break;
        if (m.command != SAVE)
            continue;
        answer.rc = write_checkpoint(s, m.what, m.step, &answer.failure);
        answer.ended_at = clock_monotonic();
        send(s->channel, &answer, sizeof answer, MSG_NOSIGNAL);
    }
    if (!atomic_load(&s->page->settled)) {
        say_memory(memory_kills_text(kills, memory));
        if (known)
            execute_will(s, memory);
    }
    for (;;)
        _exit(0);
}

/* ---- its owner --------------------------------------------------------------------------------------------------- */

static int fork_off(struct saver *s)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    s->pid = fork();
    if (s->pid == 0) {
        close(ends[0]);
        s->channel = ends[1];
        serve(s);
    }
    close(ends[1]);
    s->channel = ends[0];
    if (s->pid > 0)
        return 0;
    s->pid = 0;
    return -1;
}

int saver_start(struct saver **out, const struct io *io, struct error *e)
{
    struct saver *s = calloc(1, sizeof *s);

    if (!s)
        return error_memory(e, NULL, "to start a process that saves");
    s->io = io;
    s->file = s->channel = s->lock = -1;
    s->saved = -1;
    s->page = mmap(NULL, rounded(sizeof *s->page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s->page == MAP_FAILED)
        s->page = NULL;
    if (s->page) {
        atomic_store(&s->page->whole, TORN);
        atomic_store(&s->page->before, TORN);
    }
    if (!s->page || (s->file = memfd_create("training", MFD_CLOEXEC)) < 0 || fork_off(s) < 0) {
        error_system(e, "cannot start a process that saves checkpoints");
        saver_free(s);
        return ERR_IO;
    }
    *out = s;
    return OK;
}

int saver_take(struct saver *s, struct optimizer *o, const struct loss_averages *losses, struct error *e)
{
    struct page *p = s->page;
    real *to[ARRAY_KINDS];
    size_t at = 0;
    int rc;

    for (int k = 0; k < ARRAY_KINDS; k++) {
        p->arrays[k] = at;
        at += rounded(optimizer_array(o, (enum optimizer_array_kind)k).count * sizeof(real));
    }
    p->losses = at;
    p->losses_size = losses->count * sizeof *losses->items;
    p->state_size = rounded(at + p->losses_size + 1);
    p->tensors = p->state_size * SAVER_SOURCES;
    for (int i = 0; i < SAVER_SOURCES; i++)
        p->places[i] = p->state_size * (size_t)i;
    if ((rc = map_new(s, &s->states[SAVER_STATE], 0, p->state_size, e)) < 0)
        return rc;
    if (p->state_size <= BEFORE_MAX &&
        (rc = map_new(s, &s->states[SAVER_BEFORE], p->places[SAVER_BEFORE], p->state_size, e)) < 0)
        return rc;
    for (int k = 0; k < ARRAY_KINDS; k++)
        to[k] = (real *)(void *)(s->states[SAVER_STATE].at + p->arrays[k]);
    optimizer_move(o, to);
    return OK;
}

/* 0: it is gone. */
static int tell_saver(struct saver *s, const struct message *m, int fd)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = { 0 };
    const union { /* sendmsg does not write to it */
        const struct message *given;
        void *taken;
    } bytes = { m };
    struct iovec part = { bytes.taken, sizeof *m };
    struct msghdr whole = { .msg_iov = &part, .msg_iovlen = 1 };
    struct cmsghdr *c;
    ssize_t n;

    if (fd >= 0) {
        whole.msg_control = control;
        whole.msg_controllen = sizeof control;
        c = CMSG_FIRSTHDR(&whole);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    do
        n = sendmsg(s->channel, &whole, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == sizeof *m;
}

int saver_know(struct saver *s, const struct saver_task *task, struct error *e)
{
    struct page *p = s->page;
    int rc;

    if (snprintf(p->directory, sizeof p->directory, "%s", task->directory) >= (int)sizeof p->directory)
        return error_set(e, ERR_ARG, "%s: too long a path", task->directory);
    p->keep = task->keep;
    p->quiet = task->quiet;
    p->saved = task->saved;
    p->tensor_count = task->tensors.count;
    p->tensors_size = rounded(task->tensors.count * sizeof *task->tensors.items + 1);
    if ((rc = map_new(s, &s->tensors, p->tensors, p->tensors_size, e)) < 0)
        return rc;
    memcpy(s->tensors.at, task->tensors.items, task->tensors.count * sizeof *task->tensors.items);
    return tell_saver(s, &(struct message){ .command = KNOW }, task->lock)
               ? OK
               : error_set(e, ERR_IO, "the process that saves checkpoints is gone");
}

void saver_lock(struct saver *s, int lock)
{
    tell_saver(s, &(struct message){ .command = LOCK }, lock);
}

void saver_whole(struct saver *s, const struct loss_averages *losses, int64_t step)
{
    atomic_store(&s->page->whole, TORN);
    if (losses->count)
        memcpy(s->states[SAVER_STATE].at + s->page->losses, losses->items, s->page->losses_size);
    atomic_store(&s->page->whole, step);
}

void saver_changes(void *context)
{
    struct saver *s = context;
    const int64_t step = atomic_load(&s->page->whole);

    if (step != TORN && s->states[SAVER_BEFORE].at) {
        atomic_store(&s->page->before, TORN);
        memcpy(s->states[SAVER_BEFORE].at, s->states[SAVER_STATE].at, s->page->state_size);
        atomic_store(&s->page->before, step);
    }
    atomic_store(&s->page->whole, TORN);
}

void saver_torn(struct saver *s)
{
    atomic_store(&s->page->before, TORN);
    atomic_store(&s->page->whole, TORN);
}

void saver_will(struct saver *s, const struct training_state *will)
{
    const int other = !atomic_load(&s->page->will);

    s->page->wills[other] = *will;
    atomic_store(&s->page->will, other);
}

int saver_copy(struct saver *s, const struct loss_averages *losses, struct error *e)
{
    struct mapping *copy = &s->states[SAVER_COPY];
    int rc = copy->at ? OK : map_new(s, copy, s->page->places[SAVER_COPY], s->page->state_size, e);

    if (rc < 0)
        return rc;
    memcpy(copy->at, s->states[SAVER_STATE].at, s->page->losses);
    if (losses->count)
        memcpy(copy->at + s->page->losses, losses->items, s->page->losses_size);
    return OK;
}

int saver_ask(struct saver *s, enum saver_source what, int64_t step)
{
    return tell_saver(s, &(struct message){ SAVE, what, step }, -1);
}

int saver_wait(struct saver *s, double seconds)
{
    struct pollfd p = { s->channel, POLLIN, 0 };

    return poll(&p, 1, seconds > 0 ? (int)(seconds * 1e3) + 1 : 0) > 0;
}

int saver_answered(struct saver *s, struct saver_answer *out, double seconds)
{
    ssize_t n;

    if (!saver_wait(s, seconds))
        return 0;
    n = recv(s->channel, out, sizeof *out, MSG_DONTWAIT);
    return n == sizeof *out ? 1 : n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

int saver_dismiss(struct saver *s, int settled)
{
    pid_t ended;

    if (!s->pid)
        return s->status;
    atomic_store(&s->page->settled, settled);
    close(s->channel);
    s->channel = -1;
    do
        ended = waitpid(s->pid, &s->status, 0);
    while (ended < 0 && errno == EINTR);
    if (ended != s->pid)
        s->status = -1;
    s->pid = 0;
    return s->status;
}

void saver_free(struct saver *s)
{
    if (!s)
        return;
    saver_dismiss(s, 1);
    for (int i = 0; i < SAVER_SOURCES; i++)
        unmap(&s->states[i]);
    unmap(&s->tensors);
    if (s->page)
        munmap(s->page, rounded(sizeof *s->page));
    if (s->file >= 0)
        close(s->file);
    if (s->channel >= 0)
        close(s->channel);
    free(s);
}
