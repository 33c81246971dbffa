/*
 * training_lock.h - allows one trainer at a time in a checkpoint directory, and only if the files that it replaces are
 * a trainer's. On one host the kernel's lock on the directory ensures that (directory_lock.h); beyond it, training.json
 * does: a "running" trainer is respected while its process lives on this host or, on another, while the file is
 * renewed, unless the user overrides it (take_over).
 */
#ifndef TRAINER_TRAINING_LOCK_H
#define TRAINER_TRAINING_LOCK_H

#include "base/error.h"

/* OK: *fd holds the lock until it is closed; -1: kernel locks are not supported here. TRAINING_LOCK_SAVING: the trainer
 * that training.json names is gone, but its saver (saver.h) has not ended; try again. ERR_PEER:
 * another trainer works here, and e names host and process if known. */
enum { TRAINING_LOCK_SAVING = 1 };
int training_lock_take(const char *checkpoint_directory, int take_over, int *fd, struct error *e);

/* Checks that the locked directory is still at its path. OK: it is. 1: it was deleted, moved or replaced; it was made
 * again and locked, *fd is the new lock, and the old content is not there. ERR_IO, ERR_PEER, ERR_ARG: it cannot be
 * made, or a trainer may not work there; the next call tries again. */
int training_lock_keep(const char *checkpoint_directory, int *fd, struct error *e);

/* Call before replacing any of them: checks that training.json and `checkpoint` do not exist, or are regular files with
 * the right content, or empty (or zeros, as a power cut leaves them). ERR_ARG names one that is not. */
int training_files_check(const char *checkpoint_directory, struct error *e);

/* Removes what a killed trainer left half written. Only for the holder of the kernel's lock. */
void training_files_tidy(const char *checkpoint_directory);

#endif
