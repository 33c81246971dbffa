/*
 * process.h - identifies a process in a file, and tells whether it still lives. Process numbers are reused, so its
 * start, in ticks since boot as in /proc, and the boot of the host identify it.
 */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <limits.h>
#include <stdint.h>

struct process {
    char host[HOST_NAME_MAX + 1], boot[40]; /* boot "": not known */
    int64_t pid, start;                     /* start -1: not known */
};

enum process_state {
    PROCESS_LIVES,     /* on this host */
    PROCESS_GONE,      /* it was on this host */
    PROCESS_ELSEWHERE, /* on another host; not known whether it lives */
};

/* The calling process. */
void process_self(struct process *out);

enum process_state process_judge(const struct process *p);

/* 1 if the process with that number and start (-1: any) lives on this host. A zombie does not live. */
int process_lives(int64_t pid, int64_t start);

/* 1 if that process is stopped, by a signal or a debugger. */
int process_stopped(int64_t pid);

/* The name that the kernel has of it. -1: it is gone, or there is no /proc. */
enum { PROCESS_NAME_MAX = 64 };
int process_name(int64_t pid, char name[PROCESS_NAME_MAX]);

#endif
