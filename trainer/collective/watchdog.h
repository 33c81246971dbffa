/*
 * watchdog.h - ends this process if MPI's own start or end takes too long: MPI_Init and MPI_Finalize wait for all ranks
 * without a deadline, and no message can be sent before the first or after the second. So the ranks of a host read each
 * other's phase from /proc: the watchdog is a thread that is named after the phase. The rest is inferred: if all ranks
 * of this host have arrived, a rank of another host has not.
 *
 * While MPI starts, it also waits for SIGTERM, by which a launcher ends the ranks that one of them has left: it says
 * which one of this host that is, as mpirun may not know, and then ends this process by SIGTERM. While MPI runs, it
 * decides whether a rank lives on whose stand-in has ended (stand_in.h). Ranks then live on without mpirun: once one of
 * this host has ended, or after another deadline, at most 30 s if there was a stand-in, it ends this process by
 * SIGKILL, as nobody else would.
 */
#ifndef TRAINER_COLLECTIVE_WATCHDOG_H
#define TRAINER_COLLECTIVE_WATCHDOG_H

#include "base/process.h"

enum watchdog_phase { WATCHDOG_STARTING, WATCHDOG_RUNNING, WATCHDOG_ENDING, WATCHDOG_PHASES };

struct watchdog;

/* Begins with WATCHDOG_STARTING. deadline: seconds, counting only time in which this process ran. When it passes,
 * writes a line to standard error that names this rank and the missing ones, and ends the process with `status`; the
 * launcher then ends the others. NULL: no thread could be started, and there is no watchdog. Otherwise yours,
 * watchdog_stop() it. */
struct watchdog *watchdog_start(double deadline, int status);

/* Enters a phase. Only STARTING and ENDING have a deadline. NULL is fine. */
void watchdog_enter(struct watchdog *d, enum watchdog_phase phase);
void watchdog_stop(struct watchdog *d); /* NULL is fine */

/* 1: this rank lives on without its launcher (stand_in.h), or would. NULL is fine. */
int watchdog_outlives(const struct watchdog *d);

/* Tells where the ranks are, once known; borrowed until the end. NULL d is fine. */
void watchdog_know(struct watchdog *d, const struct process *places, int ranks);

#endif
