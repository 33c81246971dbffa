/*
 * saving.h - the checkpoints that rank 0 saves during a run: when one is due, who writes it, and what is logged of it.
 *
 * Another process writes them (saver.h). The training waits only for a copy of its state (memory: once more what the
 * optimizer holds, taken at the first such save and kept); the saver then writes the copy, syncs, renames, updates the
 * state file and deletes old checkpoints, all as training_checkpoint_write() does. One checkpoint is written at a time:
 * if another one is due, wait for it first, so that none is left out. Its end, good or bad, is learned and logged by
 * saving_look(). Without memory for the copy, or once the saver is gone, a checkpoint is written before saving_start()
 * returns.
 *
 * If the directory is deleted, moved or replaced, it is made again, and a checkpoint that was being written is written
 * there again. All functions are for the thread of the training loop.
 */
#ifndef TRAINER_SAVING_H
#define TRAINER_SAVING_H

#include "base/error.h"
#include "base/io.h"
#include "base/program/log.h"
#include "trainer/collective/world.h"
#include "trainer/saver.h"
#include "trainer/training_checkpoint.h"

#include <stddef.h>
#include <stdint.h>

struct saving_options {
    const char *directory; /* borrowed; NULL: no checkpoints */
    size_t keep;           /* of the newest; 0: all */
    int64_t steps;         /* save at its multiples; 0: not by steps */
    double seconds;        /* between two saves; 0: not by time */
    int quiet;             /* 1: log only errors */
};

struct saving {
    /* set by the caller before saving_open(), and borrowed */
    struct saving_options options;
    struct optimizer *optimizer;
    const struct loss_averages *losses;
    struct world *world;
    struct log *log;
    int *lock;           /* of the directory, training_lock.h */
    struct saver *saver; /* holds the optimizer's arrays; NULL: this process writes the checkpoints itself */
    const struct io *io; /* with which it then does; NULL: io_real */

    int64_t saved;   /* step of the newest whole checkpoint of this run, or the one resumed from; -1: none */
    int64_t tried;   /* step of the last attempt to save, from which the next is counted */
    double tried_at; /* monotonic: its end */
    int failed;      /* how many attempts failed */

    /* private */
    struct training_tensors tensors;
    enum saver_source from; /* of the checkpoint that was tried last */
    int rc;
    double ended_at;
    struct error failure;
    int helper;   /* 1: the saver works */
    int busy;     /* 1: it has a round */
    int rounds;   /* how often the checkpoint was written, into one directory after the other */
    int replaced; /* 1: the directory was made again since the last round began */
    size_t count; /* of checkpoints saved in this run */
    int memory_told, space_told, waiting_told; /* 1: that was logged */
};

/* position: where the run starts; saved: as in the struct. ERR_NOMEM. */
int saving_open(struct saving *s, const struct training_position *position, int64_t saved, struct error *e);
/* Waits for the checkpoint that is being written, if saving_look() was not asked, and ends the saver. settled: as in
 * saver_dismiss(). */
void saving_close(struct saving *s, int settled);

/* Between steps: the optimizer has the whole state of that step; or has not, from now on. See saver.h. */
void saving_whole(struct saving *s, int64_t step);
void saving_torn(struct saving *s);
/* saver_will(), if there is a saver. */
void saving_will(struct saving *s, const struct training_state *will);

/* 1: a checkpoint of this step should be saved now: a multiple of options.steps was reached since the last one that
 * was tried (the steps of other workers may lie between), or options.seconds have passed since the last one was
 * written. */
int saving_due(const struct saving *s, int64_t step);

/* Makes sure that the directory exists: 1 if it was made again, so earlier checkpoints are elsewhere. < 0: it cannot be
 * used. */
int saving_keep_directory(struct saving *s, struct error *e);

/* The two ways to save a checkpoint of position.global_step, whose state the optimizer must hold. Not while another one
 * is being written (saving_busy). After an error the earlier checkpoints are unchanged. */
enum { SAVING_ENDED = 1 };
/* Returns when it is saved: OK or an error. */
int saving_save(struct saving *s, const struct training_position *position, struct error *e);
/* Returns as soon as the state is copied: OK; SAVING_ENDED: it is saved already; or an error. */
int saving_start(struct saving *s, const struct training_position *position, struct error *e);

/* 1: a checkpoint is being written, or saving_look() has not been asked about it since. */
int saving_busy(const struct saving *s);
/* SAVING_ENDED, once: the checkpoint is saved. < 0, once: it failed, e says why. OK: neither. Does not wait. */
int saving_look(struct saving *s, struct error *e);
/* Waits until saving_look() has something to do, at most so many seconds. */
void saving_wait(struct saving *s, double seconds);

/* The training waited so long for a checkpoint, because the next one was due: once that is a second, it is logged. */
void saving_waited(struct saving *s, double seconds);

/* Counts and logs a failed attempt to save that step. earlier_kept: 0 if the directory cannot be used. */
void saving_fail(struct saving *s, int64_t step, int earlier_kept, struct error *why);

#endif
