/*
 * command_process.h - a command in a process of its own: started without a shell in a process group of its own, with
 * nothing on its standard input; its output is read as it comes and kept in a log, up to a limit; it is ended with all
 * of its group. If this process dies, it is killed. All calls come from one thread, and none blocks for longer than a
 * process needs to die of SIGKILL.
 */
#ifndef EVALUATOR_COMMAND_PROCESS_H
#define EVALUATOR_COMMAND_PROCESS_H

#include "base/error.h"

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

enum { COMMAND_GRACE_SECONDS = 5 }; /* from SIGTERM to SIGKILL, for one that is late */

struct command_variable { /* of the environment */
    const char *name, *value;
};

/* Our environment with these variables, in place of those of the same names. One block; free() it. NULL: no memory. */
char **command_process_environment(const struct command_variable *variables, size_t count);

struct command_process { /* changed by command_process.c only */
    pid_t pid;
    int pid_fd, output_fd, log_fd; /* -1: none */
    int failed_fd;                 /* gives errno if the command could not be run; -1: none */
    char log_path[PATH_MAX];
    double started;                /* monotonic */
    double kill_at;                /* SIGTERM was sent; SIGKILL then. infinity: none, or sent */
    double leave_at;               /* it has ended; its output is read no longer than until then */
    int running, leaving;          /* leaving: it has ended, its output is read to the end */
    int late, output_ended;
    size_t logged, log_limit;      /* bytes of output in the log, of this start; and how many are kept */
};

/* p holds nothing. */
void command_process_init(struct command_process *p, size_t log_limit);
/* Opens the log for what follows, also for several starts; without one (it cannot be opened) nothing is kept. */
void command_process_open_log(struct command_process *p, const char *path);
/* A line of ours in the log, with "# " and the time before it. */
void command_process_note(const struct command_process *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Starts words[0]; poll_fd, an epoll descriptor, becomes readable when it prints something or ends. both: standard
 * error is read like standard output; else it goes into the log as it is. Does not wait for the exec: whether it failed
 * is known at the end. */
int command_process_start(struct command_process *p, char *const *words, char *const *environment, int both,
                          int poll_fd, struct error *e);

/* Called with output as it comes, and never after finish. */
typedef void command_process_output(void *context, const char *bytes, size_t n);

/* Of one that was started: reads what there is, ends it when it runs longer than timeout (0: never). 1: it is over, and
 * is to be finished; 0: not yet. output may be NULL. */
int command_process_look(struct command_process *p, double timeout, command_process_output *output, void *context);
/* SIGTERM for its group; SIGKILL after that many seconds. */
void command_process_stop(struct command_process *p, double grace);
/* Seconds until look() has something to do although nothing is readable; infinity for never. */
double command_process_due(const struct command_process *p, double timeout);

/* Kills what it left behind, and returns its status as waitpid() has it. The descriptors of the outcome stay open. */
int command_process_finish(struct command_process *p);
/* OK: exit status 0. Else ERR_PEER, ERR_IO and a sentence; option: the name of that of its timeout. */
int command_process_outcome(const struct command_process *p, int status, const char *program, double timeout,
                            const char *option, struct error *why);
/* "; see LOG", or "" without a log. */
void command_process_see(const struct command_process *p, char *out, size_t size);

/* Closes all but the log; kills it first if it runs. */
void command_process_release(struct command_process *p);
void command_process_close_log(struct command_process *p);

#endif
