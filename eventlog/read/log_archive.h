/*
 * log_archive.h - the event files in an archive of tar (plain, or in gzip, zstd, xz or bzip2) or zip, and files in xz
 * and bzip2, by libarchive. It is loaded when the first of these is met, since loading it and what it depends on takes
 * milliseconds, and needed for nothing else.
 *
 * An archive is read once, from start to end: the contents of its event files go into one file without a name. Nothing
 * is written under the name of a member.
 */
#ifndef EVENTLOG_READ_LOG_ARCHIVE_H
#define EVENTLOG_READ_LOG_ARCHIVE_H

#include "base/error.h"
#include "base/spool.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/read/log_unpack.h"

#include <stddef.h>
#include <stdint.h>

struct log_archive_member {
    uint64_t offset, size; /* of its contents in the spool; of a hard link, those of its target */
    int broken;            /* they end early, because the archive is damaged or truncated there */
};

struct log_archive {
    char *path;
    struct spool contents;
    /* By path in the archive, without "/" at its start, "." and "..": members with "tfevents" in their names. Of two
     * with the same path the last counts, as it would if they were extracted. */
    struct tag_index members;
    size_t left_out;     /* symbolic links and special files with such names */
    struct error damage; /* code ERR_CORRUPT: members may be missing, and why */
};

/* Reads the archive open as fd, whose position changes. path (copied) names it in errors. ERR_IO: libarchive is
 * missing, or there is no room for the contents. Release it also after an error. */
int log_archive_read(struct log_archive *a, int fd, const char *path, struct error *e);
void log_archive_release(struct log_archive *a);

/* NULL: there is no such member. For several threads. */
const struct log_archive_member *log_archive_find(const struct log_archive *a, const char *name);

/* Unpacks the xz or bzip2 stream open as fd, whose position changes, into sink. *whole: it is sound and complete.
 * ERR_IO as above, or what the sink returned. */
int log_archive_unpack(int fd, log_unpack_sink *sink, void *context, int *whole, struct error *e);

#endif
