/*
 * results.h - DIR/results.jsonl: an outcome a line, appended when a run has ended, from which a comparison is
 * continued. An incomplete last line, left by a crash, is removed. All lines are of the same training: the words of the
 * command line that all cells share.
 */
#ifndef TRAINER_COMPARE_RESULTS_H
#define TRAINER_COMPARE_RESULTS_H

#include "trainer/compare/outcome.h"

#define RESULTS_FILE "results.jsonl"

enum { RESULTS_TRAINING = 4096 };

struct results {
    char path[4096];
    char training[RESULTS_TRAINING]; /* "": nothing was run yet */
    struct outcome *items;           /* (count) in the order of the file */
    size_t count, capacity;
};

/* Reads what is in the directory, if there is anything. ERR_ARG: the directory has other files, but no results.
 * ERR_CORRUPT: a line is none. On OK or not, results_release() it. */
int results_open(struct results *r, const char *directory, struct error *e);
void results_release(struct results *r);

/* Makes the directory and the file, if they are not there: from then on it is the directory of a comparison. */
int results_begin(const struct results *r, const char *directory, struct error *e);

/* Appends a run, down to the disk, and takes what o holds. */
int results_add(struct results *r, struct outcome *o, struct error *e);

/* 1: that cell was run in that round, and ended well. */
int results_has(const struct results *r, const char *cell, int64_t round);

#endif
