/*
 * loader.h - the thread that keeps a snapshot up to date with the files: it finds runs, reads what is new in each, with
 * as many threads as there are processors, and puts new views in place, early while much is to be read. It waits for
 * notifications of the file system, and looks at everything from time to time, since some changes are not notified.
 */
#ifndef EVENTLOG_SERVER_LOADER_H
#define EVENTLOG_SERVER_LOADER_H

#include "base/error.h"
#include "eventlog/server/log_roots.h"
#include "eventlog/server/store/snapshot.h"

#include <stddef.h>
#include <stdint.h>

enum loader_level { LOADER_WARNING, LOADER_INFO };

struct loader_options {
    const struct log_root *roots; /* borrowed until loader_stop() */
    size_t root_count;
    double reload; /* seconds between rounds, at least LOADER_PAUSE_LEAST are kept; < 0: one round only */
    int merge;     /* as run_data_new() */
    int follow_links;
    int report;  /* 1: what is lost is shown as a run, too */
    int notify;  /* 0: never wait for notifications */
    int threads; /* 0: as many as there are processors */
    /* Called from several threads, but by one at a time. */
    void (*message)(void *context, enum loader_level level, const char *text);
    void *context;
};

#define LOADER_PAUSE_LEAST 0.2

struct loader_progress {
    size_t runs;
    uint64_t points; /* read since the start */
    uint64_t bytes;  /* of files, read since the start */
    uint64_t rounds; /* completed */
};

struct loader;

/* The snapshot must live longer. On OK *out is yours: loader_stop() it. */
int loader_start(struct loader **out, const struct loader_options *options, struct snapshot *snapshot, struct error *e);
struct loader_progress loader_progress(struct loader *l);
void loader_stop(struct loader *l); /* waits for its threads; NULL is fine */

#endif
