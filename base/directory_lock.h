/*
 * directory_lock.h - the kernel's lock (flock) on a directory, for programs that allow only one process to work in it.
 * Whatever happens to the files there, even to a lock file, no second process on this host gets the lock while the
 * first lives; it ends with the process. Not every file system supports it, and few extend it to other hosts.
 */
#ifndef BASE_DIRECTORY_LOCK_H
#define BASE_DIRECTORY_LOCK_H

#include "base/error.h"

enum { DIRECTORY_LOCKED = 1 };

/* OK: *fd holds the lock until it is closed, or is -1 if such locks are not supported. DIRECTORY_LOCKED: another
 * process, or another descriptor of this one, holds it. ERR_IO: the directory cannot be opened. */
int directory_lock(const char *directory, int *fd, struct error *e);

#endif
