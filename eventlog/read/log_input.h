/*
 * log_input.h - what a path of a log leads to, as records: an event file as it is, or one that is compressed with gzip
 * or zstd, a member of an archive, or standard input. What cannot be read in any order is unpacked first, whole, into a
 * file without a name (base/spool.h), which is there as long as the file is open. So it is what it was when it was
 * opened, and does not grow.
 *
 * A member's path is the archive's, '/', and its name: "logs.tfz/train/events.out.tfevents.1".
 */
#ifndef EVENTLOG_READ_LOG_INPUT_H
#define EVENTLOG_READ_LOG_INPUT_H

#include "base/error.h"
#include "base/file_kind.h"
#include "base/spool.h"
#include "eventlog/format/record_file.h"
#include "eventlog/read/log_archive.h"

#include <stddef.h>
#include <stdint.h>

struct log_input { /* all zero at first */
    int standard_input; /* 1: the path "-" is standard input; else a file of that name */
    /* private */
    struct spool in;    /* standard input, once has_in */
    int has_in;
    struct log_archive *archives;
    size_t archive_count;
};

void log_input_release(struct log_input *in);

int log_input_is_standard_input(const struct log_input *in, const char *path);

/* Opens the path as record_file_open() does, and so that it is read to its end however it is stored. What is damaged or
 * cut there is told by record_file_next(). ERR_IO also where it cannot be unpacked. Close with
 * record_file_close(). */
int log_input_open(struct log_input *in, const char *path, struct record_file *f, struct error *e);

/* 1 and *archive if the path is an archive, which then stays open until release; 0 if it is not; or an error. */
int log_input_archive(struct log_input *in, const char *path, const struct log_archive **archive, struct error *e);

/* "a gzip file" and the like for what cannot grow and is not to be written over; NULL for a plain file, or none. */
const char *log_input_packed(const struct log_input *in, const char *path);

/* What the open file is once it is unpacked, by its first bytes; FILE_KIND_UNKNOWN also where that cannot be read. */
enum file_kind log_input_kind_of_descriptor(int fd);

/* 1 if that error of opening is that the file is not there any more, neither under its name nor as it would be called
 * compressed or unpacked: what a directory held when it was listed may be removed before it is opened. */
int log_input_gone(const char *path, const struct error *e);

/* How many bytes the file has where it is stored, 0 if that is not known. */
uint64_t log_input_bytes(const struct log_input *in, const char *path);

#endif
