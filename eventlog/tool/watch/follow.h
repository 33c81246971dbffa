/*
 * follow.h - log_follow.h for commands: finds new runs and files, and returns what has been added to each file since
 * the last time. What cannot be read is reported once and tried again. One thread at a time.
 */
#ifndef EVENTLOG_TOOL_WATCH_FOLLOW_H
#define EVENTLOG_TOOL_WATCH_FOLLOW_H

#include "eventlog/read/log_follow.h"
#include "eventlog/read/log_watch.h"
#include "eventlog/tool/scan.h"

struct follow_sink { /* what a command does with what is found; runs are numbered from 0; a result other than OK ends
                      * the reading */
    void *context;
    int (*run)(void *context, size_t run, int first, struct error *e); /* a new run; first: as in follow_look() */
    int (*event)(void *context, size_t run, const struct event *event, struct error *e);
    int (*end)(void *context, size_t run, struct error *e); /* consecutive files of it have been read; may be NULL */
    void (*restart)(void *context, size_t run); /* one of its files was truncated or replaced: all of them are read
                                                 * again; NULL: only that file is */
};

/* the members up to sink are set by the caller; the rest is zero at first */
struct follow {
    struct scan *scan;
    char *const *paths;
    size_t path_count;
    int waits;         /* for paths that do not exist yet */
    int natural_order; /* 1: runs found together come as r2 before r10; 0: in byte order */
    struct follow_sink sink;
    struct log_follow log; /* its runs are in the order in which they were found, those of the first look by name */
    /* private */
    size_t known; /* how many of those runs the sink knows */
    struct log_watch watch;
    int watched;   /* since the last look nothing goes unnoticed */
    int unwatched; /* the last look found directories whose changes had gone unnoticed until then */
    double began;  /* when it began */
    int listing_told;
    const char *missing; /* the path last reported as missing; NULL: none is */
};

/* Lists the paths and adds what is new. first: a path that cannot be read is an error; so is a missing one, unless
 * waits is set. Later calls report either once, keep what is known, and wait. */
int follow_look(struct follow *f, int first, struct error *e);

/* Reads what has been added. OK, or what the sink returned. */
int follow_read(struct follow *f, struct error *e);

/* 1 if a file could not be read the last time. */
int follow_failed(const struct follow *f);

/* Sleeps until there may be something new: until a change is noticed, or `interval` seconds have passed; where all
 * changes are noticed, thirty times as long. Looks and reads since the last wait take at most 1/20 of the time, even if
 * changes follow one another, but no wait is longer than interval for that. most: at most so many seconds. */
void follow_wait(struct follow *f, double interval, double most);

void follow_release(struct follow *f);

#endif
