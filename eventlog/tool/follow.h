/*
 * follow.h - the files of logs that grow: looks for runs and files that are new, and hands out what has been added to
 * each file since the last time. What cannot be read is told once and asked for again. One thread at a time.
 */
#ifndef EVENTLOG_TOOL_FOLLOW_H
#define EVENTLOG_TOOL_FOLLOW_H

#include "eventlog/tag_index.h"
#include "eventlog/tool/scan.h"

struct follow_run {
    const char *name; /* borrowed until follow_release() */
    int there;        /* it has files, as of the last look */
};

struct follow_file {
    char *path;
    size_t run;                  /* number */
    struct event_reader *reader; /* NULL while it cannot be opened */
    int told;                    /* that it cannot be read, */
    int gone;                    /* or that it was removed before it was opened; it may come back */
};

struct follow_sink { /* what a command does with what is found; numbers of runs count from 0; not OK ends it */
    void *context;
    int (*run)(void *context, size_t run, int first, struct error *e); /* a new run; first: as in follow_look() */
    int (*event)(void *context, size_t run, const struct event *event, struct error *e);
    int (*end)(void *context, size_t run, struct error *e); /* files of it that stand together are read; may be NULL */
    void (*restart)(void *context, size_t run); /* a file of it was cut or replaced, and is read again; may be NULL */
};

struct follow { /* those up to sink are the caller's; all else is zero at first */
    struct scan *scan;
    char *const *paths;
    size_t path_count;
    int natural_order; /* 1: of one look r2 comes before r10; 0: runs come in order of bytes */
    struct follow_sink sink;
    struct follow_run *runs; /* in the order they were met, of the first look by name */
    size_t run_count;
    /* private */
    struct tag_index run_names, file_paths; /* paths without ".gz"; the numbers are places in runs and: */
    struct follow_file *files;              /* a run's files together, those of the first look */
    size_t file_count;
    int listing_told;
};

/* Lists the paths and adds what is new. first: a path that is missing or cannot be read is an error. Later, what is
 * known stays and is waited for. */
int follow_look(struct follow *f, int first, struct error *e);

/* Reads what has come. OK, or what the sink returned. */
int follow_read(struct follow *f, struct error *e);

/* From now on the files of the run are read from their start. Not to be called by the sink. */
void follow_again(struct follow *f, size_t run);

/* 1 if a file could not be read the last time. */
int follow_failed(const struct follow *f);

void follow_release(struct follow *f);

#endif
