/*
 * watchdog.h - ends this process when MPI's own start or end takes too long: MPI_Init and MPI_Finalize wait for all
 * ranks without a deadline, and no message can be sent before the one or after the other. So the ranks of a host see
 * from each other's threads in /proc how far they are: the watchdog is a thread that is called after the phase. What
 * they cannot see is concluded: where all ranks of this host have come, one of another host has not.
 */
#ifndef TRAINER_COLLECTIVE_WATCHDOG_H
#define TRAINER_COLLECTIVE_WATCHDOG_H

#include "base/process.h"

enum watchdog_phase { WATCHDOG_STARTING, WATCHDOG_RUNNING, WATCHDOG_ENDING, WATCHDOG_PHASES };

struct watchdog;

/* Begins with WATCHDOG_STARTING. deadline: in seconds that this process was running in. When it passes, a line on
 * standard error names this rank and those that are missing, and the process ends with `status`, upon which the
 * launcher ends the others. NULL: no thread can be had, and nobody watches. Else yours, watchdog_stop() it. */
struct watchdog *watchdog_start(double deadline, int status);

/* The phase begins. Only STARTING and ENDING have the deadline. NULL is fine. */
void watchdog_enter(struct watchdog *d, enum watchdog_phase phase);
void watchdog_stop(struct watchdog *d); /* NULL is fine */

/* What hosts the ranks are on, as soon as that is known; borrowed until the end. NULL d is fine. */
void watchdog_know(struct watchdog *d, const struct process *places);

#endif
