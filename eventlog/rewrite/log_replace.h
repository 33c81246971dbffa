/*
 * log_replace.h - files that appear whole, by rename, and event files that take the place of others, which are kept
 * beside them under a name that no TensorBoard reads. The latter for commands that change a log in place: repair,
 * rename-tag, drop-tag, downsample.
 */
#ifndef EVENTLOG_REWRITE_LOG_REPLACE_H
#define EVENTLOG_REWRITE_LOG_REPLACE_H

#include "base/error.h"
#include "base/io.h"

#include <limits.h>
#include <stddef.h>
#include <sys/stat.h>

/* Makes a name beside path that TensorBoard does not read, for a file being written. ERR_ARG: too long for out. */
int log_replace_temporary_name(char *out, size_t size, const char *path, struct error *e);

/* directory/NAME -> directory/NAME.bak with every `tfevents` in NAME as `tf-events`; ERR_ARG: too long for out. */
int log_replace_backup_name(char *out, size_t size, const char *path, struct error *e);

/* OK if the file at path is still the one open as fd, unchanged since `before`, and nobody has it open for writing;
 * else ERR_ARG, or ERR_IO if it is gone. */
int log_replace_unchanged(int fd, const char *path, const struct stat *before, struct error *e);

/* Renames the temporary file to path, after giving the old file the backup's name; the caller syncs the directory.
 * ERR_ARG: a backup already exists. On error both files are as they were. */
int log_replace_exchange(const struct io *io, const char *path, const char *temporary, struct error *e);

/* being written */
struct log_replace_file {
    const struct io *io;
    int fd;
    char temporary[PATH_MAX];
    struct unfinished *unfinished; /* until it has its place a signal removes it */
};

/* Makes the temporary file beside path. After an error there is nothing to close. */
int log_replace_open(struct log_replace_file *f, const struct io *io, const char *path, struct error *e);

/* rc: what the writing came to. If it is OK, the file goes down to the disk and to its place, over what is there or,
 * old_fd >= 0, with a backup of the old file, which has to be as `before` says. Otherwise, and after an error, it is
 * removed. */
int log_replace_close(struct log_replace_file *f, const char *path, int old_fd, const struct stat *before, int rc,
                      struct error *e);

#endif
