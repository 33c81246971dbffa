/*
 * command_process.h - a command in a process of its own: started without a shell in a process group of its own, with
 * nothing on its standard input; its output is read as it comes and kept in a log, up to a limit; it is ended with all
 * that it started (command_guard.h), also if this process dies; command_life.h says when. All calls come from one
 * thread, and none but release() blocks.
 */
#ifndef EVALUATOR_SCORE_COMMAND_PROCESS_H
#define EVALUATOR_SCORE_COMMAND_PROCESS_H

#include "base/error.h"
#include "evaluator/score/command_guard.h"
#include "evaluator/score/command_life.h"
#include "evaluator/score/command_log.h"

#include <stddef.h>

enum { COMMAND_STREAMS = 2 };       /* standard output, standard error */

struct command_variable { /* of the environment */
    const char *name, *value;
};

/* Our environment with these variables, in place of those of the same names. One block; free() it. NULL: no memory. */
char **command_process_environment(const struct command_variable *variables, size_t count);

struct command_process { /* changed by command_process.c only */
    struct command_guard guard;
    struct command_log log;       /* opened, noted in and closed by the caller */
    int streams[COMMAND_STREAMS]; /* -1: none, or ended */
    struct command_life life;
    int running;
};

/* p holds nothing. */
void command_process_init(struct command_process *p, size_t log_limit);

/* Starts words[0]; poll_fd, an epoll descriptor, becomes readable when it prints something or ends. both: standard
 * error is one stream with standard output. Does not wait for the exec: whether it failed is known at the end. */
int command_process_start(struct command_process *p, char *const *words, char *const *environment, int both,
                          int poll_fd, struct error *e);

/* Called with standard output as it comes, and never after finish. */
typedef void command_process_output(void *context, const char *bytes, size_t n);

/* Of one that was started: reads what there is, ends it when it runs longer than timeout (0: never). 1: it is over, and
 * is to be finished; 0: not yet. output may be NULL. */
int command_process_look(struct command_process *p, double timeout, command_process_output *output, void *context);
/* SIGTERM for its group; SIGKILL after that many seconds. */
void command_process_stop(struct command_process *p, double grace);
/* Seconds until look() has something to do although nothing is readable; infinity for never. */
double command_process_due(const struct command_process *p, double timeout);

/* Of one that look() found over: nothing is left of it. */
void command_process_finish(struct command_process *p);
/* OK: exit status 0. Else ERR_PEER, ERR_IO and a sentence; option: the name of that of its timeout. */
int command_process_outcome(const struct command_process *p, const char *program, double timeout, const char *option,
                            struct error *why);

/* Closes all but the log; first kills it if it runs, and waits until nothing is left of it. */
void command_process_release(struct command_process *p);

#endif
