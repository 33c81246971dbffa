/*
 * saved_runs.h - which runs a loader takes from the cache (cache_files.h), and when it saves them there. A run that is
 * brought back goes on where its files were left; it counts only if its files are still the ones that were read, or
 * have only grown since.
 *
 * Several threads may each bring another run back; one at a time saves.
 */
#ifndef EVENTLOG_SERVER_SAVED_RUNS_H
#define EVENTLOG_SERVER_SAVED_RUNS_H

#include "eventlog/read/log_follow.h"
#include "eventlog/server/cache_files.h"
#include "eventlog/server/store/run_data.h"

#include <stdint.h>

struct saved_runs {
    struct cache_files *cache; /* NULL: none */
    int merge;                 /* as run_data_new() */
    void (*message)(void *context, int warning, const char *text);
    void *context;
};

/* what is known of one run; all zero at first */
struct saved_run {
    int sought;      /* whether it was looked for */
    uint64_t bytes;  /* of the files, that the saved run has */
    double at, cost; /* when it was written, or brought back, and the seconds that this took */
};

/* The first time: replaces *data by the run as it was saved, and gives its files readers that go on there. 1; 0: there
 * is none, and nothing has changed. */
int saved_run_bring_back(struct saved_runs *s, struct saved_run *run, struct run_data **data,
                         struct log_follow_run *files);

/* Saves the run if much is new, or if it has not been saved for long, so that little of the time goes into this. */
void saved_run_save(struct saved_runs *s, struct saved_run *run, struct run_data *data,
                    const struct log_follow_run *files);

#endif
