/*
 * event_reader.h - reads the events of one file, which may still be growing. Damage is reported once and skipped: a bad
 * data CRC or a record that is not an Event loses that record, a bad header loses everything up to the next valid
 * header. Memory: a window of 256 KiB until the end is reached, larger only while a longer record is read, and only
 * once its bytes are in the file. One reader is for one thread at a time.
 */
#ifndef EVENTLOG_READ_EVENT_READER_H
#define EVENTLOG_READ_EVENT_READER_H

#include "base/error.h"
#include "base/record_frame.h"
#include "eventlog/eventlog.h"
#include "eventlog/format/event_decode.h"
#include "eventlog/format/usual_event.h"
#include "eventlog/read/log_input.h"

#include <stdint.h>
#include <time.h>

struct event_reader;

struct event_damage {
    enum eventlog_damage_kind kind;
    uint64_t offset; /* of the record's first byte in the file, or in the unpacked bytes of a compressed file */
    uint64_t found, wanted;
    const uint8_t *data; /* with EVENTLOG_DAMAGE_DATA_CRC: the record's data, length bytes, borrowed until the next
                          * call */
    size_t length;
};

struct event_reader_state {
    uint64_t size;    /* of the file when it was last checked */
    uint64_t offset;  /* everything before it has been read; less than size at the end: the last record is
                        * incomplete */
    uint64_t records; /* sound ones so far */
    uint64_t lost;    /* bytes skipped because of broken framing */
    uint64_t damaged; /* how often EVENTLOG_READ_DAMAGE was returned */
    int packed;       /* the file is compressed or an archive member: size and offset are those of the unpacked
                        * bytes */
    double first_wall_time, last_wall_time; /* 0 before the first record */
};

/* On OK *out is yours: event_reader_close(). ERR_IO: the file cannot be opened. */
int event_reader_open(struct event_reader **out, struct log_input *in, const char *path, struct error *e);

/*
 * A large file can be read in pieces, by several threads, with the same events, the same damage and the same state as
 * by one reader:
 *
 *     end = a place of event_reader_find() at or after event_reader_offset() + some megabytes
 *     event_reader_piece() of start and end, which another thread reads: event_reader_next() until
 *         event_reader_offset() >= end, or it does not return an event or damage
 *     if the piece is at `end` exactly, and all pieces before it were passed: event_reader_pass()
 *
 * A place where a whole record begins may still be in the data of another one, or in what is lost to damage. Then the
 * piece before it does not come to its end exactly: that piece is dropped, and so are all behind it, and the reader
 * goes on where it is.
 */

/* Everything before it has been handled. */
uint64_t event_reader_offset(const struct event_reader *r);
/* How many bytes of the file as it was last checked are left to read; 0 also where no piece can begin: after an end, of
 * a file that is compressed, and before its first record. */
uint64_t event_reader_left(const struct event_reader *r);
/* 1 and *place, where the first whole record in [from, to) begins. 0: there is none, or the file cannot be read. */
int event_reader_find(const struct event_reader *r, uint64_t from, uint64_t to, uint64_t *place);
/* A reader of the same open file that begins at start. OK, ERR_IO, ERR_NOMEM. Any thread, while nobody else uses r. */
int event_reader_piece(struct event_reader **out, const struct event_reader *r, uint64_t start, struct error *e);
/* r goes on where the piece is, as if it had read all that the piece has. */
void event_reader_pass(struct event_reader *r, const struct event_reader *piece);

/* ERR_IO if it is not an event file, as record_file_check() decides. Without this call the first event_reader_next()
 * returns that error, and then the end until the file changes. */
int event_reader_check(struct event_reader *r, struct error *e);

/* An enum eventlog_read, or ERR_IO (try again later), ERR_NOMEM. EVENTLOG_READ_EVENT: *event, borrowed until the next
 * call; EVENTLOG_READ_DAMAGE: *damage, and the next call continues after it; EVENTLOG_READ_RESTARTED: the file was
 * truncated or replaced, and reading starts again from its beginning. */
int event_reader_next(struct event_reader *r, struct event *event, struct event_damage *damage, struct error *e);

/* A short way past many events that are alike (usual_event.h), for whoever needs no more of them: calls take()
 * for each that has been read from the file already, up to the first event that is another, is damaged, or for which
 * take() returns 0. That one, and what happens at the end of the file, is event_reader_next()'s. The tag is not checked
 * to be UTF-8: take only those of which that is known. */
void event_reader_take_usual(struct event_reader *r, int (*take)(void *context, const struct usual_event *event),
                             void *context);

/* The record of the last EVENTLOG_READ_EVENT: its data, borrowed until the next call, and where it is in the file. */
const uint8_t *event_reader_record(const struct event_reader *r, size_t *length, uint64_t *offset);

/* Returns records without looking at their data, and leaves *event unchanged. Call it before the first
 * event_reader_next(). */
void event_reader_records_only(struct event_reader *r);

/* At an end: closes the descriptor until the file changes, for callers that follow many files. A file that is renamed
 * or removed meanwhile is not read further until it has its name back. */
void event_reader_rest(struct event_reader *r);
int event_reader_resting(const struct event_reader *r);

/* When the file was last modified, as of the last time it was checked. */
struct timespec event_reader_changed(const struct event_reader *r);

struct event_reader_state event_reader_state(const struct event_reader *r);
void event_reader_close(struct event_reader *r); /* NULL is fine */

/* The kind as the word used in JSON ("data_crc"), and as a sentence into out. */
const char *event_damage_word(enum eventlog_damage_kind kind);
void event_damage_text(const struct event_damage *damage, char *out, size_t size);

#endif
