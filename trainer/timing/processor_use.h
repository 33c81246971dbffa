/*
 * processor_use.h - how much of the processors that this process may run on other programs use meanwhile, which says
 * how far measured speeds can be believed.
 */
#ifndef TRAINER_TIMING_PROCESSOR_USE_H
#define TRAINER_TIMING_PROCESSOR_USE_H

#define PROCESSOR_USE_BUSY 0.1 /* the share from which speeds say little */

/* Up to now, in seconds; all 0: not known. */
struct processor_use {
    double all;   /* in which these processors worked, since boot */
    double own;   /* of these, for this process and its children that have ended */
    double since; /* monotonic clock */
    int processors;
};

void processor_use_now(struct processor_use *out);

/* Adds up the times of those processors that `may` has, NULL: of all, in a text of /proc/stat (proc_stat(5)): user,
 * nice, system, irq, softirq and steal. Returns their number; *ticks: the sum. Pure. */
int processor_use_sum(const char *text, int (*may)(int processor, const void *context), const void *context,
                      double *ticks);

/* The share of the processors' time between the two that other programs had, 0 to 1; -1: not known. Pure. */
double processor_use_others(const struct processor_use *before, const struct processor_use *after);

#endif
