/*
 * record_file.h - reads the records of a file as it is at one moment, once from start to end, as a check or a repair
 * does. Bytes appended later are not seen until record_file_again(), which event_reader.h calls for files that grow.
 * Memory: a window of 256 KiB, larger only while a longer record is read. One thread at a time.
 */
#ifndef EVENTLOG_FORMAT_RECORD_FILE_H
#define EVENTLOG_FORMAT_RECORD_FILE_H

#include "base/error.h"
#include "eventlog/format/record.h"

struct record_file {
    int fd;                      /* for reading; owned by the struct; -1: closed */
    uint64_t size;               /* as of opening or record_file_again(); less if the file was truncated since */
    struct record_parser parser; /* everything before parser.offset has been handled. May be re-initialised between
                                  * calls */
    int packed;                  /* set by log_input.h: these bytes were unpacked from another file, and do not grow */
    int broken;                  /* and they end early, because that file is damaged or truncated: reported once, at the
                                  * end */
    /* private */
    const char *path;
    uint8_t *window;
    size_t capacity, have;
    uint64_t base;
};

/* path is borrowed until record_file_close(). ERR_IO: it cannot be opened, or is not a regular file. Close also after
 * an error; closing releases descriptor and window, and record_file_again() may follow. */
int record_file_open(struct record_file *f, const char *path, struct error *e);
/* The same with a descriptor, which it takes over even on error. */
int record_file_take(struct record_file *f, const char *path, int fd, struct error *e);
void record_file_close(struct record_file *f);

/* Frees the window until more is read. */
void record_file_trim(struct record_file *f);

/* The file now has size bytes, perhaps different ones. fd is the descriptor in use, or a new one that it takes over
 * instead. */
void record_file_again(struct record_file *f, int fd, uint64_t size);

/* RECORD_DATA or RECORD_DAMAGE with *r, borrowed until the next call; RECORD_MORE at the end; ERR_IO, ERR_NOMEM. */
int record_file_next(struct record_file *f, struct record *r, struct error *e);

/* What has been read from the parser's position on: *n bytes, borrowed until the next call. */
const uint8_t *record_file_ahead(const struct record_file *f, size_t *n);

/* ERR_IO if the file has bytes but no record; the error says what it is instead. OK also if it is empty, too short to
 * tell, or begins with zeros or a record header: its records may still come. Call it at the start. */
int record_file_check(const struct record_file *f, struct error *e);

/* record_file_holds: 1 if a whole record with both CRCs right begins at offset. record_file_find: 1 and *place, where
 * the first such record in [from, to) begins. 0 if there is none; -1 and errno: the file cannot be read, or memory ran
 * out. Both are independent of the parser's position. */
int record_file_holds(const struct record_file *f, uint64_t offset);
int record_file_find(const struct record_file *f, uint64_t from, uint64_t to, uint64_t *place);

#endif
