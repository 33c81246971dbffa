/*
 * log_follow.h - follows the files of a log that grows. Each round returns what was added to each file since the round
 * before. Runs, and the files of a run, come in the order in which they were found; new ones from a later listing join
 * in. One thread at a time; but several may each read another run, by log_follow_next_of().
 *
 * Between rounds the most recently changed files stay open, at most LOG_FOLLOW_OPEN_MOST and at most 1/16 of the
 * descriptors that the process may have, so a file that is renamed or removed while still being written is read to its
 * end. All other files are closed; their size and time are checked by name, and they are opened again when these
 * change. A closed file that is renamed out of the log is read no further. A file that is renamed within the log, open
 * or closed, counts as a new file and is read from its start. Memory: one window of 256 KiB, and what is known of each
 * file.
 *
 * A run can also be read once, with one file open at a time, for which only its listing is needed:
 *
 *     log_follow_listed(&run, listed);
 *     while ((found = log_follow_begin_file(NULL, &run, &input, &reader, e)) != LOG_FOLLOW_END) {
 *         if (found == LOG_FOLLOW_FILE)
 *             found = log_follow_end_file(NULL, &run, the last result of event_reader_next(), e);
 *         ...
 *     }
 *     log_follow_forget(NULL, &run);
 */
#ifndef EVENTLOG_READ_LOG_FOLLOW_H
#define EVENTLOG_READ_LOG_FOLLOW_H

#include "eventlog/format/tag_index.h"
#include "eventlog/read/event_reader.h"
#include "eventlog/read/log_directory.h"

#include <pthread.h>

enum { LOG_FOLLOW_OPEN_MOST = 64, LOG_FOLLOW_RESTARTS_MOST = 3 };

struct log_follow_file {
    char *path;
    struct event_reader *reader; /* NULL while the file cannot be opened */
    int told, gone;              /* the caller's, 0 at first */
    uint64_t infinite;           /* the caller's too; reset to 0 when the file is read again */
    int reading;                 /* private */
};

struct log_follow_run {
    const char *name; /* borrowed until log_follow_release() */
    struct log_follow_file *files;
    size_t count;
    int there;      /* it had files at the last listing */
    size_t at_file; /* of which log_follow_next_of() returned something; see at_file below */
    int again;      /* log_follow_again() was called; until the next call for the run */
    /* private */
    struct tag_index paths; /* of the files, without ".gz" and ".zst"; the numbers are indices of files */
    size_t next_file;
    int forget;
    const struct log_run *listed; /* NULL, or it is read once: its files are listed->files */
    struct log_follow_file only;  /* the current one of them */
    int restarts;                 /* how often they were read again */
};

/* the members up to open_most are set by the caller; the rest is zero at first */
struct log_follow {
    struct log_input *input;
    int (*wanted)(void *context, const char *run); /* only such runs join in */
    void *context;
    int records_only; /* as event_reader_records_only() */
    int whole_runs;   /* when a file starts again, all files of its run do */
    int forgets;      /* a run whose files are all gone loses them, and starts again when new ones appear */
    size_t open_most; /* files that stay open between rounds, at most; 0: as above */
    struct log_follow_run *runs;
    size_t count;
    size_t at_run, at_file; /* the run and file that log_follow_next() returned; no such file exists where all files of
                             * a run are gone */
    /* private */
    struct tag_index names;                          /* of the runs; the numbers are indices of runs */
    pthread_mutex_t lock;                            /* of what follows; all zero is ready for use */
    struct event_reader *open[LOG_FOLLOW_OPEN_MOST]; /* those between rounds */
    size_t open_count, open_limit;
};

/* beside EVENTLOG_READ_EVENT, _DAMAGE and _RESTARTED */
enum log_follow_result {
    LOG_FOLLOW_END = 0,      /* the round is over; the next call begins a new one */
    LOG_FOLLOW_FILE_END = 4, /* the current file has no more for now */
    LOG_FOLLOW_FILE = 5,     /* of log_follow_begin_file() only: there is a file to read */
};

/* Adds the runs and files of a listing. */
int log_follow_list(struct log_follow *f, const struct log_directory *d, struct error *e);

/* As event_reader_next(), or an enum log_follow_result. After an error the next call continues with the next file; the
 * failed one is tried again in the next round. */
int log_follow_next(struct log_follow *f, struct event *event, struct event_damage *damage, struct error *e);

/* The same for one run, LOG_FOLLOW_END after all of its files; a call after that begins its next round. Several threads
 * may each read another run, with inputs of their own, while nobody calls the other functions. */
int log_follow_next_of(struct log_follow *f, struct log_follow_run *run, struct log_input *input, struct event *event,
                       struct event_damage *damage, struct error *e);

/* The same in two steps, for callers that use the reader of the current file, such as for event_reader_take_usual().
 * LOG_FOLLOW_FILE and *reader; EVENTLOG_READ_RESTARTED, an error, or LOG_FOLLOW_END. After LOG_FOLLOW_FILE read on with
 * the reader, or call this again, until event_reader_next() returns neither an event nor damage; then call
 * log_follow_end_file() with that result, which returns what log_follow_next_of() would. */
int log_follow_begin_file(struct log_follow *f, struct log_follow_run *run, struct log_input *input,
                          struct event_reader **reader, struct error *e);
int log_follow_end_file(struct log_follow *f, struct log_follow_run *run, int result, struct error *e);

/* A run to be read once, from its listing, which is borrowed; f is NULL in calls for it. When a file starts again, all
 * of its files do; after LOG_FOLLOW_RESTARTS_MOST times that is ERR_IO. Its `files` is NULL: at_file is an index of
 * listed->files. log_follow_forget() it. */
void log_follow_listed(struct log_follow_run *run, const struct log_run *listed);

/* Makes the next call for the run read all of its files from the start; it returns no EVENTLOG_READ_RESTARTED. */
void log_follow_again(struct log_follow_run *run);

/* Forgets the files of a run; the next listing adds them again, in its order. */
void log_follow_forget(struct log_follow *f, struct log_follow_run *run);

/* 1 if the current file is the last of its run. */
int log_follow_last_file(const struct log_follow *f);

void log_follow_release(struct log_follow *f);

#endif
