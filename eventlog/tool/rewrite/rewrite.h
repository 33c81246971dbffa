/*
 * rewrite.h - what the commands share that make logs into other logs: reading the sound records of files, writing event
 * files that all appear by rename at the end, in a directory of their own or in place of the old ones with a backup,
 * and telling what was left out. Inputs are never written.
 */
#ifndef EVENTLOG_TOOL_REWRITE_REWRITE_H
#define EVENTLOG_TOOL_REWRITE_REWRITE_H

#include "base/buffer.h"
#include "base/sync_group.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/tool/scan.h"

#include <stdint.h>
#include <sys/stat.h>

struct rewrite_file { /* being written */
    char *path, *temporary, *run; /* temporary: NULL with -o -, where fd has no name */
    struct unfinished *unfinished;
    int fd;
    struct buffer pending; /* append records here, then rewrite_flush() */
    uint64_t bytes;        /* all so far, pending ones as well */
    struct stat before;    /* in place: the old file's */
    int in_place, made;    /* made: its directory is new */
    int keep_old;          /* it is not put in place: nothing has changed, or nothing is left */
};

struct rewrite {
    struct scan scan;
    const char *output; /* a directory, or NULL with in_place */
    int in_place, force, json;
    struct tag_index tags;       /* the command's */
    struct rewrite_file **files; /* all, to be put in place together */
    size_t count;
    uint64_t bytes_in, bytes_out, records, values, dropped, renamed; /* read; written; not */
    uint64_t torn; /* bytes of cut tails */
    struct sync_group sync; /* new files, then their directories */
    int looking_ahead; /* the files are read again later: damage is counted and told then */
};

/* The options that all have: rows of a table. */
#define REWRITE_OPTIONS(w) \
    { OPTION_TEXT, 'o', "output", &(w).output, "DIR", .help = "Write the new log to DIR, one directory for each run; " \
      "DIR is created if missing" }, \
    { OPTION_FLAG, 'f', "force", &(w).force, .help = "Also write to directories that hold event files, and overwrite " \
      "files of the same name" }, \
    SCAN_RUN_OPTION((w).scan), \
    { OPTION_FLAG, 0, "json", &(w).json, .help = "Print what was done as a JSON object" }
#define REWRITE_IN_PLACE(w) \
    { OPTION_FLAG, 0, "in-place", &(w).in_place, .help = "Replace each file that changes and keep the old one beside " \
      "it as NAME.bak, with every 'tfevents' in NAME changed to 'tf-events', so that TensorBoard does not read it. " \
      "Files that are being written are refused. A running TensorBoard reads a new file only after a restart" }

/* Checks where the result goes and lists the runs. EXIT_DONE, or a status that has been told. */
int rewrite_open(struct rewrite *w, char *const *paths, size_t count);
/* Removes what was not put in place; tells what was damaged. Returns the status: rc, what the command came to, has its
 * sentence in e; matched: it found something to do. */
int rewrite_close(struct rewrite *w, int rc, int matched, const struct error *e);

/* Event files that were given by name become runs named by their directories, those of one directory one run. */
int rewrite_group_files(struct rewrite *w, struct error *e);

/* The sound records of one file as it is now; damage and what a loader refuses is counted and told. visit gets each
 * with its event; not OK ends the reading. A file that cannot be read is told and passed over: OK. */
typedef int rewrite_visit(void *context, uint64_t offset, const uint8_t *data, size_t n, const struct event *event,
                          struct error *e);
int rewrite_read(struct rewrite *w, const char *run, const char *path, rewrite_visit *visit, void *context,
                 struct error *e);
/* Whether a record can go into a log that loaders read to the end: 1 and *event. */
int rewrite_sound(const uint8_t *data, size_t n, struct event *event);

/* A new file DIR/run/name. It is the rewrite's. */
int rewrite_create(struct rewrite *w, const char *run, const char *name, struct rewrite_file **out, struct error *e);
/* A new file that takes the place of the given one, which nobody may be writing. */
int rewrite_create_in_place(struct rewrite *w, const char *run, const char *given, struct rewrite_file **out,
                            struct error *e);
/* Writes what is pending if that is worth while, or in any case at the `end`, which also closes the file. It is synced
 * then, or with others before any of them is put in its place. */
int rewrite_flush(struct rewrite *w, struct rewrite_file *f, int end, struct error *e);
/* All files into their places; ERR_IO, and none, when something could not be read. */
int rewrite_commit(struct rewrite *w, struct error *e);

/* How many files are put in place. */
size_t rewrite_files(const struct rewrite *w);
/* Prints what was done; more: what the command adds, members of a JSON object of totals each with a comma before, or
 * text. */
void rewrite_print(const struct rewrite *w, const char *word, const char *more);

#endif
