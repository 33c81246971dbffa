/*
 * outcomes.h - the checkpoints that have failed, are gone for good or were left untried: the newest ledger line of each
 * counts, so one that was scored in the end has not failed. An all-zero struct is empty. One thread.
 */
#ifndef EVALUATOR_RECORD_OUTCOMES_H
#define EVALUATOR_RECORD_OUTCOMES_H

#include "base/error.h"
#include "evaluator/record/ledger.h"

#include <stddef.h>
#include <stdint.h>

/* private to outcomes.c */
struct outcomes {
    int by_step; /* 1: the same name with another step is another checkpoint (--step-from) */
    struct outcome {
        char *name; /* owned */
        int64_t step;
        enum ledger_status status;              /* not LEDGER_DONE */
        uint64_t digest, digest_after, command; /* of that line */
        int unread; /* it failed because its index could not be read; may be one that is known */
    } * items;      /* ascending by name, then step */
    size_t count, capacity;
};

/* by_step as above; empty. */
void outcomes_init(struct outcomes *o, int by_step);
/* Adds the next line. ERR_NOMEM. */
int outcomes_note(struct outcomes *o, const struct ledger_record *r, struct error *e);
/* The checkpoint can be read, and already has a line: forgets that it was unreadable before. */
void outcomes_read(struct outcomes *o, const char *name);
/* 1: the newest line of this one has this status, which is not LEDGER_DONE. */
int outcomes_is(const struct outcomes *o, const char *name, int64_t step, enum ledger_status status);
/* How many checkpoints have this status. */
size_t outcomes_count(const struct outcomes *o, enum ledger_status status);
void outcomes_release(struct outcomes *o);

#endif
