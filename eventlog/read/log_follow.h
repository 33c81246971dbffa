/*
 * log_follow.h - the files of a log that grows. A round hands out what has been added to each file since the round
 * before, run after run in the order in which they were met, a run's files likewise; runs and files that a listing
 * finds new join in. One thread at a time.
 *
 * Between rounds the files that were changed last stay open, LOG_FOLLOW_OPEN_MOST of them at most and no more than a
 * 16th of the descriptors that the process may have: what is renamed or removed while somebody still writes it is read
 * to its end. The others rest, without a descriptor: their names are asked for size and time, and they are opened again
 * when these change. A resting file that is renamed out of the log is read no further; within the log it is a new file,
 * and comes from its start, as one that is open does. Memory: one window of 256 KiB, and what is known of each file.
 */
#ifndef EVENTLOG_READ_LOG_FOLLOW_H
#define EVENTLOG_READ_LOG_FOLLOW_H

#include "eventlog/format/tag_index.h"
#include "eventlog/read/event_reader.h"
#include "eventlog/read/log_directory.h"

enum { LOG_FOLLOW_OPEN_MOST = 64 };

struct log_follow_file {
    char *path;
    struct event_reader *reader; /* NULL while it cannot be opened */
    int told, gone;              /* the caller's, 0 at first */
    uint64_t infinite;           /* also; 0 again when the file is read again */
};

struct log_follow_run {
    const char *name;   /* borrowed until log_follow_release() */
    struct log_follow_file *files;
    size_t count;
    int there;          /* it has files, as of the last listing */
    /* private */
    struct tag_index paths; /* of the files, without ".gz" and ".zst"; the numbers are the places in files */
    int forget;
};

struct log_follow { /* those up to forgets are the caller's; all else is zero at first */
    struct log_input *input;
    int (*wanted)(void *context, const char *run); /* only such runs join in */
    void *context;
    int records_only; /* as event_reader_records_only() */
    int whole_runs;   /* when a file begins again, so does its run, with all its files */
    int forgets;      /* a run whose files are all gone is left without files, and begins again when some come */
    struct log_follow_run *runs;
    size_t count;
    size_t at_run, at_file; /* what log_follow_next() tells of; there is no such file where all of a run's are gone */
    /* private */
    struct tag_index names; /* of the runs; the numbers are the places in runs */
    size_t next_file;
    struct event_reader *open[LOG_FOLLOW_OPEN_MOST]; /* those between rounds */
    size_t open_count, open_most;
};

enum log_follow_result { /* beside EVENT_READER_EVENT, _DAMAGE and _RESTARTED */
    LOG_FOLLOW_END = 0,      /* the round is over; the next call begins another */
    LOG_FOLLOW_FILE_END = 4, /* the file at hand has no more for now */
};

/* Takes in what was listed. */
int log_follow_list(struct log_follow *f, const struct log_directory *d, struct error *e);

/* As event_reader_next(), an enum log_follow_result besides. After an error the next call goes on with the next file;
 * this one is asked again in the next round. */
int log_follow_next(struct log_follow *f, struct event *event, struct event_damage *damage, struct error *e);

/* The file at hand is the last of its run. */
int log_follow_last_file(const struct log_follow *f);

void log_follow_release(struct log_follow *f);

#endif
