/*
 * log_directory.h - which runs a log directory holds. A run is a directory that directly holds at least one regular
 * file (symbolic links followed) with `tfevents` in its name; its files are read in byte order of their names. Hidden
 * directories count, links are followed, and a directory that contains itself through a link is entered once. One that
 * is removed while its parent is listed is not there.
 *
 * Names that end in ".gz" or ".zst" have the place that they had without; one that is there without it as well is left
 * out, since both hold the same. The directories in an archive are those of a log; each path of a file is one for
 * log_input_open().
 */
#ifndef EVENTLOG_READ_LOG_DIRECTORY_H
#define EVENTLOG_READ_LOG_DIRECTORY_H

#include "base/error.h"
#include "eventlog/read/log_input.h"

#include <stddef.h>

struct log_run {
    char *name;      /* relative to the log directory with '/' between the parts; "." for the log directory itself */
    char *directory; /* its path; for a single file, the file's path */
    char **files;    /* paths, ascending by name */
    size_t file_count;
};

struct log_directory {
    struct log_run *runs; /* ascending by name, as bytes */
    size_t count;
    char **problems;      /* sentences about directories that could not be read */
    size_t problem_count;
    char **directories;   /* paths of all that were looked into, with event files or not */
    size_t directory_count;
    const char *missing;  /* of log_directory_list_there(): the first of the paths that is not there, or NULL */
};

/* Lists one path or several. A path may also be one event file: a run of it alone; or an archive. With several paths,
 * the names of runs are relative to the deepest directory that holds all of the paths ("mpi/eval", "ps/eval"). ERR_IO:
 * a path is missing or cannot be read. A directory without runs is no error. d is yours: log_directory_release(). */
int log_directory_list(struct log_directory *d, struct log_input *in, char *const *paths, size_t count,
                       struct error *e);
/* The same for those who wait: a path that is not there is left out, and runs have the names that they will have when
 * it is. */
int log_directory_list_there(struct log_directory *d, struct log_input *in, char *const *paths, size_t count,
                             struct error *e);
/* Puts the files of a run in order, and leaves out those of which a form that is not compressed is there, too. */
void log_run_sort(struct log_run *run);
/* Frees what the run holds, of which nothing is left then. */
void log_run_release(struct log_run *run);
void log_directory_release(struct log_directory *d); /* also fine after an error */

#endif
