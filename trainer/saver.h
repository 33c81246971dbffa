/*
 * saver.h - a process that saves checkpoints for the one that trains, whatever becomes of that: launchers kill ranks,
 * some 0.2 s after SIGTERM whatever their options say. It is forked before MPI starts, while there is one thread, into
 * a session of its own, and ends with its owner.
 *
 * The optimizer's arrays lie in memory that both map, so what the owner leaves behind is the state itself; a checkpoint
 * that is written beside the training needs a copy. If the owner ends without saver_dismiss(), even by SIGKILL, the
 * saver first ends the checkpoint at which it is, then saves the state if it has a whole update that no checkpoint has
 * yet, and writes the owner's will into training.json, with that step. What does not succeed is said on standard error,
 * if that still leads anywhere.
 *
 * What is promised: the last whole update is saved, whenever the owner ends. Whoever changes the state says so before
 * (saver_changes()) and says after it which update it has (saver_whole()); in between, the state of the update before
 * is in a copy that is made first, if it has at most 64 MiB: that takes a few thousandths of a step, as the update
 * itself does. A larger state is not copied: a process that is killed by SIGKILL in the middle of an update, some
 * hundredths of a step long, then leaves the newest checkpoint, or the one that is being written. Signals that may be
 * caught, and the launcher's death, always find time to end the update. A strategy whose state is on servers has a
 * whole one only while it is collected for a checkpoint.
 *
 * The kernel's lock on the checkpoint directory is held by the saver, too, so a training that starts meanwhile waits
 * (training_lock.h). One thread.
 */
#ifndef TRAINER_SAVER_H
#define TRAINER_SAVER_H

#include "base/error.h"
#include "base/io.h"
#include "checkpoint/directory/training_state.h"
#include "trainer/training_checkpoint.h"

#include <stddef.h>
#include <stdint.h>

struct saver;

/* Starts the process. io: with which it writes, as it is now; NULL: io_real. On OK *out is yours, saver_free() it. */
int saver_start(struct saver **out, const struct io *io, struct error *e);
/* Moves the optimizer's arrays into the common memory. After an error they are where they were. */
int saver_take(struct saver *s, struct optimizer *o, const struct loss_averages *losses, struct error *e);

/* What it must know before it can save. Strings are copied. */
struct saver_task {
    const char *directory;
    size_t keep;
    int quiet;
    int lock; /* of the directory; -1: none */
    struct training_tensors tensors;
    int64_t saved; /* the step of the newest checkpoint; -1: none */
};
/* After saver_take(). It does nothing at its owner's end before the first saver_will(). */
int saver_know(struct saver *s, const struct saver_task *task, struct error *e);
/* The directory was made again, and this is its lock. */
void saver_lock(struct saver *s, int lock);

/* The state is whole, as of that step, with these averages. */
void saver_whole(struct saver *s, const struct loss_averages *losses, int64_t step);
/* An update begins, after which it will be whole again. context: the struct saver. */
void saver_changes(void *context);
/* The state is not whole, and what it was before must not be saved either. */
void saver_torn(struct saver *s);
/* What training.json is to say if this process ends now: state, reason, signal and what else it has. "stopped"
 * becomes "failed" unless that step is saved. global_step and `updated` are the saver's. */
void saver_will(struct saver *s, const struct training_state *will);

/* Copies the state, with these averages. ERR_NOMEM. */
int saver_copy(struct saver *s, const struct loss_averages *losses, struct error *e);
/* Asks it to save the copy or the state itself, which must then not change until the answer. 0: it is gone. */
enum saver_source { SAVER_STATE, SAVER_COPY, SAVER_BEFORE, SAVER_SOURCES };
int saver_ask(struct saver *s, enum saver_source what, int64_t step);
struct saver_answer {
    int rc;          /* as training_checkpoint_write() */
    double ended_at; /* monotonic */
    struct error failure;
};
/* Waits for the answer, at most so many seconds, less if a signal comes. 1: here it is; 0: not yet; -1: it is gone. */
int saver_answered(struct saver *s, struct saver_answer *out, double seconds);
/* 1: saver_answered() has something to say. Waits likewise. */
int saver_wait(struct saver *s, double seconds);
/* The values of the copy or of the state, for a process whose saver is gone. */
void saver_values(const struct saver *s, enum saver_source what, int64_t step, struct training_values *out);

/* Ends the process, and waits for its end. settled: 1: nothing is left to do; 0: it does what it does if this process
 * ends. How it ended, as waitpid() says it; -1: not known. The common memory stays. */
int saver_dismiss(struct saver *s, int settled);
/* Also unmaps the memory: after the optimizer and its network were freed. NULL is fine. */
void saver_free(struct saver *s);

#endif
