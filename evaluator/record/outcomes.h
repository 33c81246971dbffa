/*
 * outcomes.h - which checkpoints have failed or are gone for good: of each the newest line of the ledger counts, so one
 * that was scored in the end has not failed. One thread.
 */
#ifndef EVALUATOR_RECORD_OUTCOMES_H
#define EVALUATOR_RECORD_OUTCOMES_H

#include "base/error.h"
#include "evaluator/record/ledger.h"

#include <stddef.h>
#include <stdint.h>

struct outcomes { /* outcomes.c alone looks into it */
    int by_step; /* 1: checkpoints of the same name and another step are others (--step-from) */
    struct outcome {
        char *name; /* owned */
        int64_t step;
        enum ledger_status status; /* not LEDGER_DONE */
        int unread;                /* it failed since its index could not be read: a known one, for all one knows */
    } *items;       /* ascending by name, then step */
    size_t count, capacity;
};

/* by_step as above; empty. */
void outcomes_init(struct outcomes *o, int by_step);
/* Takes in the next line. ERR_NOMEM. */
int outcomes_note(struct outcomes *o, const struct ledger_record *r, struct error *e);
/* The checkpoint can be read, and is one that has its line: that it could not be read before is over. */
void outcomes_read(struct outcomes *o, const char *name);
/* How many checkpoints ended so. */
size_t outcomes_count(const struct outcomes *o, enum ledger_status status);
void outcomes_release(struct outcomes *o);

#endif
