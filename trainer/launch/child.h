/*
 * child.h - runs jobs as children of this process, each in a process group of its own with nothing on standard input,
 * so that a terminal's Ctrl-C reaches it once: from here. Signals to this process are passed on; if this process is
 * killed, the children are terminated.
 */
#ifndef TRAINER_LAUNCH_CHILD_H
#define TRAINER_LAUNCH_CHILD_H

#include "base/error.h"

#include <stddef.h>

struct child_end {
    int status; /* as a shell has it: 128 + the number of the signal that killed it */
    int asked;  /* the last signal that asked this process, and so the child, to end; 0: none did */
};

/* Runs the words, NULL at the end, until the child ends. ERR_IO: it could not be started. Not while this process has
 * threads. */
int child_run(const char *const *words, struct child_end *out, struct error *e);

enum { CHILDREN_MOST = 2 };
struct child {
    const char *const *words;    /* NULL at the end */
    const char *output, *errors; /* files to which it writes, made anew; NULL: where this process writes */
    struct child_end end;        /* out */
};

/* Runs `count` children beside each other until all have ended. If the first one fails, the others are terminated.
 * `look` (NULL: none) is called a few times a second meanwhile. ERR_IO: one could not be started; then none is left. */
int children_run(struct child *children, size_t count, void (*look)(void *context), void *context, struct error *e);

#endif
