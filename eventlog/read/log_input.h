/*
 * log_input.h - opens a path of a log for reading records: a plain event file, a compressed one, a member of an archive
 * (log_archive.h), or standard input. An input that cannot be read in any order is first unpacked completely into a
 * file without a name (base/spool.h), which exists as long as it is open; it stays as it was when it was opened, and
 * does not grow.
 *
 * The path of a member is that of the archive, '/', and the member's name: "logs.tar/train/events.out.tfevents.1".
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

/* all zero at first */
struct log_input {
    int standard_input; /* 1: the path "-" means standard input; 0: a file of that name */
    /* private */
    struct spool in; /* standard input, once has_in */
    int has_in;
    struct log_archive *archives;
    size_t archive_count;
};

void log_input_release(struct log_input *in);

int log_input_is_standard_input(const struct log_input *in, const char *path);

/* Opens the path as record_file_open() does, unpacking it if necessary. record_file_next() reports a compressed file
 * that is damaged or truncated. ERR_IO also if it cannot be unpacked. Close it with record_file_close(). */
int log_input_open(struct log_input *in, const char *path, struct record_file *f, struct error *e);

/* 1 and *archive if the path is an archive, which is read and then stays open until log_input_release(); 0 if it is
 * not; or an error. Not while another thread uses `in`. */
int log_input_archive(struct log_input *in, const char *path, const struct log_archive **archive, struct error *e);

/* "a gzip file" and the like for an input that cannot grow and must not be overwritten; NULL for a plain file or a
 * missing one. */
const char *log_input_packed(const struct log_input *in, const char *path);

/* The kind of the open file once unpacked, from its first bytes; FILE_KIND_UNKNOWN also if it cannot be read. */
enum file_kind log_input_kind_of_descriptor(int fd);

/* 1 if opening failed with this error because the file no longer exists, neither under its name nor under the name that
 * it would have if compressed or unpacked: a file may be removed between listing and opening. */
int log_input_gone(const char *path, const struct error *e);

/* How many bytes the file takes as stored, 0 if unknown. */
uint64_t log_input_bytes(const struct log_input *in, const char *path);

#endif
