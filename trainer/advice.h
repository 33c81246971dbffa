/*
 * advice.h - what the trainer tells people about their training beside its progress. Pure.
 *
 * struct flat_loss notices a training whose loss stays where guessing would have it. It keeps the mean loss of windows
 * of at least FLAT_LOSS_STEPS global steps and FLAT_LOSS_LEAST losses, and finds the loss flat, once, when a window
 * ends with a mean that is
 *   - no better than guessing among the classes: at least 0.98 ln(classes), the cross entropy of equal chances, and
 *   - not falling: above 0.99 of the mean four windows before.
 * So it needs five windows, 500 steps or more. Losses are those of the batches, without weight decay. Pure: it changes
 * nothing that is trained or saved. One thread.
 */
#ifndef TRAINER_ADVICE_H
#define TRAINER_ADVICE_H

#include "dataset/dataset.h"

#include <stddef.h>
#include <stdint.h>

enum { FLAT_LOSS_STEPS = 100, FLAT_LOSS_LEAST = 20, FLAT_LOSS_WINDOWS = 5 };

/* Zeroed, but for classes: nothing seen. */
struct flat_loss {
    int classes;
    int64_t begun;                   /* the step before the current window */
    int64_t first;                   /* the step before the first window */
    int64_t losses;                  /* of the current window; 0: the next loss begins it */
    double sum;                      /* of them */
    double means[FLAT_LOSS_WINDOWS]; /* of the last windows, the newest last */
    int windows;                     /* complete ones */
    int told;
};

/* Takes the mean loss of the batch that made global step `step` (steps rise; those of other workers may be missing). 1,
 * once: the loss is flat. */
int flat_loss_add(struct flat_loss *f, int64_t step, double loss);

/* The sentence, into text (size bytes; cut off if too long), which it returns. stale_momentum: 1: updates are
 * asynchronous and with momentum, for which there is another advice. */
const char *flat_loss_text(const struct flat_loss *f, int64_t step, int stale_momentum, char *text, size_t size);

/* ---- share ------------------------------------------------------------------------------------------------------- */

/* Says which files a worker reads, and what it takes of them. Pure. */

/*
 * Into text (size bytes; cut off if too long), which it returns:
 *   SHARD_FILES    "rank 1 on host b reads data_batch_2.bin, data_batch_5.bin: 20000 images", for d of that worker
 *   SHARD_RECORDS  "each of 3 workers reads train.gz: 60000 images, of which it takes its part of each epoch"
 *   SHARD_NONE     "each of 3 workers reads train.gz: 60000 images, all of them in an order of its own"
 */
const char *share_text(const struct shard *s, const struct dataset *d, const char *who, char *text, size_t size);

/* ---- stale momentum ---------------------------------------------------------------------------------------------- */

/*
 * Warns of asynchronous updates with much momentum. With n workers a gradient is about n - 1 updates
 * old when it is applied, and momentum goes on in its direction long after: staleness acts as momentum of its own
 * (Mitliagkas et al. 2016, "Asynchrony begets momentum"), and the two together often do not converge. Measured with
 * lenet on Fashion-MNIST (momentum 0.9, rate 0.05): 2 workers train as one does, 4 stay at a loss of ln 10. Pure.
 */

/* The warning for that many asynchronous workers, into text (size bytes), which it returns; NULL: none is due.
 * momentum: 0 for optimizers without. */
const char *stale_momentum_text(int workers, double momentum, char *text, size_t size);

#endif
