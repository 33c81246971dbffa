/*
 * memory_kills.h - tells whether the kernel has ended processes for lack of memory in this process's control group, as
 * it does in containers and jobs with a limit: all that such a process leaves is SIGKILL. Linux counts them in
 * memory.events (cgroup v2) or memory.oom_control (v1); kernel's Documentation/admin-guide/cgroup-v2.rst and
 * cgroup-v1/memory.rst.
 */
#ifndef BASE_PROGRAM_MEMORY_KILLS_H
#define BASE_PROGRAM_MEMORY_KILLS_H

#include <stdint.h>

/* How many there were since the group was made; 0 also where that is not known. */
int64_t memory_kills(void);

enum { MEMORY_KILLS_TEXT_MAX = 128 };

/* What a sentence about the end of a process may go on with, if there were more than `before`: "; the kernel ended a
 * process here for lack of memory (limit of its control group: 120 MiB)"; otherwise "". Returns out,
 * MEMORY_KILLS_TEXT_MAX bytes. */
const char *memory_kills_text(int64_t before, char *out);

#endif
