/*
 * split_session.h - where the sessions of a run begin: at a file in which a series goes back to a step that the session
 * has already, at a later time, and at session starts behind its first value.
 */
#ifndef EVENTLOG_TOOL_REWRITE_SPLIT_SESSION_H
#define EVENTLOG_TOOL_REWRITE_SPLIT_SESSION_H

#include "eventlog/tool/rewrite/rewrite.h"

struct split_session;

/* Reads the run. On OK *out is yours; free takes NULL. */
int split_session_new(struct split_session **out, struct rewrite *w, const struct log_run *run, struct error *e);
void split_session_free(struct split_session *s);

/* The second reading comes to that file of the run: 1 if a session begins with it. */
int split_session_file(struct split_session *s, size_t file);
/* ... and to that record of it: 1 if a session begins there (other than with the file). In ascending order. */
int split_session_next(struct split_session *s, uint64_t offset);

#endif
