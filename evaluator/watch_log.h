/*
 * watch_log.h - what a watch says: lines in the log, with the watch's name before them where there are several.
 */
#ifndef EVALUATOR_WATCH_LOG_H
#define EVALUATOR_WATCH_LOG_H

#include "evaluator/evaluation_watch.h"
#include "evaluator/record/ledger.h"

enum { WATCH_LOG_MAX = 1600 }; /* bytes of a line; longer ones are cut */

void watch_log_say(const struct evaluation_watch *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* level: "warning" or "error". */
void watch_log_warn(const struct evaluation_watch *w, const char *level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Of one checkpoint: what became of it, for programs, and the sentence for people. */
void watch_log_of(const struct evaluation_watch *w, const struct ledger_record *r, const char *level,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
