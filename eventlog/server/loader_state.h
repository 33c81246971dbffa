/* loader_state.h - the inside of a struct loader, for its three parts: loader.c, which goes round and shows what there
 * is; loader_listing.c, which finds runs; loader_reading.c, which reads them. */
#ifndef EVENTLOG_SERVER_LOADER_STATE_H
#define EVENTLOG_SERVER_LOADER_STATE_H

#include "eventlog/read/log_follow.h"
#include "eventlog/read/log_watch.h"
#include "eventlog/server/loader.h"
#include "eventlog/server/loss_report.h"
#include "eventlog/server/store/run_data.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* While much is read: seconds until the first view of a run, and between its later ones. */
#define VIEW_FIRST 0.05
#define VIEW_EVERY 0.25

struct loader_run {
    struct run_data *data;
    struct run_view *view; /* with the lock; NULL: not shown */
};

struct loader {
    struct loader_options options;
    struct snapshot *snapshot;
    struct log_roots roots;
    struct log_follow follow;
    struct log_input input;
    struct loader_run *runs; /* by index in follow.runs */
    size_t run_count, run_capacity;
    pthread_t thread;
    int stop, stop_event; /* stop: read and written atomically */
    pthread_mutex_t lock; /* of all below, and of messages */
    int views_changed;
    double shown; /* when the snapshot was last changed */
    double show_cost;
    uint64_t rounds, points, bytes;
    int problem_told;
    struct loss_report *report;   /* NULL: none */
    struct run_view *report_view; /* with the lock; NULL: not shown */
    /* notifications */
    struct log_watch watch;
    size_t *watched; /* by number of a watch: 1 + the index of its run; 0: no run; WATCH_SEVERAL */
    size_t watch_count;
    struct tag_index names; /* of the runs; their numbers are indices of runs */
    int complete;           /* all directories are watched, and on file systems that notify */
    int follows_listing;    /* what the last listing found */
    double listed, looked;  /* when everything was listed, and when all files were looked at */
    /* of a round: all runs, or those in hot */
    int all;
    unsigned char *is_hot; /* by index of the run */
    size_t *hot, hot_count;
    size_t next_run; /* atomic */
    size_t threads;
    size_t reading; /* of them, those that still read; atomic */
};

#define WATCH_SEVERAL ((size_t)-1)

/* ---- loader.c -------------------------------------------------------------------------------------------------- */

void loader_say(struct loader *l, enum loader_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts a snapshot of all views in place; with the lock. */
void loader_show(struct loader *l);
/* Makes a view of the run, and shows it unless the last was shown just now. Without memory the old view stays. */
void loader_view_run(struct loader *l, struct loader_run *run);

/* ---- loader_listing.c ------------------------------------------------------------------------------------------ */

/* Lists all runs, and once more if the first listing found directories that were not watched. */
int loader_list_runs(struct loader *l, struct error *e);
/* Notes what the system notifies of. Returns 1 if directories changed; *all: it is not known of which runs. */
int loader_note_changes(struct loader *l, int *all);

/* ---- loader_reading.c ------------------------------------------------------------------------------------------ */

/* Reads what is new in all files of a run. Several threads may each read another one. */
void loader_read_run(struct loader *l, struct loader_run *run, struct log_follow_run *files, struct log_input *input);

#endif
