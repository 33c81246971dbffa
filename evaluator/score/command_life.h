/*
 * command_life.h - decides when a command is terminated, when it is killed and when it is over: the deciding half of
 * command_process.h. Pure: takes facts and the time, returns what to do. Times are monotonic seconds.
 *
 *   running --- longer than its timeout, or stop(): TERMINATE ---> terminating --- the grace is over: KILL
 *      |                                                               |
 *      `------------ the command or its guard has ended ---------------'
 *                                     v
 *   leaving: its output is read to the end, for a second at most. Then any processes left behind are killed:
 *   KILL, and it is OVER once its guard has ended, too
 */
#ifndef EVALUATOR_SCORE_COMMAND_LIFE_H
#define EVALUATOR_SCORE_COMMAND_LIFE_H

enum { COMMAND_GRACE_SECONDS = 5 }; /* from SIGTERM to SIGKILL after a timeout */

/* only command_life.c changes it */
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

#endif
