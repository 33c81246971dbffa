/*
 * event_file.h - the files that a writer appends to, one after the other: names that sort, whole records only, the cut
 * back after a failed write, fsync. One thread at a time.
 *
 * A batch of records is one write() to a descriptor opened with O_APPEND. If the write stops half way, the file is cut
 * back to the last whole record that arrived. If even the cut fails, `torn` forbids any write until it succeeds, so
 * that nothing is ever appended behind half a record.
 *
 * A file that somebody deletes, moves or replaces takes what is written to it until event_file_keep() looks: then the
 * directory and a file are made again, with all that the old one, which is still open, holds.
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
    int fd;                  /* -1: none */
    uint64_t size;           /* of the file: whole records only */
    size_t first;            /* bytes of the first record of each file */
    uint64_t events;         /* in the file, of calls of this writer */
    uint64_t lost;           /* of those in all its files: in one that is gone */
    enum eventlog_sync sync;
    double sync_seconds;
    int leave_lost; /* 1: event_file_keep() makes nothing again, and fails */
    uint64_t writes, bytes, syncs, files, errors; /* so far, over all files; errors: calls that failed */
    struct error last;                            /* the newest of them */
    /* private */
    char *directory, *suffix, *source;
    struct event_file_name *names;
    int torn, named, unsynced, gone;
    double last_sync, looked;
    struct error notice;
};

/* Takes over the settings (copied) and makes a new file with its first record in the directory, which exists. suffix
 * and source as in eventlog_writer_options, not NULL. io outlives f. On error f holds nothing. */
int event_file_create(struct event_file *f, const struct io *io, const char *directory, const char *suffix,
                      const char *source, struct error *e);
/* The same, but goes on in the newest file of the directory by name, if there is one. If that has a torn tail, it is
 * cut back to its last whole record and a new file is made all the same: a reader that has seen the half record would
 * put other bytes behind it. ERR_CORRUPT: the file is damaged before its end. ERR_IO with EBUSY: somebody has it open
 * for writing. */
int event_file_append(struct event_file *f, const struct io *io, const char *directory, const char *suffix,
                      const char *source, struct error *e);

/* The path of the file at hand; borrowed until close. */
const char *event_file_path(const struct event_file *f);
/* The directory, absolute where that could be found out. It stays the same, so any thread may ask. */
const char *event_file_directory(const struct event_file *f);

/* Writes n bytes, whole records. ERR_IO: only the first *whole bytes, whole records too, are in the file. */
int event_file_write(struct event_file *f, const uint8_t *records, size_t n, size_t *whole, struct error *e);
/* How many records n bytes of whole records are. */
uint64_t event_file_records(const uint8_t *records, size_t n);

/* Looks whether the file is still at its path; `always`, or if the last look is a second ago. If not, makes it again
 * under another name. ERR_IO: that failed; what is written goes on into the old one, counts as lost, and is tried again
 * by the next look; or leave_lost, and it was not tried. */
int event_file_keep(struct event_file *f, int always, struct error *e);
/* Looks, and makes it again, also with leave_lost. */
int event_file_make_again(struct event_file *f, struct error *e);
/* ERR_IO once after a file was made again: what became of its events. */
int event_file_notice(struct event_file *f, struct error *e);
/* Events of calls that were written, and are in no file of the run as far as is known. */
uint64_t event_file_lost(const struct event_file *f);

/* Looks for the file; fsync of what was written, and once of the directory. */
int event_file_sync(struct event_file *f, struct error *e);
/* The same if the policy says so now; *next: when it will at the latest, of clock_monotonic(), or INFINITY. */
int event_file_sync_when_due(struct event_file *f, double now, double *next, struct error *e);

/* A new file, whose name sorts behind the old one's, with its first record; the old one is looked for, synced if the
 * policy is not `never`, and closed. On error the old one stays in use. */
int event_file_next(struct event_file *f, struct error *e);

/* Closes, removes the file and frees: opening went wrong later on. */
void event_file_remove(struct event_file *f);
/* Closes without a last sync and frees; path as well. */
int event_file_close(struct event_file *f, struct error *e);

#endif
