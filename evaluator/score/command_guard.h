/*
 * command_guard.h - runs a command under a guard: a process between this one and the command that outlives both
 * briefly, so that no process started by the command is left behind. The guard is a subreaper: a descendant that loses
 * its parent, by a double fork or setsid(), becomes the guard's child. When the command has ended, the rest of its
 * process group gets SIGTERM. All get SIGKILL on request, and when this process dies for any reason (the kernel then
 * signals the guard). The guard ends when no process that it may kill is left. It keeps no descriptor except that of
 * its report, has its own process group, and ignores all signals except SIGKILL and its own two. If the guard is
 * killed, the kernel kills the command, but not what the command started. All calls come from one thread: the guard
 * takes the end of the thread that started it for the end of this process.
 */
#ifndef EVALUATOR_SCORE_COMMAND_GUARD_H
#define EVALUATOR_SCORE_COMMAND_GUARD_H

#include "base/error.h"

#include <sys/types.h>

/* only command_guard.c changes it */
struct command_guard {
    pid_t pid;
    int report_fd;   /* readable when the command or the guard has ended; -1: no more reports */
    int reported;    /* the command has ended: */
    int not_started; /* errno if it could not be run, else 0 */
    int status;      /* otherwise its status, as from waitpid() */
};

/* of the command; borrowed for the call */
struct command_streams {
    int output, errors;
};

/* Runs words[0], found in PATH, in a process group of its own, without standard input, and with default signal handling
 * (SIGPIPE and SIGXFSZ included). ERR_IO: the guard could not be started, e->system says why. OK: the caller must wait
 * for g. Does not wait for the exec: the report says whether it succeeded. */
int command_guard_start(struct command_guard *g, char *const *words, char *const *environment,
                        struct command_streams streams, struct error *e);

/* Takes the report if there is one. 1: the guard has ended and nothing is left. Never blocks. */
int command_guard_look(struct command_guard *g);

void command_guard_terminate(const struct command_guard *g); /* SIGTERM to the command's group */
void command_guard_kill(const struct command_guard *g);      /* SIGKILL to all */

/* Waits until the guard has ended, and closes g. */
void command_guard_wait(struct command_guard *g);

#endif
