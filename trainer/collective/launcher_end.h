/*
 * launcher_end.h - sees to it that Open MPI's launcher ends when the ranks have. After the network between hosts was
 * cut, mpirun and its daemons still have messages to send to each other, and wait until the kernel gives up: a quarter
 * of an hour, in which whoever started mpirun waits, too.
 */
#ifndef TRAINER_COLLECTIVE_LAUNCHER_END_H
#define TRAINER_COLLECTIVE_LAUNCHER_END_H

enum { LAUNCHER_END_MILLISECONDS = 30000 };

/* 1 if a process with this name is a launcher that launcher_end_later() may end: mpirun, or its daemon on a host. */
int launcher_end_may(const char *name);

/* For a rank that is about to end, because the run failed or after MPI_Finalize(): if its parent is such a launcher,
 * leaves a process behind that waits for the launcher's end, and after so many milliseconds asks it to end, asks again
 * two seconds later, and kills it after five more. However the launcher has ended, its session directory is then
 * removed, if it is still there. That process ends with the launcher; it holds no file, and is in a session of its own,
 * so that the launcher neither waits for it nor ends it. May be called in any thread, and by all ranks of a host. Does
 * not wait. */
void launcher_end_later(int milliseconds);

#endif
