/*
 * watch_report.h - how the work on a watched directory stands: for people in a line, for `evaluator status` in
 * EVAL/work.json (evaluation_work.h).
 */
#ifndef EVALUATOR_WATCH_REPORT_H
#define EVALUATOR_WATCH_REPORT_H

#include "base/buffer.h"
#include "evaluator/evaluation_watch.h"

#include <stddef.h>

/* Appends "12 done, 3 queued, newest 4.2 s old, best precision 0.912 (model.ckpt-700)"; counts of 0 are left out. */
void watch_report_text(const struct evaluation_watch *w, struct buffer *out);

/* Writes the file where something has changed since it was written; not too often, but for `now`. What cannot be
 * written is left: whoever looks sees how old it is. */
void watch_report_write(struct evaluation_watch *w, int now);
/* Seconds until there is something to write. */
double watch_report_due(const struct evaluation_watch *w);

#endif
