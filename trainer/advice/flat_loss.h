/*
 * flat_loss.h - notices a training whose loss stays where guessing would have it. It keeps the mean loss of windows of
 * at least FLAT_LOSS_STEPS global steps and FLAT_LOSS_LEAST losses, and finds the loss flat, once, when a window ends
 * with a mean that is
 *   - no better than guessing among the classes: at least 0.98 ln(classes), the cross entropy of equal chances, and
 *   - not falling: above 0.99 of the mean four windows before.
 * So it needs five windows, 500 steps or more. Losses are those of the batches, without weight decay. Pure: it changes
 * nothing that is trained or saved. One thread.
 */
#ifndef TRAINER_ADVICE_FLAT_LOSS_H
#define TRAINER_ADVICE_FLAT_LOSS_H

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

#endif
