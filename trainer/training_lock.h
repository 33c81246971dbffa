/*
 * training_lock.h - one trainer at a time on a checkpoint directory, and only where the files that it replaces are a
 * trainer's. On one host the kernel's lock on the directory
 * says so (directory_lock.h); where that does not reach, training.json does: what it says is running is respected
 * while its process lives on this host or, on another, while it is renewed, until somebody says otherwise (take_over).
 */
#ifndef TRAINER_TRAINING_LOCK_H
#define TRAINER_TRAINING_LOCK_H

#include "base/error.h"

/* OK: *fd holds the lock until it is closed; -1: there is no lock of the kernel here. ERR_PEER: another trainer works
 * here, and e names host and process where they are known. */
int training_lock_take(const char *checkpoint_directory, int take_over, int *fd, struct error *e);

/* Whether the directory that was locked is still at its path. OK: it is. 1: it was deleted, moved or replaced; it is
 * made again and locked, *fd is the new lock, and what the old one held is not there. ERR_IO, ERR_PEER, ERR_ARG: that
 * cannot be, or a trainer may not work there; the next call tries it again. */
int training_lock_keep(const char *checkpoint_directory, int *fd, struct error *e);

/* Before any of them is replaced: training.json and `checkpoint` are not there, or are plain files that hold what
 * belongs into them, or nothing (or zeros, as a power cut leaves them). ERR_ARG names one that is not. */
int training_files_check(const char *checkpoint_directory, struct error *e);

/* Removes what a killed trainer left half written. Only for who holds the lock of the kernel. */
void training_files_tidy(const char *checkpoint_directory);

#endif
