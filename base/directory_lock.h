/*
 * directory_lock.h - the kernel's lock (flock) on a directory, for programs of which one at a time may work in it.
 * Whatever becomes of the files there, a lock file among them, no second process of this host gets it while the first
 * lives, and it ends with the process. Not every file system has it, and on few does it reach other hosts.
 */
#ifndef BASE_DIRECTORY_LOCK_H
#define BASE_DIRECTORY_LOCK_H

#include "base/error.h"

enum { DIRECTORY_LOCKED = 1 };

/* OK: *fd holds the lock until it is closed, or is -1 where there are no such locks. DIRECTORY_LOCKED: another process,
 * or another descriptor of this one, has it. ERR_IO: the directory cannot be opened. */
int directory_lock(const char *directory, int *fd, struct error *e);

#endif
