/*
 * child.h - runs a job as a child of this process, in a process group of its own with nothing on standard input, so
 * that a terminal's Ctrl-C reaches it once: from here. Signals to this process are passed on; if this process is
 * killed, the child is terminated.
 */
#ifndef TRAINER_LAUNCH_CHILD_H
#define TRAINER_LAUNCH_CHILD_H

#include "base/error.h"

struct child_end {
    int status; /* as a shell has it: 128 + the number of the signal that killed it */
    int asked;  /* the last signal that asked this process, and so the child, to end; 0: none did */
};

/* Runs the words, NULL at the end, until the child ends. ERR_IO: it could not be started. Not while this process has
 * threads. */
int child_run(const char *const *words, struct child_end *out, struct error *e);

#endif
