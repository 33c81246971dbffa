/*
 * split_session.h - finds where the sessions of a run begin: at a file in which a series goes back, at a later time, to
 * a step that the session already has, and at session starts after its first value.
 */
#ifndef EVENTLOG_TOOL_REWRITE_SPLIT_SESSION_H
#define EVENTLOG_TOOL_REWRITE_SPLIT_SESSION_H

#include "eventlog/tool/rewrite/rewrite.h"

struct split_session;

/* Reads the run. On OK *out is yours: split_session_free() it, NULL is fine. */
int split_session_new(struct split_session **out, struct rewrite *w, const struct log_run *run, struct error *e);
void split_session_free(struct split_session *s);

/* In the second reading, for each file of the run: 1 if a session begins with it. */
int split_session_file(struct split_session *s, size_t file);
/* ... and for each of its records, in ascending order: 1 if a session begins there (other than with the file). */
int split_session_next(struct split_session *s, uint64_t offset);

#endif
