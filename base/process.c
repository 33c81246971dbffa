#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct line { /* of /proc/PID/stat, proc_pid_stat(5); -1: not known */
    char state;
    int64_t parent, flags, start;
};

/* 0: there is no such process. The name, in brackets, may contain anything: the last bracket ends it. */
static int read_process(int64_t pid, struct line *out)
{
    char path[64], text[1024];
    char *at;
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return 0;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    if (!(at = strrchr(text, ')')) || at[1] != ' ')
        return 0;
    *out = (struct line){ at[2], -1, -1, -1 };
    at += 2;
    for (int field = 3; at && field <= 22; field++) {
        int64_t *const number = field == 4 ? &out->parent : field == 9 ? &out->flags : field == 22 ? &out->start : NULL;

        if (number)
            *number = strtoll(at, NULL, 10);
        if ((at = strchr(at, ' ')))
            at++;
    }
    return 1;
}

int process_lives(int64_t pid, int64_t process_start)
{
    struct line p;

    if (pid <= 0 || pid > INT_MAX)
        return 0;
    if (!read_process(pid, &p))
        return kill((pid_t)pid, 0) == 0 || errno != ESRCH; /* without /proc */
    return p.state != 'Z' && p.state != 'X' && (process_start < 0 || p.start < 0 || p.start == process_start);
}

int process_stopped(int64_t pid)
{
    struct line p;

    return read_process(pid, &p) && (p.state == 'T' || p.state == 't');
}

int64_t process_parent(int64_t pid)
{
    struct line p;

    return read_process(pid, &p) ? p.parent : -1;
}

int process_ends(int64_t pid)
{
    enum { PF_EXITING = 4 }; /* of the kernel's sched.h */
    struct line p;

    return !read_process(pid, &p) || (p.flags >= 0 && (p.flags & PF_EXITING));
}

static void read_boot(char *out, size_t size)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, out, size - 1);

    if (fd >= 0)
        close(fd);
    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

void process_self(struct process *out)
{
    struct line p;

    memset(out, 0, sizeof *out);
    if (gethostname(out->host, sizeof out->host - 1) < 0 || !*out->host)
        snprintf(out->host, sizeof out->host, "localhost");
    read_boot(out->boot, sizeof out->boot);
    out->pid = getpid();
    out->start = read_process(out->pid, &p) ? p.start : -1;
}

enum process_state process_judge(const struct process *p)
{
    struct process self;

    process_self(&self);
    if (strcmp(self.host, p->host) != 0)
        return PROCESS_ELSEWHERE;
    if (*self.boot && *p->boot && strcmp(self.boot, p->boot) != 0) /* this host, before it was rebooted */
        return PROCESS_GONE;
    return process_lives(p->pid, p->start) ? PROCESS_LIVES : PROCESS_GONE;
}
