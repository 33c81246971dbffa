/*
 * best_list.h - the N best of a sequence of evaluations. Of equal values the earlier is better; of a checkpoint that
 * was evaluated several times, as after a restart of the training, the best evaluation counts. Pure. One thread.
 */
#ifndef EVALUATOR_KEEP_BEST_LIST_H
#define EVALUATOR_KEEP_BEST_LIST_H

#include "base/error.h"
#include "evaluator/files/checkpoint_identity.h"

#include <stddef.h>

/* private to best_list.c */
struct best_list {
    size_t limit; /* N */
    int minimum;  /* 1: smaller is better */
    int by_step;  /* 1: the same name with a different step is a different checkpoint */
    struct best_entry {
        struct checkpoint_identity checkpoint;
        double value;
    } * items; /* best first */
    size_t count;
};

/* ERR_NOMEM. best_list_release() it. */
int best_list_init(struct best_list *l, size_t limit, int minimum, int by_step, struct error *e);
void best_list_release(struct best_list *l);

/* Adds the next evaluation; a NaN value is never among the best. */
void best_list_add(struct best_list *l, const struct best_entry *entry);
/* The i-th best, borrowed; NULL: there are fewer. */
const struct best_entry *best_list_at(const struct best_list *l, size_t i);
/* 1: both are the same checkpoint. */
int best_list_same(const struct best_list *l, const struct checkpoint_identity *a, const struct checkpoint_identity *b);

#endif
