/*
 * directory_cache.h - what directories held when they were last read, so that one that has not changed since takes one
 * stat() instead of being read. Of a file system that other machines write to, or whose times are not known to show
 * changes, all are read each time; so are those with links, since what these lead to changes elsewhere. One thread at a
 * time.
 */
#ifndef EVENTLOG_READ_DIRECTORY_CACHE_H
#define EVENTLOG_READ_DIRECTORY_CACHE_H

#include "base/buffer.h"
#include "base/error.h"
#include "eventlog/format/tag_index.h"

#include <stdint.h>
#include <sys/stat.h>

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

/* Reads a directory. OK and *entries, which is yours: buffer_release() its bytes, also after an error. ERR_IO: it
 * cannot be read, and errno tells why. ERR_NOMEM. */
int directory_read(const char *path, struct directory_entries *entries);

/* The same, but reads it only if it may have changed. *entries is borrowed until the next listing begins. */
int directory_cache_read(struct directory_cache *c, const char *path, struct directory_entries **entries);

/* A listing begins. What the one before did not come across is forgotten, sooner or later. */
void directory_cache_begin(struct directory_cache *c);

/* 1: all directories of the last listing are as they were then, so that another one would find the same, if it begins
 * in directories that this one came across: directory_cache_has(). */
int directory_cache_is_same(const struct directory_cache *c);
int directory_cache_has(struct directory_cache *c, const char *path);

void directory_cache_release(struct directory_cache *c);

#endif
