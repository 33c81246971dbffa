/*
 * scan.h - what the commands share: selecting runs and tags, and reading the files of a run from start to end, with
 * damage reported on standard error and progress on a terminal.
 */
#ifndef EVENTLOG_TOOL_SCAN_H
#define EVENTLOG_TOOL_SCAN_H

#include "base/program/log.h"
#include "base/program/options.h"
#include "base/program/selection.h"
#include "base/program/subcommand.h"
#include "base/program/time_text.h"
#include "eventlog/read/event_reader.h"
#include "eventlog/read/log_directory.h"
#include "eventlog/read/scalar_series.h"

enum { SCAN_KINDS = 16 }; /* more than there are words */

struct scan {
    struct log log;
    struct selection runs, tags;
    char *const *paths; /* as given, path_count of them */
    size_t path_count;
    struct log_directory directory;
    struct log_input input;
    int empty; /* there are no event files, which has been reported */
    struct scan_kind {
        const char *word; /* as value_words_word() */
        uint64_t series;
    } kinds[SCAN_KINDS];            /* of wanted series without scalar points, but with other values */
    int points;                     /* there are wanted series with scalar points */
    unsigned units;                 /* 1 << enum time_unit of the wall times that were looked at */
    uint64_t foreign;               /* files whose records are no events, which has been reported */
    size_t unmatched;               /* the command's own filters that matched nothing, already reported */
    int quiet_damage;               /* the command reports damage itself */
    uint64_t bytes, bytes_done;     /* of the runs that match, as stored, for progress */
    size_t matching;                /* how many runs match */
    int passes;                     /* how often they are read; 0: once */
    double began;                   /* when reading began, monotonic */
    uint64_t since;                 /* records or events */
    uint64_t shown_at;              /* the offset in the current file at which progress was last shown */
    uint64_t file_bytes, file_size; /* of the current file: as stored, and unpacked */
    uint64_t damaged;               /* damaged records so far; bad UTF-8 counts only with quiet_damage */
    uint64_t bad_text;              /* events with a string that is not UTF-8, of this run */
    int failed;                     /* a file or directory could not be read: EXIT_USAGE at the end */
    uint64_t *read;                 /* of a part: what all parts have read, as bytes_done; added to atomically */
    uint64_t added;                 /* to it, of the current file */
};

/* what a command does with the events; any may be NULL */
struct scan_sink {
    void *context;
    void (*begin_file)(void *context, const char *path);
    int (*event)(void *context, const struct event *event, struct error *e);          /* a result other than OK ends the
                                                                              * reading */
    int (*damage)(void *context, const struct event_damage *damage, struct error *e); /* as event */
    void (*end_file)(void *context, const struct event_reader_state *state);
    void (*restart)(void *context); /* a file was cut or replaced meanwhile: forget the run, it is read again; NULL:
                                     * that is reported, and the rest of the file is left out */
    /* Reads on by itself, as run_pieces_read() does; called once a file, after its first event, unless other runs are
     * read meanwhile. A result other than OK ends the reading. */
    int (*pieces)(void *context, struct event_reader *reader, void (*passed)(void *place), void *place,
                  struct error *e);
    int (*usual)(void *context, const struct usual_event *event); /* as event_reader_take_usual(): it may take events
                                                                   * that follow one passed to event() */
};

/* Begins a command: parses the command line as options_parse() does, and sets the name under which s reports. */
int scan_begin(struct scan *s, const struct options *o, int argc, char **argv, int *count, struct error *e);
/* Ends it if rc, from scan_begin() or a later check of the options, is not OK: EXIT_DONE after --help, or prints the
 * error and returns EXIT_USAGE. */
int scan_leave(struct scan *s, int rc, const struct error *e);

/* Lists the paths and prints problems, such as a --run that matches nothing. EXIT_DONE, or prints the error and returns
 * EXIT_USAGE. */
int scan_open(struct scan *s, char *const *paths, size_t count);
void scan_close(struct scan *s);

