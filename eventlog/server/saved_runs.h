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
#include "eventlog/server/cache_pack.h"
#include "eventlog/server/log_roots.h"
#include "eventlog/server/store/run_data.h"

#include <stdint.h>

struct saved_runs {
    struct cache_files *cache; /* NULL: none */
    int merge;                 /* as run_data_new() */
    const struct log_root *roots;
    size_t root_count;
    const char *log; /* all that tells this log, with these options, from others */
    void (*message)(void *context, int warning, const char *text);
    void *context;
    /* private */
    size_t due, packed; /* small runs that have changed, and that the pack has */
    double at, cost;    /* when the pack was written, and the seconds that this took */
};

/* what is known of one run; all zero at first */
struct saved_run {
    int sought;      /* whether it was looked for */
    int unlisted;    /* it came from the pack, and no listing has yet told which files it has */
    int small;       /* it belongs into the pack */
    int large;       /* it does not, for good */
    uint64_t bytes;  /* of the files, that the saved run has */
    double at, cost; /* when it was written, or brought back, and the seconds that this took */
};

/* The first time: replaces *data by the run as it was saved, and gives its files readers that go on there. 1; 0: there
 * is none, and nothing has changed. */
int saved_run_bring_back(struct saved_runs *s, struct saved_run *run, struct run_data **data,
                         struct log_follow_run *files);

/* Before runs are brought back: views of those that can be shown at once, whose points are read when they are asked for
 * (run_cache.h). It has the same conditions. */
struct saved_preview {
    const struct log_follow_run *files;
    struct saved_run *run;
    struct run_view *view; /* the result; NULL: none. run_view_drop() it */
};
void saved_runs_preview(struct saved_runs *s, struct saved_preview *previews, size_t count, size_t threads);

/* Saves the run if much is new, or if it has not been saved for long, so that little of the time goes into this. A
 * small run is only noted. */
void saved_run_save(struct saved_runs *s, struct saved_run *run, struct run_data *data,
                    const struct log_follow_run *files);

/* ---- small runs ------------------------------------------------------------------------------------------------ */

/*
 * The pack has a listing of its runs, so they can be shown before the directories have been read:
 *
 *     if (saved_pack_open(&pack, &saved)) {
 *         saved_pack_preview(&pack, threads, views)
 *         saved_pack_load(&pack, threads)
 *         log_follow_list(&follow, &pack.listing, e);
 *         for (i = 0; i < pack.listing.count; i++)
 *             saved_pack_take(&pack, i, ...);
 *         saved_pack_close(&pack);
 *     }
 *
 * It holds only runs all of whose files are what they were, or have only grown. But there may be new files between
 * them, so that the run must be read again: once the directories have been read, call saved_run_listed() for each run.
 */
struct saved_pack {
    struct log_directory listing; /* by name */
    struct saved_small *small;    /* private, as what follows */
    struct saved_runs *saved;
    struct cache_pack pack;
    size_t next;
    struct run_view **views;
};

int saved_pack_open(struct saved_pack *p, struct saved_runs *s); /* 0: there is none */
/* As saved_runs_preview(), of all pack.pack.count runs. */
void saved_pack_preview(struct saved_pack *p, size_t threads, struct run_view **views);
int saved_pack_load(struct saved_pack *p, size_t threads); /* 0: no memory */
/* Replaces *data by run number i, gives its files readers, and a view of it, which may be NULL. 1, or 0: nothing. */
int saved_pack_take(struct saved_pack *p, size_t i, struct saved_run *run, struct run_data **data,
                    struct run_view **view, struct log_follow_run *files);
void saved_pack_close(struct saved_pack *p);

/* 0: the run must be read again, since its files are not the first ones of those listed now. */
int saved_run_listed(struct saved_run *run, const struct log_follow_run *files, const struct log_run *listed);

/* After the runs of a round were saved: 1 if the pack is due. Then saved_pack_begin(), and if that is 1,
 * saved_pack_add() for all runs and saved_pack_end(). */
int saved_pack_due(const struct saved_runs *s);
int saved_pack_begin(struct saved_runs *s, struct cache_pack_writing *w);
void saved_pack_add(struct saved_runs *s, struct cache_pack_writing *w, struct saved_run *run, struct run_data *data,
                    const struct log_follow_run *files);
void saved_pack_end(struct saved_runs *s, struct cache_pack_writing *w);

#endif
