/*
 * same_failures.h - counts how often in a row a command has failed in the same way, which says more about the command
 * than about the checkpoints. Two failures are the same if they have the same exit status and the same last line of
 * output, apart from words with digits (numbers, names of checkpoints, addresses); or, without an exit status, if they
 * are of one class: the same signal, too long, no metric in the output, not to be run. Pure.
 */
#ifndef EVALUATOR_RECORD_SAME_FAILURES_H
#define EVALUATOR_RECORD_SAME_FAILURES_H

#include "evaluator/record/ledger.h"

#include <stddef.h>

enum { SAME_FAILURES_MOST = 3 }; /* after so many in a row, the rest waits */

/* all zero: none yet */
struct same_failures {
    size_t count;
    char kind[sizeof((struct ledger_record *)0)->reason];
};

/* Takes in the next line of a ledger. An evaluated checkpoint ends the row; what no command was run for is ignored. */
void same_failures_note(struct same_failures *s, const struct ledger_record *r);

#endif
