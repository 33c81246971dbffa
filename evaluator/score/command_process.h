/*
 * command_process.h - runs a command without a shell, in a process group of its own and without standard input; reads
 * its output as it comes and logs it, up to a limit. The command and all processes it started are ended together
 * (command_guard.h), also if this process dies; command_life.h decides when. All calls come from one thread, and only
 * release() blocks.
 */
#ifndef EVALUATOR_SCORE_COMMAND_PROCESS_H
#define EVALUATOR_SCORE_COMMAND_PROCESS_H

#include "base/error.h"
#include "evaluator/score/command_guard.h"
#include "evaluator/score/command_life.h"
#include "evaluator/score/command_log.h"

#include <stddef.h>
#include <stdint.h>

enum { COMMAND_STREAMS = 2 }; /* standard output, standard error */

/* of the environment */
struct command_variable {
    const char *name, *value;
};

/* This process's environment with these variables added or replaced. One block; free() it. NULL: no memory. */
char **command_process_environment(const struct command_variable *variables, size_t count);

/* only command_process.c changes it */
struct command_process {
    struct command_guard guard;
    struct command_log log;       /* the caller opens it, adds notes and closes it */
    int streams[COMMAND_STREAMS]; /* -1: none, or at its end */
    struct command_life life;
    int64_t kills_before; /* memory_kills() */
    int running;
};

/* Makes p empty. */
void command_process_init(struct command_process *p, size_t log_limit);

/* Starts words[0]; poll_fd, an epoll descriptor, becomes readable when it prints something or ends. both: merges
 * standard error into standard output. Does not wait for the exec: a failure is known at the end. */
int command_process_start(struct command_process *p, char *const *words, char *const *environment, int both,
                          int poll_fd, struct error *e);

/* Called with standard output as it comes, and never after finish. */
typedef void command_process_output(void *context, const char *bytes, size_t n);

/* Call after start: reads available output, and ends the command if it runs longer than timeout (0: never). 1: it is
 * over, call finish; 0: not yet. output may be NULL. */
int command_process_look(struct command_process *p, double timeout, command_process_output *output, void *context);
/* SIGTERM to its group; SIGKILL after `grace` seconds. */
void command_process_stop(struct command_process *p, double grace);
/* Seconds until look() is due even if nothing is readable; infinity: never. */
double command_process_due(const struct command_process *p, double timeout);

/* Call once look() has returned 1. */
void command_process_finish(struct command_process *p);
/* OK: exit status 0. Otherwise ERR_PEER or ERR_IO and a sentence; option: the name of the timeout's option. */
int command_process_outcome(const struct command_process *p, const char *program, double timeout, const char *option,
                            struct error *why);

/* Closes everything except the log; first kills a running command and waits until nothing is left of it. */
void command_process_release(struct command_process *p);

#endif
