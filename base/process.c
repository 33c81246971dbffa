#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* State letter and start of a process from /proc/PID/stat; 0: there is no such process. The name, in brackets, may
 * contain anything: the last bracket ends it. */
static int read_process(int64_t pid, char *state, int64_t *start)
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
    *state = at[2];
    *start = -1;
    at += 2;
    for (int field = 3; at && field < 22; field++) /* the start is field 22 */
        if ((at = strchr(at, ' ')))
            at++;
    if (at)
        *start = strtoll(at, NULL, 10);
    return 1;
}

int process_lives(int64_t pid, int64_t process_start)
{
    int64_t start;
    char state;

    if (pid <= 0 || pid > INT_MAX)
        return 0;
    if (!read_process(pid, &state, &start))
        return kill((pid_t)pid, 0) == 0 || errno != ESRCH; /* without /proc */
    return state != 'Z' && state != 'X' && (process_start < 0 || start < 0 || start == process_start);
}

int process_stopped(int64_t pid)
{
    int64_t start;
    char state;

    return read_process(pid, &state, &start) && (state == 'T' || state == 't');
}

int process_name(int64_t pid, char name[PROCESS_NAME_MAX])
{
    char path[64];
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/%" PRId64 "/comm", pid);
    if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return -1;
    n = read(fd, name, PROCESS_NAME_MAX - 1);
    close(fd);
    if (n <= 0)
        return -1;
    name[n - (name[n - 1] == '\n')] = '\0';
    return 0;
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
    char state;

    memset(out, 0, sizeof *out);
    if (gethostname(out->host, sizeof out->host - 1) < 0 || !*out->host)
        snprintf(out->host, sizeof out->host, "localhost");
    read_boot(out->boot, sizeof out->boot);
    out->pid = getpid();
    out->start = -1;
    read_process(out->pid, &state, &out->start);
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
