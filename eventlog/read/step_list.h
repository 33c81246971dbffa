/*
 * step_list.h - the steps of a series in reading order, stored as stretches with a constant stride: a log with regular
 * steps takes a few bytes however long it is. Pure. One thread at a time.
 */
#ifndef EVENTLOG_READ_STEP_LIST_H
#define EVENTLOG_READ_STEP_LIST_H

#include <stddef.h>
#include <stdint.h>

/* count > 0 steps: first, first + stride, ...; never falling */
struct step_stretch {
    int64_t first, last;
    uint64_t stride, count; /* stride 0 while count is 1, or if all steps are equal */
    int mark;
};

struct step_list {
    struct step_stretch *items;
    size_t count, capacity;
    uint64_t steps;
};

#define STEP_LIST_EMPTY \
    { \
        NULL, 0, 0, 0 \
    }

void step_list_release(struct step_list *l);

/* Adds a step with a mark chosen by the caller. 1, or 0 if memory runs out: then the list is unchanged. */
int step_list_add(struct step_list *l, int64_t step, int mark);

/* For a list of strictly rising steps: removes those from that step on. */
void step_list_cut(struct step_list *l, int64_t step);

/* How many steps have this mark. */
uint64_t step_list_marked(const struct step_list *l, int mark);

struct step_figures {
    int64_t first, last, least, most;
    uint64_t distinct;
    uint64_t out_of_order; /* pairs of neighbours whose second step is smaller */
};

/* For a list that is not empty. 1, or 0 if memory runs out, which only lists out of order need. */
int step_list_figures(const struct step_list *l, struct step_figures *f);

/* The next pair out of order; start with *at = 0. 1, or 0 if there are no more. */
int step_list_back(const struct step_list *l, size_t *at, int64_t *before, int64_t *after);

#endif