/* Sorts the runs in natural order of their names ("r2" before "r10"), for people. */
void scan_natural_order(struct log_directory *d);

/* Reports that there are no event files; yet: "" or " yet". */
void scan_tell_empty(struct scan *s, const char *path, const char *yet);

int scan_run_wanted(struct scan *s, const char *run);
/* The wanted run behind that one, the first for NULL; NULL: there is none. */
const struct log_run *scan_next_run(struct scan *s, const struct log_run *run);
int scan_tag_wanted(struct scan *s, const char *tag); /* call it for every tag that is read */
/* Counts a wanted series that has been read: scan_status() says what there is where no points were found. */
void scan_series(struct scan *s, const struct scalar_series *series);

/* Reads the files of a run. OK, or what a sink returned; files that cannot be read are reported and skipped, and files
 * that are gone are not a failure. */
int scan_run(struct scan *s, const struct log_run *run, const struct scan_sink *sink, struct error *e);

/* A part of s for a thread to read one run with scan_run(), while other threads read others. It selects nothing, keeps
 * its messages in `kept`, and adds to *read the bytes that it has read. It borrows from s, and is not to be closed. */
struct scan scan_part(const struct scan *s, struct buffer *kept, uint64_t *read);
/* Writes the part's messages and adds what it counted to s. OK, or ERR_NOMEM if there was no memory for a message. */
int scan_join(struct scan *s, const struct scan *part, struct error *e);

/* For commands that read files themselves. 1, after reporting it, if the error is that a file found in a directory has
 * been removed since: the rest is still read. A file that was named on the command line is missing: 0. */
int scan_gone(struct scan *s, const char *path, const struct error *e);
/* The same, but an error of another kind is told, too, and the command fails in the end. */
void scan_unread(struct scan *s, const char *path, const struct error *e);
/* Counts damage and prints the first ones of each file. number: how many the file has, with this one. */
void scan_damage(struct scan *s, const char *path, const struct event_damage *damage, uint64_t number);
/* Reports, for an event just read, that it is the first of its file and none at all; the command ends with EXIT_NO. */
void scan_foreign(struct scan *s, const char *path, const struct event_reader *reader, const struct event *event);
/* Shows progress: a file of this size was opened, has been read up to this offset, is finished. Call
 * scan_progress_due() for each record, and scan_progress() if it returns 1. */
void scan_progress_file(struct scan *s, const char *path, uint64_t size);
static inline int scan_progress_due(struct scan *s)
{
    return ++s->since % 65536 == 0;
}
void scan_progress(struct scan *s, const char *run, uint64_t offset);
void scan_progress_end(struct scan *s);

/* Prints an error that ended the command; returns EXIT_USAGE. */
int scan_fail(struct scan *s, const struct error *e);

/* Reports, once, each --run and --tag that has matched no name so far; returns how many. */
size_t scan_tell_unmatched(struct scan *s);
/* The exit status if all else went well; matched: something was found. Filters that matched nothing are reported and
 * make it EXIT_NO; if nothing matched and nothing else explains it, that is reported too, with what there is instead
 * of points. */
int scan_status(struct scan *s, int matched);

/* The options that choose: rows of a table. */
#define SCAN_RUN_OPTION(s) \
    { \
        OPTION_LIST, 0, "run", &(s).runs.patterns, "GLOB", \
            .help = "Take only runs whose name matches GLOB; may be repeated" \
    }
#define SCAN_VIEW_OPTION(view) \
    { \
        OPTION_CHOICE, 0, "view", &(view), \
            .help = "Take all points, those that TensorBoard's default loader would show, or those still valid after " \
                    "all restarts (default all)", \
            .choices = "all|tensorboard|session" \
    }
#define SCAN_TAG_OPTION(s) \
    { \
        OPTION_LIST, 0, "tag", &(s).tags.patterns, "GLOB", .help = "Take only tags that match GLOB; may be repeated" \
    }

#endif
