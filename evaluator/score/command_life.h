/*
 * command_life.h - when a command that was started is told to end, when it is killed and when it is over: the deciding
 * half of command_process.h. Pure: what is known and the time go in, what to do comes out. Times are monotonic seconds.
 *
 *   it runs ---- longer than its timeout, or stop(): TERMINATE ----> it was told ---- the grace is over: KILL
 *      |                                                                 |
 *      `--------------- the command has ended, or its guard -------------'
 *                                     v
 *   it is leaving: its output is read to the end, but for no longer than a second. Then what it left behind is killed:
 *   KILL, and it is OVER when its guard has ended, too
 */
#ifndef EVALUATOR_SCORE_COMMAND_LIFE_H
#define EVALUATOR_SCORE_COMMAND_LIFE_H

enum { COMMAND_GRACE_SECONDS = 5 }; /* from SIGTERM to SIGKILL, for one that is late */

struct command_life { /* changed by command_life.c only */
    double started;
    double kill_at;  /* SIGKILL then, after a SIGTERM or where it is leaving; infinity: none, or sent */
    double leave_at; /* leaving: its output is read no longer than until then */
    int leaving;     /* it has ended, its output is read to the end */
    int late;        /* it ran longer than its timeout */
};

struct command_facts {
    int gone;  /* the guard has ended: nothing is left of the command but perhaps output */
    int ended; /* the command has */
    int open;  /* an output of it is not at its end */
};

enum command_act { COMMAND_WAIT, COMMAND_TERMINATE, COMMAND_KILL, COMMAND_OVER };

void command_life_begin(struct command_life *l, double now);
/* timeout: seconds; 0: never. */
enum command_act command_life_look(struct command_life *l, const struct command_facts *facts, double timeout,
                                   double now);
/* It is to end; SIGKILL after that many seconds, or when that was to come already. TERMINATE, or WAIT: it was told
 * before, or has ended. */
enum command_act command_life_stop(struct command_life *l, double grace, double now);
/* Seconds until look() has something to do although no fact has changed; infinity for never. */
double command_life_due(const struct command_life *l, double timeout, double now);

#endif
