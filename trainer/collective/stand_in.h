/*
 * stand_in.h - lets ranks outlive MPICH's launcher for as long as saving takes. Open MPI's ranks live on when mpirun is
 * gone, see that, and save; MPICH's proxy, which starts the ranks of a host, kills them at once. So what it starts only
 * stands in for the rank, which is a child of that, in a process group that the proxy does not know. The stand-in does
 * nothing but pass on signals and end as the rank ends. If it is killed and the proxy is gone, so is mpirun: the ranks
 * save and end, as with Open MPI. But if the proxy lives, mpirun ends the ranks since one has died; and if one aborts
 * MPI, mpirun ends at once. The watchdog of each rank tells these cases apart, and ends the rank in the last two.
 */
#ifndef TRAINER_COLLECTIVE_STAND_IN_H
#define TRAINER_COLLECTIVE_STAND_IN_H

/* For a process that may be a rank, before MPI starts and while it has one thread. If MPICH's proxy has started it, it
 * becomes the stand-in, and its child, the rank, begins this program anew with these arguments of main(); there this
 * function returns. NULL: the child goes on as it is. Otherwise, or if that cannot be done, does nothing. */
void stand_in_start(char *const *arguments);

/* A descriptor that can be read once this process's stand-in has ended, borrowed; -1: it has none. */
int stand_in_watched(void);

/* After the stand-in has ended. 1: the launcher is gone; 0: not within so many milliseconds. */
int stand_in_launcher_gone(int milliseconds);

#endif
