/*
 * stand_in.h - lets ranks outlive a launcher that kills them, for as long as saving takes. Open MPI 4's ranks have a
 * second after a signal, and live on when mpirun is gone. MPICH's proxy, which starts the ranks of a host, kills them
 * at once when mpirun is gone, and Open MPI's mpirun and daemons do it after any signal: 5 a quarter of a second later,
 * 6 at once and without another signal. So what they start only stands in for the rank, which is a child of that, in a
 * process group that the launcher does not know. The stand-in does nothing but pass on signals and end as the rank
 * ends. If it is killed and its launcher is gone, the ranks save and end, as with Open MPI 4. But if the launcher
 * lives, mpirun ends the ranks since one has died; and if one aborts MPI, mpirun ends at once. The watchdog of each
 * rank tells these cases apart, and ends the rank in the last two.
 */
#ifndef TRAINER_COLLECTIVE_STAND_IN_H
#define TRAINER_COLLECTIVE_STAND_IN_H

#include <sys/types.h>

/* For a process that may be a rank, before MPI starts and while it has one thread. If such a launcher has started it,
 * it becomes the stand-in, and its child, the rank, begins this program anew with these arguments of main(); there this
 * function returns. NULL: the child goes on as it is. Otherwise, or if that cannot be done, does nothing. */
void stand_in_start(char *const *arguments);

/* A descriptor that can be read once this process's stand-in has ended, borrowed; -1: it has none. */
int stand_in_watched(void);

/* Stops this process if its stand-in is stopped, as Open MPI's launchers stop what they have started when they get
 * SIGTSTP. It is continued with the stand-in. To be called again and again, in a thread of its own. */
void stand_in_follow(void);

/* The launcher that started this process or its stand-in; another process or none once it has ended. */
pid_t stand_in_launcher(void);

/* After the stand-in has ended. 1: the launcher is gone; 0: not within so many milliseconds. */
int stand_in_launcher_gone(int milliseconds);

#endif
