/*
 * command_guard.h - a command under a guard: a process between us and the command that outlives both for a moment, so
 * that nothing the command started stays behind. The guard is the subreaper of the command: whatever loses its parent,
 * by a double fork or setsid(), becomes the guard's child. Once the command has ended, what is left of its process
 * group gets SIGTERM. Everything gets SIGKILL when that is asked for, and when we die, of whatever (then the kernel
 * signals the guard). The guard ends when nothing is left that it may kill. It has no descriptors but the one for its
 * report, its own process group, and ignores all signals but SIGKILL and its own two; if it is killed, the command is
 * killed by the kernel, and what the command started is not. All calls come from one thread: the guard takes the end of
 * the thread that started it for ours.
 */
#ifndef EVALUATOR_SCORE_COMMAND_GUARD_H
#define EVALUATOR_SCORE_COMMAND_GUARD_H

#include "base/error.h"

#include <sys/types.h>

struct command_guard { /* changed by command_guard.c only */
    pid_t pid;
    int report_fd;         /* readable when the command or the guard has ended; -1: nothing more will come */
    int reported;          /* the command has ended: */
    int not_started;       /* errno of why it could not be run, or */
    int status;            /* its status as waitpid() has it */
};

struct command_streams { /* of the command; borrowed for the call */
    int output, errors;
};

/* Runs words[0], found by PATH, in a process group of its own, with nothing on its standard input, our signal handlers
 * and the ignoring of SIGPIPE and SIGXFSZ undone. ERR_IO: there could be no guard, e->system says why. OK: g is to be
 * waited for. Does not wait until the command runs; whether it could be run is in its report. */
int command_guard_start(struct command_guard *g, char *const *words, char *const *environment,
                        struct command_streams streams, struct error *e);

/* Takes the report if it is there. 1: the guard has ended, nothing is left. Never blocks. */
int command_guard_look(struct command_guard *g);

void command_guard_terminate(const struct command_guard *g); /* SIGTERM for the group of the command */
void command_guard_kill(const struct command_guard *g);      /* SIGKILL for all */

/* Waits for the end of the guard, and closes. */
void command_guard_wait(struct command_guard *g);

#endif
