/*
 * command_process.h - runs a command without a shell, in a process group of its own and without standard input; reads
 * its output as it comes and logs it, up to a limit. The command and all processes it started are ended together, also
 * if this process dies. All calls come from one thread, and only release() blocks. Its parts are the log, the guard
 * between us and the command, and what decides when it is ended.
 */
#ifndef EVALUATOR_SCORE_COMMAND_PROCESS_H
#define EVALUATOR_SCORE_COMMAND_PROCESS_H

#include "base/error.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- command log ------------------------------------------------------------------------------------------------- */

/*
 * A log file of a command's output, to which several runs append: of each the beginning and, once it
 * has ended, the end, together `limit` bytes; the bytes between are counted and left out, so endless output cannot fill
 * the disk. If the log cannot be opened or written, the output is dropped silently.
 */

enum { COMMAND_LOG_TAIL = 64 << 10 }; /* bytes of the end; limit must be larger */

/* only command_process.c changes it */
struct command_log {
    int fd; /* -1: none */
    char path[PATH_MAX];
    size_t limit;
    size_t head;     /* bytes of the beginning so far */
    char *tail;      /* a ring of COMMAND_LOG_TAIL bytes; NULL until the beginning is full */
    uint64_t beyond; /* bytes after the beginning, those in the ring included */
    int in_line;     /* the last byte in the file is not a newline */
};

void command_log_init(struct command_log *l, size_t limit);
void command_log_open(struct command_log *l, const char *path);
void command_log_close(struct command_log *l);

/* Adds a line of the evaluator's, after "# " and the time. */
void command_log_note(struct command_log *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds output of the command; and ends the run, after which the next begins. */
void command_log_add(struct command_log *l, const char *bytes, size_t n);
void command_log_end(struct command_log *l);

/* Sets out to ": " and the last line of output, for the reason of a failure; "" if there was none. */
void command_log_last_line(const struct command_log *l, char *out, size_t size);
/* Sets out to "; see LOG", or "" without a log. */
void command_log_see(const struct command_log *l, char *out, size_t size);

/* ---- command guard ----------------------------------------------------------------------------------------------- */

/*
 * Runs a command under a guard: a process between this one and the command that outlives both
 * briefly, so that no process started by the command is left behind. The guard is a subreaper: a descendant that loses
 * its parent, by a double fork or setsid(), becomes the guard's child. When the command has ended, the rest of its
 * process group gets SIGTERM. All get SIGKILL on request, and when this process dies for any reason (the kernel then
 * signals the guard). The guard ends when no process that it may kill is left. It keeps no descriptor except that of
 * its report, has its own process group, and ignores all signals except SIGKILL and its own two. If the guard is
 * killed, the kernel kills the command, but not what the command started. All calls come from one thread: the guard
 * takes the end of the thread that started it for the end of this process.
 */

/* only command_process.c changes it */
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

/* ---- command life ------------------------------------------------------------------------------------------------ */

/*
 * Decides when a command is terminated, when it is killed and when it is over: the deciding half of
 * command_process.h. Pure: takes facts and the time, returns what to do. Times are monotonic seconds.
 *
 *   running --- longer than its timeout, or stop(): TERMINATE ---> terminating --- the grace is over: KILL
 *      |                                                               |
 *      `------------ the command or its guard has ended ---------------'
 *                                     v
 *   leaving: its output is read to the end, for a second at most. Then any processes left behind are killed:
 *   KILL, and it is OVER once its guard has ended, too
 */

enum { COMMAND_GRACE_SECONDS = 5 }; /* from SIGTERM to SIGKILL after a timeout */

/* only command_process.c changes it */
struct command_life {
    double started;
    double kill_at;  /* when to SIGKILL, after SIGTERM or while leaving; infinity: none, or sent */
    double leave_at; /* leaving: when to stop reading its output */
    int leaving;     /* it has ended; its output is being read to the end */
    int late;        /* it ran longer than its timeout */
};

struct command_facts {
    int gone;  /* the guard has ended: at most unread output is left of the command */
    int ended; /* the command has ended */
    int open;  /* one of its outputs is not at its end */
};

enum command_act { COMMAND_WAIT, COMMAND_TERMINATE, COMMAND_KILL, COMMAND_OVER };

void command_life_begin(struct command_life *l, double now);
/* timeout: seconds; 0: never. */
enum command_act command_life_look(struct command_life *l, const struct command_facts *facts, double timeout,
                                   double now);
/* Asks the command to end; SIGKILL after `grace` seconds, or earlier if that was planned already. TERMINATE; or WAIT:
 * it was terminated before, or has ended. */
enum command_act command_life_stop(struct command_life *l, double grace, double now);
/* Seconds until look() is due without a change of facts; infinity: never. */
double command_life_due(const struct command_life *l, double timeout, double now);

/* ---- command process --------------------------------------------------------------------------------------------- */

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
