/*
 * watch_log.h - log lines of a watch, prefixed with its name if there are several watches.
 */
#ifndef EVALUATOR_WATCH_LOG_H
#define EVALUATOR_WATCH_LOG_H

#include "base/program/log.h"
#include "evaluator/record/ledger.h"

enum { WATCH_LOG_MAX = 1600 }; /* bytes of a line; longer ones are cut */

/* a value, made by the caller that opens the watch; both are borrowed */
struct watch_log {
    struct log *log;
    const char *name; /* NULL: the only one */
};

void watch_log_say(const struct watch_log *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* level: "warning" or "error". */
void watch_log_warn(const struct watch_log *w, const char *level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* About one checkpoint: its outcome for programs, and the sentence for people. */
void watch_log_of(const struct watch_log *w, const struct ledger_record *r, const char *level, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* What is in the ledger now: why there is no score, and "step: 700, model.ckpt-700: loss: 0.5, precision: 0.9". */
void watch_log_result(const struct watch_log *w, const struct ledger_record *r);
/* How far an evaluation is; share < 0: not known. On a terminal only. */
void watch_log_progress(const struct watch_log *w, const struct ledger_record *r, double share, size_t queued);

#endif
