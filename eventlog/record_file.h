/*
 * record_file.h - the records of a file as it is at one moment: what a check or a repair reads, once from start to end.
 * What is appended later is not seen. Memory: a window of 256 KiB, larger only while a longer record is read.
 * One thread at a time.
 */
#ifndef EVENTLOG_RECORD_FILE_H
#define EVENTLOG_RECORD_FILE_H

#include "base/error.h"
#include "eventlog/record.h"

struct record_file {
    int fd;                      /* for reading; the struct's own */
    uint64_t size;               /* when it was opened; less if the file was cut since */
    struct record_parser parser; /* parser.offset: all before it is done with */
    /* private */
    const char *path;
    uint8_t *window;
    size_t capacity, have;
    uint64_t base;
};

/* path is borrowed until close. ERR_IO: it cannot be opened, or is no regular file. Close also after an error. */
int record_file_open(struct record_file *f, const char *path, struct error *e);
void record_file_close(struct record_file *f);

/* RECORD_DATA or RECORD_DAMAGE with *r, borrowed until the next call; RECORD_MORE at the end; ERR_IO, ERR_NOMEM. */
int record_file_next(struct record_file *f, struct record *r, struct error *e);

#endif
