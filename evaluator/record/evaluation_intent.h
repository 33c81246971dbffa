/*
 * evaluation_intent.h - EVAL/.points: the run and the step of the newest point, and, from before an evaluation's events
 * are written until its line is in the ledger, that line and the place of the events. So after a crash between the two
 * the next process knows whether the events are in the event file, and then only the line is missing: no event and no
 * line is written twice, and nothing is computed again.
 *
 *   "run step\n", each 20 columns wide; while a line is missing, also
 *   "crc before events FILE\n": CRC-32C of what follows it in hex, the length of the event file before these events,
 *                               how many they are, and the file's name in the directory of the run; then the line
 *
 * If a part of the events is missing, the process was killed in the middle of a write, or the machine lost power. The
 * part that is there is cut off, and the checkpoint is evaluated again. Every process makes a file of its own, so no
 * bytes are appended to that one later: who has read it further, as TensorBoard may have, meets its end. One thread.
 */
#ifndef EVALUATOR_RECORD_EVALUATION_INTENT_H
#define EVALUATOR_RECORD_EVALUATION_INTENT_H

#include "base/error.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

struct evaluation_intent {
    int64_t run, step; /* step -1: there is no point in the run */
    char *line;        /* of the ledger, with its newline; NULL: none is missing. Owned */
    char file[NAME_MAX + 1];
    uint64_t before, events;
};

/* Reads EVAL/.points into *out; without the file, run 0 and step -1. ERR_ARG: it is a link, or somebody else's. On OK
 * release it. */
int evaluation_intent_read(const char *eval_directory, struct evaluation_intent *out, struct error *e);
void evaluation_intent_release(struct evaluation_intent *i);

/* Writes and syncs it. */
int evaluation_intent_write(const char *eval_directory, const struct evaluation_intent *i, struct error *e);
/* The line is in the ledger: takes it from the file and from i, which keeps its run and step. If that fails, or is lost
 * with the power, the next process finds the line in the ledger. */
void evaluation_intent_done(const char *eval_directory, struct evaluation_intent *i);

/* Looks at the event file in the directory of the run. 1: all events are in it. 0: none is, any more. ERR_IO: it cannot
 * be read, or not be cut. */
int evaluation_intent_settle(const char *run_directory, const struct evaluation_intent *i, struct error *e);

#endif
