/*
 * workers.h - the same work in several threads at once, each of which takes what is next.
 */
#ifndef EVENTLOG_SERVER_WORKERS_H
#define EVENTLOG_SERVER_WORKERS_H

#include <stddef.h>

enum { WORKERS_MOST = 64 };

/* work(context) in `count` threads at most, at least in one; returns when all have returned. */
void workers_run(size_t count, void *(*work)(void *context), void *context);

#endif
