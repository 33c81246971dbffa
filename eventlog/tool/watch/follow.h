/*
 * follow.h - log_follow.h for commands: looks for runs and files that are new, and hands out what has been added to
 * each file since the last time. What cannot be read is told once and asked for again. One thread at a time.
 */
#ifndef EVENTLOG_TOOL_WATCH_FOLLOW_H
#define EVENTLOG_TOOL_WATCH_FOLLOW_H

#include "eventlog/read/log_follow.h"
#include "eventlog/tool/scan.h"

struct follow_sink { /* what a command does with what is found; numbers of runs count from 0; not OK ends it */
    void *context;
    int (*run)(void *context, size_t run, int first, struct error *e); /* a new run; first: as in follow_look() */
    int (*event)(void *context, size_t run, const struct event *event, struct error *e);
    int (*end)(void *context, size_t run, struct error *e); /* files of it that stand together are read; may be NULL */
    void (*restart)(void *context, size_t run); /* a file of it was cut or replaced: all of its files are read again;
                                                 * NULL: only that file is */
};

struct follow { /* those up to sink are the caller's; all else is zero at first */
    struct scan *scan;
    char *const *paths;
    size_t path_count;
    int waits;         /* for paths that are not there yet */
    int natural_order; /* 1: of one look r2 comes before r10; 0: runs come in order of bytes */
    struct follow_sink sink;
    struct log_follow log; /* its runs are in the order they were met, of the first look by name */
    /* private */
    size_t known;          /* of those runs the sink knows so many */
    int listing_told;
    const char *missing;   /* the path of which that was told last that it is not there; NULL: all are */
};

/* Lists the paths and adds what is new. first: a path that cannot be read is an error; so is one that is not there,
 * unless waits is set. Later, what is known stays and is waited for, which is told once. */
int follow_look(struct follow *f, int first, struct error *e);

/* Reads what has come. OK, or what the sink returned. */
int follow_read(struct follow *f, struct error *e);

/* 1 if a file could not be read the last time. */
int follow_failed(const struct follow *f);

void follow_release(struct follow *f);

#endif
