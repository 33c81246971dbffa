/*
 * event_file.h - the files that a writer appends to, one after the other: sorted names, whole records only, truncation
 * after a failed write, fsync. One thread at a time.
 *
 * A batch of records is one write() to a descriptor opened with O_APPEND. If the write stops part way, the file is
 * truncated to the last whole record that arrived. If even that fails, `torn` forbids any write until it succeeds, so
 * nothing is ever appended after half a record.
 *
 * If the file is deleted, moved or replaced, writes still go to it until event_file_keep() notices: then the directory
 * and a new file are made, with everything that the old one, which is still open, holds.
 */
#ifndef EVENTLOG_WRITE_EVENT_FILE_H
#define EVENTLOG_WRITE_EVENT_FILE_H

#include "base/error.h"
#include "base/io.h"
#include "eventlog/eventlog.h"

#include <stddef.h>
#include <stdint.h>

struct event_file_name; /* paths used so far, newest first: a caller may still hold an old one */

struct event_file {
    const struct io *io;
    int fd;          /* -1: none */
    uint64_t size;   /* of the file: whole records only */
    size_t first;    /* bytes of the first record of each file */
    uint64_t events; /* in this file, from calls of this writer */
    uint64_t lost;   /* of those in all its files: in a file that is gone */
    enum eventlog_sync sync;
    double sync_seconds;
    int apart;      /* 1: there is no directory, and paths are names of objects that io makes */
    int leave_lost; /* 1: event_file_keep() does not make a lost file again, but fails */
    uint64_t writes, bytes, syncs, files, errors; /* so far, over all files; errors: calls that failed */
    struct error last;                            /* the newest of them */
    /* private */
    char *directory, *suffix, *source;
    struct event_file_name *names;
    int torn, named, unsynced, gone;
    double last_sync, looked;
    struct error notice;
};

/* Copies the settings and makes a new file with its first record in the directory, which must exist; NULL: apart from
 * any directory. suffix and source as in eventlog_writer_options, not NULL. io outlives f. On error f holds nothing. */
int event_file_create(struct event_file *f, const struct io *io, const char *directory, const char *suffix,
                      const char *source, struct error *e);
/* The same, but appends to the newest file of the directory by name, if there is one. If that has a torn tail, it is
 * truncated to its last whole record and a new file is made anyway: a reader that has seen half of the record would
 * join other bytes to it. ERR_CORRUPT: the file is damaged before its end. ERR_IO with EBUSY: another writer has it
 * open. */
int event_file_append(struct event_file *f, const struct io *io, const char *directory, const char *suffix,
                      const char *source, struct error *e);

/* The path of the current file; borrowed until close. */
const char *event_file_path(const struct event_file *f);
/* The directory, absolute if that could be determined. It never changes, so any thread may ask. */
const char *event_file_directory(const struct event_file *f);

/* Writes n bytes, whole records. ERR_IO: only the first *whole bytes, whole records too, are in the file. */
int event_file_write(struct event_file *f, const uint8_t *records, size_t n, size_t *whole, struct error *e);
/* How many whole records are in these n bytes. */
uint64_t event_file_records(const uint8_t *records, size_t n);

/* Checks that the file is still at its path: `always`, or else if the last check was at least a second ago. If it is
 * gone, makes it again under another name. ERR_IO: that failed (or was not tried, with leave_lost): writes still go to
 * the old file and count as lost, and the next check tries again. */
int event_file_keep(struct event_file *f, int always, struct error *e);
/* Checks, and makes a lost file again even with leave_lost. */
int event_file_make_again(struct event_file *f, struct error *e);
/* ERR_IO once after a file was made again: what became of its events. */
int event_file_notice(struct event_file *f, struct error *e);
/* Events from calls that were written but, as far as is known, are in no file of the run. */
uint64_t event_file_lost(const struct event_file *f);

/* Checks that the file is there; syncs what was written, and the directory once. */
int event_file_sync(struct event_file *f, struct error *e);
/* The same if a sync is due under the policy; *next: when the next one is due, as of clock_monotonic(), or INFINITY. */
int event_file_sync_when_due(struct event_file *f, double now, double *next, struct error *e);

/* Starts a new file with its first record, whose name sorts after the old one's; the old one is checked for, synced
 * unless the policy is `never`, and closed. On error the old one stays in use. */
int event_file_next(struct event_file *f, struct error *e);

/* Closes and removes the file and frees f's memory: for when a later part of opening failed. */
void event_file_remove(struct event_file *f);
/* Closes without a last sync and frees f's memory, the path included. */
int event_file_close(struct event_file *f, struct error *e);

#endif
