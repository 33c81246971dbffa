/*
 * log_directory.h - lists the runs of a log directory. A run is a directory that directly holds at least one regular
 * file (symbolic links followed) with `tfevents` in its name; its files are read in byte order of their names. Hidden
 * directories count. A directory that is removed during the listing counts as missing.
 *
 * Links are followed after the directories that have names of their own, which are listed once more by the name of a
 * link unless they hold it, or a link back to the directory with the link; what is found only below a link is listed
 * once. What is more than LOG_DIRECTORY_DEPTH_MAX directories deep is left out, and a problem says so once.
 *
 * Names that end in one of LOG_NAME_ENDINGS (log_name.h) sort as if they did not; if the uncompressed file is there
 * too, the compressed one is left out, since both hold the same. The directories in an archive count like those of a
 * log directory; every file path can be given to log_input_open().
 */
#ifndef EVENTLOG_READ_LOG_DIRECTORY_H
#define EVENTLOG_READ_LOG_DIRECTORY_H

#include "base/buffer.h"
#include "base/error.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/read/log_input.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* ---- directory cache --------------------------------------------------------------------------------------------- */

/*
 * What directories held when they were last read, so that one that has not changed since takes one
 * stat() instead of being read. Of a file system that other machines write to, or whose times are not known to show
 * changes, all are read each time; so are those with links, since what these lead to changes elsewhere. One thread at a
 * time.
 */

/* kinds of entries */
enum {
    DIRECTORY_FILE = 'f', /* a regular file */
    DIRECTORY_BELOW = 'd',
    DIRECTORY_UNCLEAR = 'u', /* a link, or the file system does not tell */
};

/* Which directory it is, by whatever path. Without padding: its bytes may be compared. */
struct directory_id {
    uint64_t device, inode;
};

static inline struct directory_id directory_id_of(const struct stat *st)
{
    return (struct directory_id){ (uint64_t)st->st_dev, (uint64_t)st->st_ino };
}

/* The entries that may matter: each is a byte for its kind, and its name with a NUL. Without `.` and `..`, and files
 * without "tfevents" in their names. */
struct directory_entries {
    struct buffer bytes;
    struct directory_id id;
    int mark; /* the caller's; -1 after each reading */
};

struct directory_cache {
    struct tag_index known; /* by path */
    uint64_t listing;       /* the number of the current one */
    size_t seen;            /* directories in it */
};

/* The same, but reads it only if it may have changed. *entries is borrowed until the next listing begins. */
int directory_cache_read(struct directory_cache *c, const char *path, struct directory_entries **entries);

/* A listing begins. What the one before did not come across is forgotten, sooner or later. */
void directory_cache_begin(struct directory_cache *c);

/* 1: all directories of the last listing are as they were then, so that another one would find the same, if it begins
 * in directories that this one came across: directory_cache_has(). */
int directory_cache_is_same(const struct directory_cache *c);
int directory_cache_has(struct directory_cache *c, const char *path);

void directory_cache_release(struct directory_cache *c);

/* ---- log directory ----------------------------------------------------------------------------------------------- */

enum { LOG_DIRECTORY_DEPTH_MAX = 100 };

struct log_run {
    char *name;      /* relative to the log directory with '/' between the parts; "." for the log directory itself */
    char *directory; /* its path; for a single file, the file's path */
    char **files;    /* paths, ascending by name */
    size_t file_count;
    size_t place; /* the index of its directory in log_directory.directories; (size_t)-1: a file or an archive */
};

/* A directory that was looked at. */
struct log_listed {
    char *path;
    /* The caller's, borrowed until the next listing with the same cache: -1 if the directory has been read for this
     * listing, else what it was. NULL: there is no cache. */
    int *mark;
};

struct log_directory {
    struct log_run *runs; /* ascending by name, as bytes */
    size_t count;
    char **problems; /* sentences about directories that could not be read, or lie too deep */
    size_t problem_count;
    size_t unreadable; /* 1 + the index of the last about one that could not be read; 0: none is */
    char **outside;    /* links that lead out of `home` */
    size_t outside_count;
    struct log_listed *directories; /* all that were looked at, with event files or without */
    size_t directory_count;
    const char *missing; /* set by log_directory_list_there(): the first of the paths that does not exist, or NULL */
};

/* Lists one path or several. A path may also be a single event file, which is a run by itself, or an archive. With
 * several paths, the names of runs are relative to the deepest directory that holds all of the paths ("mpi/eval",
 * "ps/eval"). ERR_IO: a path is missing or cannot be read. A directory without runs is not an error. d is yours:
 * log_directory_release() it. */
int log_directory_list(struct log_directory *d, struct log_input *in, char *const *paths, size_t count,
                       struct error *e);
/* The same for callers that wait: a path that does not exist yet is left out, and runs have the names that they will
 * have once it exists. */
int log_directory_list_there(struct log_directory *d, struct log_input *in, char *const *paths, size_t count,
                             struct error *e);
/* The same, and knows in the cache what unchanged directories hold. home: a real path; links that lead out of it are
 * not followed. NULL: all are. */
int log_directory_list_cached(struct log_directory *d, struct directory_cache *cache, const char *home,
                              struct log_input *in, char *const *paths, size_t count, struct error *e);
/* Sorts the files of a run, and drops compressed files whose uncompressed form is there too. */
void log_run_sort(struct log_run *run);
/* Frees what the run holds, of which nothing is left then. */
void log_run_release(struct log_run *run);
void log_directory_release(struct log_directory *d); /* also fine after an error */

/* 1 if something with `tfevents` in its name is in this directory. */
int log_directory_holds_files(const char *path);

#endif
