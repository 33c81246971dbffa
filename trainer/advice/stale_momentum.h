/*
 * stale_momentum.h - warns of asynchronous updates with much momentum. With n workers a gradient is about n - 1 updates
 * old when it is applied, and momentum goes on in its direction long after: staleness acts as momentum of its own
 * (Mitliagkas et al. 2016, "Asynchrony begets momentum"), and the two together often do not converge. Measured with
 * lenet on Fashion-MNIST (momentum 0.9, rate 0.05): 2 workers train as one does, 4 stay at a loss of ln 10. Pure.
 */
#ifndef TRAINER_ADVICE_STALE_MOMENTUM_H
#define TRAINER_ADVICE_STALE_MOMENTUM_H

#include <stddef.h>

/* The warning for that many asynchronous workers, into text (size bytes), which it returns; NULL: none is due.
 * momentum: 0 for optimizers without. */
const char *stale_momentum_text(int workers, double momentum, char *text, size_t size);

#endif
