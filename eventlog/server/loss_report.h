/*
 * loss_report.h - what was lost of a log, as a text of a run of its own, for people who look at TensorBoard and not at
 * the messages of its data server. The text is an event in a file without a name, so that it is read and answered like
 * any other. loss_report_note() may be called by any thread; the other functions by one at a time.
 */
#ifndef EVENTLOG_SERVER_LOSS_REPORT_H
#define EVENTLOG_SERVER_LOSS_REPORT_H

#include "base/error.h"
#include "eventlog/server/store/snapshot.h"

#define LOSS_REPORT_RUN "eventlog-server"
#define LOSS_REPORT_TAG "lost"

enum { LOSS_REPORT_LINES = 200 };

struct loss_report;

/* On OK *out is yours: loss_report_close() it, after the last of its views was dropped. ERR_IO: no unnamed file. */
int loss_report_open(struct loss_report **out, struct error *e);
void loss_report_close(struct loss_report *r); /* NULL is fine */

/* Adds a sentence. After LOSS_REPORT_LINES of them, only their number. */
void loss_report_note(struct loss_report *r, const char *text);

/* 1 and a view with all that was noted; 0: nothing was noted since the last one. The first call always gives one.
 * Without memory or room for the text it is tried again the next time. */
int loss_report_view(struct loss_report *r, double now, struct run_view **view);

#endif
