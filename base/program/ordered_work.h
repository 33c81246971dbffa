/*
 * ordered_work.h - work on items by several threads whose results are taken in the order of the items. The caller
 * fills an item, gives it, and goes on with the next; a thread runs it; the caller takes its result, once it is the
 * oldest and its place is needed, or at the end. So results do not depend on how many threads there are.
 *
 * There are as many threads as the process may use cores, at most ORDERED_WORK_THREADS. None is started for one item
 * alone, or if there is one core: then items are run when they are given, by the caller. They block all signals.
 * For one caller at a time.
 */
#ifndef BASE_PROGRAM_ORDERED_WORK_H
#define BASE_PROGRAM_ORDERED_WORK_H

#include "base/error.h"

#include <stddef.h>

enum { ORDERED_WORK_THREADS = 8 };

struct ordered_work;

struct ordered_work_calls {
    size_t item_size;                        /* an item is so many bytes, zero at first; it is used again and again */
    void (*run)(void *context, void *item);  /* by any thread; several items at the same time */
    void (*take)(void *context, void *item); /* by the caller's thread, in order */
    void *context;
    /* Unless NULL: called by the caller's thread some ten times a second while it waits for this item, which is still
     * being run: it may read what run() does not write. */
    void (*waiting)(void *context, const void *item);
};

/* On OK *out is yours: ordered_work_close(). */
int ordered_work_open(struct ordered_work **out, const struct ordered_work_calls *calls, struct error *e);

/* How many threads there may be; 0: items are run by the caller. */
size_t ordered_work_threads(const struct ordered_work *w);

/* The item to be filled next: the same until it is given. */
void *ordered_work_item(struct ordered_work *w);
void ordered_work_give(struct ordered_work *w);

/* Takes the results of all items that were given. More may follow. */
void ordered_work_finish(struct ordered_work *w);

/* Ends the threads; results that were not taken are lost. release: called for every item that was ever used, to free
 * what belongs to it; may be NULL. NULL is fine for w. */
void ordered_work_close(struct ordered_work *w, void (*release)(void *context, void *item));

#endif
