/*
 * workers.h - the same work in several threads at once, each of which takes what is next.
 */
#ifndef EVENTLOG_SERVER_WORKERS_H
#define EVENTLOG_SERVER_WORKERS_H

#include <stddef.h>

enum { WORKERS_MOST = 64 };

/* WORKERS_BEHIND: with a lower priority than this process, for work that nobody waits for: threads that answer come
 * first. */
enum worker_rank { WORKERS_EQUAL, WORKERS_BEHIND };

/* work(context) in `count` threads at most, at least in one; returns when all have returned. */
void workers_run(size_t count, enum worker_rank rank, void *(*work)(void *context), void *context);

#endif
