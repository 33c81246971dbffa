/*
 * event_reader.h - events of one file, which somebody may still be writing. Damage is reported once and passed over:
 * a bad data CRC or an event that is no event costs that record, a bad header costs what lies before the next header.
 * Memory: a window of 256 KiB until the end is reached, larger only while a longer record is read, and never before its
 * bytes are in the file. One reader is for one thread at a time.
 */
#ifndef EVENTLOG_READ_EVENT_READER_H
#define EVENTLOG_READ_EVENT_READER_H

#include "base/error.h"
#include "eventlog/format/event_decode.h"
#include "eventlog/read/log_input.h"

#include <stdint.h>
#include <time.h>

struct event_reader;

enum event_reader_result {
    EVENT_READER_END = 0,       /* nothing more for now; a later call looks again */
    EVENT_READER_EVENT = 1,     /* *event, borrowed until the next call */
    EVENT_READER_DAMAGE = 2,    /* *damage; the next call goes on behind it */
    EVENT_READER_RESTARTED = 3, /* the file was cut or replaced by another: reading begins again at its start, and what
                                 * came out of it before no longer stands */
};

enum event_damage_kind {
    EVENT_DAMAGE_LENGTH_CRC,
    EVENT_DAMAGE_DATA_CRC,
    EVENT_DAMAGE_TOO_LONG,
    EVENT_DAMAGE_PROTO,     /* found: the place in the record's data */
    EVENT_DAMAGE_WALL_TIME, /* NaN: TensorBoard's default loader gives the file up there */
    EVENT_DAMAGE_UTF8,      /* a string is not UTF-8: the event is handed out all the same, next */
    EVENT_DAMAGE_STREAM,    /* what the file was unpacked from is damaged or cut; offset is where its bytes end */
};

struct event_damage {
    enum event_damage_kind kind;
    uint64_t offset; /* of the record's first byte in the file; of a compressed file, in what it unpacks to */
    uint64_t found, wanted;
    const uint8_t *data; /* of EVENT_DAMAGE_DATA_CRC: the record's, length bytes, borrowed until the next call */
    size_t length;
};

struct event_reader_state {
    uint64_t size;     /* of the file when it was last looked at */
    uint64_t offset;   /* all before it has been read; less than size at the end: a record that is not whole */
    uint64_t records;  /* sound ones so far */
    uint64_t lost;     /* bytes passed over because of broken framing */
    uint64_t damaged;  /* how often EVENT_READER_DAMAGE was returned */
    int packed;        /* the file is compressed or the like: size and offset are of what it unpacks to */
    double first_wall_time, last_wall_time; /* 0 before the first record */
};

/* On OK *out is yours: event_reader_close(). ERR_IO: the file cannot be opened. */
int event_reader_open(struct event_reader **out, struct log_input *in, const char *path, struct error *e);

/* ERR_IO if it is no event file: record_file_check(). The first event_reader_next() says so otherwise, and then has
 * nothing to read until the file changes. */
int event_reader_check(struct event_reader *r, struct error *e);

/* An enum event_reader_result, or ERR_IO (try again later), ERR_NOMEM. */
int event_reader_next(struct event_reader *r, struct event *event, struct event_damage *damage, struct error *e);

/* The record of the last EVENT_READER_EVENT: its data, borrowed until the next call, and where it is in the file. */
const uint8_t *event_reader_record(const struct event_reader *r, size_t *length, uint64_t *offset);

/* Records are handed out without a look at their data: *event is then left alone. Before the first call of next. */
void event_reader_records_only(struct event_reader *r);

/* At an end: gives the descriptor back until the file has changed. For those who follow many files: a file that loses
 * its name meanwhile is not read any further, until it has it back. */
void event_reader_rest(struct event_reader *r);
int event_reader_resting(const struct event_reader *r);

/* When the file was changed last, as of the last look at it. */
struct timespec event_reader_changed(const struct event_reader *r);

struct event_reader_state event_reader_state(const struct event_reader *r);
void event_reader_close(struct event_reader *r); /* NULL is fine */

/* The kind as the word used in JSON ("data_crc"), and as a sentence into out. */
const char *event_damage_word(enum event_damage_kind kind);
void event_damage_text(const struct event_damage *damage, char *out, size_t size);

#endif
