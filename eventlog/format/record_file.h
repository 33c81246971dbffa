/*
 * record_file.h - the records of a file as it is at one moment: what a check or a repair reads, once from start to end.
 * What is appended later is not seen until record_file_again() says so, as event_reader.h does for files that grow.
 * Memory: a window of 256 KiB, larger only while a longer record is read. One thread at a time.
 */
#ifndef EVENTLOG_FORMAT_RECORD_FILE_H
#define EVENTLOG_FORMAT_RECORD_FILE_H

#include "base/error.h"
#include "eventlog/format/record.h"

struct record_file {
    int fd;                      /* for reading; the struct's own; -1: closed */
    uint64_t size;               /* when it was opened, or looked at again; less if the file was cut since */
    struct record_parser parser; /* parser.offset: all before it is done with. May be set anew between calls */
    int packed;                  /* set by log_input.h: these bytes were stored in another form, and do not grow */
    int broken;                  /* and they end early, since those are damaged or cut: told once, at the end */
    /* private */
    const char *path;
    uint8_t *window;
    size_t capacity, have;
    uint64_t base;
};

/* path is borrowed until close. ERR_IO: it cannot be opened, or is no regular file. Close also after an error; gives
 * descriptor and window back, and may be followed by record_file_again(). */
int record_file_open(struct record_file *f, const char *path, struct error *e);
/* The same with a descriptor, which becomes the struct's also where this fails. */
int record_file_take(struct record_file *f, const char *path, int fd, struct error *e);
void record_file_close(struct record_file *f);

/* Gives the window back until more is read. */
void record_file_trim(struct record_file *f);

/* The file has that many bytes now, and maybe others than before, behind fd: the one in use, or one that it takes over
 * in its place. */
void record_file_again(struct record_file *f, int fd, uint64_t size);

/* RECORD_DATA or RECORD_DAMAGE with *r, borrowed until the next call; RECORD_MORE at the end; ERR_IO, ERR_NOMEM. */
int record_file_next(struct record_file *f, struct record *r, struct error *e);

/* ERR_IO if the file holds no record but other bytes, and what it is instead. OK also if it is empty, too short to
 * tell, or begins with zeros or with the header of a record: its records may be still to come. To be asked at the
 * start. */
int record_file_check(const struct record_file *f, struct error *e);

/* 1 if a whole record, with both CRCs right, begins at that place; and the first that begins in [from, to), at *place.
 * 0 if there is none; -1 and errno: that cannot be read, or memory ran out. They have nothing to do with how far the
 * parser is. */
int record_file_holds(const struct record_file *f, uint64_t offset);
int record_file_find(const struct record_file *f, uint64_t from, uint64_t to, uint64_t *place);

#endif
