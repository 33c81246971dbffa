/*
 * rewrite.h - what the commands share that turn logs into other logs: reading the sound records of files, writing event
 * files that all appear by rename at the end, in a new directory or in place of the old ones with a backup, and
 * reporting what was left out. Inputs are never written to.
 */
#ifndef EVENTLOG_TOOL_REWRITE_REWRITE_H
#define EVENTLOG_TOOL_REWRITE_REWRITE_H

#include "base/buffer.h"
#include "base/sync_group.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/tool/scan.h"

#include <stdint.h>
#include <sys/stat.h>

/* being written */
struct rewrite_file {
    char *path, *temporary, *run; /* temporary: NULL with -o -, where fd has no name */
    struct unfinished *unfinished;
    int fd;
    struct buffer pending; /* append records here, then rewrite_flush() */
    uint64_t bytes;        /* all so far, pending ones as well */
    struct stat before;    /* in place: the old file's */
    int in_place, made;    /* made: its directory is new */
    int keep_old;          /* the new file is not put in place: nothing has changed, or nothing is left */
};

struct rewrite {
    struct scan scan;
    const char *output; /* a directory, or NULL with in_place */
    int in_place, force, json;
    struct tag_index tags;       /* the command's */
    struct rewrite_file **files; /* all, to be put in place together */
    size_t count;
    uint64_t bytes_in, bytes_out, records, values, dropped, renamed; /* read; written; not */
    uint64_t torn;                                                   /* bytes of incomplete last records */
    struct sync_group sync;                                          /* new files, then their directories */
    int looking_ahead; /* the files are read again later: damage is counted and reported then */
};

/* The options that all have: rows of a table. */
/* clang-format off */
#define REWRITE_OPTIONS(w) \
    { OPTION_TEXT, 'o', "output", &(w).output, "DIR", .help = "Write the new log to DIR, one directory for each run; " \
      "DIR is created if missing" }, \
    { OPTION_FLAG, 'f', "force", &(w).force, .help = "Also write to directories that hold event files, and overwrite " \
      "files of the same name" }, \
    SCAN_RUN_OPTION((w).scan), \
    { OPTION_FLAG, 0, "json", &(w).json, .help = "Print what was done as a JSON object" }
/* clang-format on */
#define REWRITE_IN_PLACE(w) \
    { \
        OPTION_FLAG, 0, "in-place", &(w).in_place, \
            .help = "Replace each file that changes and keep the old one beside " \
                    "it as NAME.bak, with every 'tfevents' in NAME changed to 'tf-events', so that TensorBoard does " \
                    "not read it. " \
                    "Files that are being written are refused. A running TensorBoard reads a new file only after a " \
                    "restart" \
    }

/* Checks the destination and lists the runs. EXIT_DONE, or another status whose reason has been printed. */
int rewrite_open(struct rewrite *w, char *const *paths, size_t count);
/* Removes what was not put in place and reports damage. Returns the exit status: rc is the result of the command, with
 * its error in e; matched: it found something to do. */
int rewrite_close(struct rewrite *w, int rc, int matched, const struct error *e);

/* Reads the sound records of one file as it is now; damage and records at which a loader gives up are counted and
 * reported. visit gets each record with its event; a result other than OK ends the reading. A file that cannot be read
 * is reported and skipped: OK. */
typedef int rewrite_visit(void *context, uint64_t offset, const uint8_t *data, size_t n, const struct event *event,
                          struct error *e);
int rewrite_read(struct rewrite *w, const char *run, const char *path, rewrite_visit *visit, void *context,
                 struct error *e);
/* Makes a new file DIR/run/name, owned by the rewrite. */
int rewrite_create(struct rewrite *w, const char *run, const char *name, struct rewrite_file **out, struct error *e);
/* A new file that takes the place of the given one, which nobody may be writing. */
int rewrite_create_in_place(struct rewrite *w, const char *run, const char *given, struct rewrite_file **out,
                            struct error *e);
/* Writes what is pending if it is enough, or at the `end` in any case, which also closes the file. It is synced then,
 * or together with others before any of them is put in place. */
int rewrite_flush(struct rewrite *w, struct rewrite_file *f, int end, struct error *e);
/* Puts all files in place; ERR_IO, and none of them, if something could not be read. */
int rewrite_commit(struct rewrite *w, struct error *e);

/* How many files are put in place. */
size_t rewrite_files(const struct rewrite *w);
/* Prints what was done; more: what the command adds, as members of the JSON totals, each after a comma, or as text. */
void rewrite_print(const struct rewrite *w, const char *word, const char *more);

#endif
