/*
 * scan.h - what the commands share: which runs and tags are meant, and reading a run's files from start to end with
 * damage told on standard error and progress on a terminal.
 */
#ifndef EVENTLOG_TOOL_SCAN_H
#define EVENTLOG_TOOL_SCAN_H

#include "base/program/log.h"
#include "base/program/options.h"
#include "base/program/selection.h"
#include "base/program/subcommand.h"
#include "eventlog/read/event_reader.h"
#include "eventlog/read/log_directory.h"

struct scan {
    struct log log;
    struct selection runs, tags;
    char *const *paths;             /* as given, path_count of them */
    size_t path_count;
    struct log_directory directory;
    struct log_input input;
    int empty;                      /* there are no event files, which has been told */
    size_t unmatched;               /* filters of the command's own that matched nothing, told already */
    int quiet_damage;               /* the command tells damage itself */
    uint64_t bytes, bytes_done;     /* of the runs that match, where they are stored, for progress; */
    size_t matching;                /* how many these are, */
    int passes;                     /* how often they are read; 0: once */
    double began;                   /* when that began, monotonic */
    uint64_t since;                 /* records or events */
    uint64_t file_bytes, file_size; /* of the file at hand: where it is stored, and of what it unpacks to */
    uint64_t damaged;               /* damaged records so far; bad UTF-8 counts only with quiet_damage */
    uint64_t bad_text;              /* events with a string that is not UTF-8, of this run */
    int failed;                     /* a file or directory could not be read: EXIT_USAGE in the end */
};

struct scan_sink { /* what a command does with what is read; any may be NULL */
    void *context;
    void (*begin_file)(void *context, const char *path);
    int (*event)(void *context, const struct event *event, struct error *e); /* not OK ends the reading */
    int (*damage)(void *context, const struct event_damage *damage, struct error *e); /* as event */
    void (*end_file)(void *context, const struct event_reader_state *state);
    void (*restart)(void *context); /* a file was replaced under our hands: forget the run, it is read again */
};

/* Begins a command: s talks under the program's name from now on; the command line is read as by options_parse(). */
int scan_begin(struct scan *s, const struct options *o, int argc, char **argv, int *count, struct error *e);
/* Ends it where rc, of that or of a later check of the options, is not OK: EXIT_DONE after --help, or EXIT_USAGE with
 * the error's sentence printed. */
int scan_leave(struct scan *s, int rc, const struct error *e);

/* Lists the paths and prints problems, a --run that matches nothing among them. EXIT_DONE, or EXIT_USAGE with its
 * sentence printed. */
int scan_open(struct scan *s, char *const *paths, size_t count);
void scan_close(struct scan *s);

/* From now on the runs stand in natural order of their names ("r2" before "r10"), for people. */
void scan_natural_order(struct log_directory *d);

/* Tells that there are no event files; yet: "" or " yet". */
void scan_tell_empty(struct scan *s, const char *path, const char *yet);

int scan_run_wanted(struct scan *s, const char *run);
/* The wanted run behind that one, the first for NULL; NULL: there is none. */
const struct log_run *scan_next_run(struct scan *s, const struct log_run *run);
int scan_tag_wanted(struct scan *s, const char *tag); /* to be asked of every tag that is read */

/* Reads the files of a run. OK, or what a sink returned; files that cannot be read are told and passed over, and those
 * that are gone are no failure. */
int scan_run(struct scan *s, const struct log_run *run, const struct scan_sink *sink, struct error *e);

/* For who reads files by itself, as scan_run() does. 1, and told, if that error is that a file which was found in a
 * directory is removed since: what is gone is gone, and the rest is read. One that was named itself is missed. */
int scan_gone(struct scan *s, const char *path, const struct error *e);
/* The same, but an error of another kind is told, too, and the command fails in the end. */
void scan_unread(struct scan *s, const char *path, const struct error *e);
/* Counts damage and prints the first of each file, number: how many it had with this one. */
void scan_damage(struct scan *s, const char *path, const struct event_damage *damage, uint64_t number);
/* Tells how far the reading has come: a file of that size was opened, was read up to that offset, is done with. The
 * second one whenever scan_progress_due() says so, which is to be asked of each record. */
void scan_progress_file(struct scan *s, const char *path, uint64_t size);
static inline int scan_progress_due(struct scan *s)
{
    return ++s->since % 65536 == 0;
}
void scan_progress(struct scan *s, const char *run, uint64_t offset);
void scan_progress_end(struct scan *s);

/* Prints an error that ended the command; EXIT_USAGE. */
int scan_fail(struct scan *s, const struct error *e);

/* Tells each --run and --tag that has matched none of the names so far, once; how many there are. */
size_t scan_tell_unmatched(struct scan *s);
/* What the status is when all went well otherwise; matched: something was found. Filters that matched nothing are told,
 * and make it EXIT_NO; where nothing else explains it, so is it told that nothing matched. */
int scan_status(struct scan *s, int matched);

/* The options that choose: rows of a table. */
#define SCAN_RUN_OPTION(s) \
    { OPTION_LIST, 0, "run", &(s).runs.patterns, "GLOB", .help = "Take only runs whose name matches GLOB; " \
      "may be repeated" }
#define SCAN_VIEW_OPTION(view) \
    { OPTION_CHOICE, 0, "view", &(view), .help = "Take every point, those that TensorBoard's default loader would " \
      "show, or those that restarts left valid (default all)", .choices = "all|tensorboard|session" }
#define SCAN_TAG_OPTION(s) \
    { OPTION_LIST, 0, "tag", &(s).tags.patterns, "GLOB", .help = "Take only tags that match GLOB; may be " \
      "repeated" }

#endif
