/*
 * saving.h - the checkpoints that rank 0 saves during a run: when one is due, into which directory, and what is logged
 * of it. If the directory is deleted, moved or replaced, it is made again, and a checkpoint that was being saved is
 * saved there again. For the thread of the training loop.
 */
#ifndef TRAINER_SAVING_H
#define TRAINER_SAVING_H

#include "base/error.h"
#include "base/program/log.h"
#include "trainer/collective/world.h"
#include "trainer/training_checkpoint.h"

#include <stddef.h>
#include <stdint.h>

struct saving_options {
    const char *directory; /* borrowed; NULL: no checkpoints */
    size_t keep;           /* of the newest; 0: all */
    int64_t steps;         /* between two saves; 0: not by steps */
    double seconds;        /* between two saves; 0: not by time */
    int quiet;             /* 1: log only errors */
};

struct saving {
    struct saving_options options;
    struct optimizer *optimizer;
    const struct loss_averages *losses;
    struct world *world;
    struct log *log;
    int *lock;       /* of the directory, training_lock.h */
    int64_t saved;   /* step of the newest checkpoint of this run, or the one resumed from; -1: none */
    int64_t tried;   /* step of the last attempt to save, from which the next is counted */
    double tried_at; /* monotonic */
    int failed;      /* how many attempts failed */
    int grace_told;  /* 1: it was logged that saving takes longer than mpirun waits */
};

/* Fills in the rest: all pointers are borrowed and set before. step: where the run starts. */
void saving_begin(struct saving *s, int64_t step, int64_t saved);

/* 1: a checkpoint of this step should be saved now. */
int saving_due(const struct saving *s, int64_t step);

/* Makes sure that the directory exists: 1 if it was made again, so earlier checkpoints are elsewhere. < 0: it cannot be
 * used. */
int saving_keep_directory(struct saving *s, struct error *e);

/* Saves a checkpoint of position.global_step, whose state the optimizer must hold. After an error the earlier
 * checkpoints are unchanged. */
int saving_save(struct saving *s, const struct training_position *position, struct error *e);

/* Counts and logs a failed attempt to save that step. earlier_kept: 0 if the directory cannot be used. */
void saving_fail(struct saving *s, int64_t step, int earlier_kept, struct error *why);

#endif
