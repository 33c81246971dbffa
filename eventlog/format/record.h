/*
 * record.h - finds the records (base/record_frame.h) of an event file. Pure functions. The parser can read a file that
 * is still being written: it waits for an incomplete record, and reports a broken one once and skips it. It sees one
 * window of the file at a time and keeps no bytes, so this struct is all of its memory.
 */
#ifndef EVENTLOG_FORMAT_RECORD_H
#define EVENTLOG_FORMAT_RECORD_H

#include "base/record_frame.h"

enum record_result {
    RECORD_MORE,   /* no complete record in these bytes: call again with at least record.need of them */
    RECORD_DATA,   /* record.data, record.length */
    RECORD_DAMAGE, /* record.damage, found, wanted at record.offset; with RECORD_BAD_DATA_CRC also data and length; the
                    * next call continues after it */
};

enum record_damage {
    RECORD_BAD_LENGTH_CRC, /* everything up to the next valid header is lost */
    RECORD_BAD_DATA_CRC,   /* this record is lost */
    RECORD_TOO_LONG,       /* over the limit: not read; found is the length, wanted the limit */
    RECORD_BAD_STREAM,     /* record_file.h only: the compressed file is damaged or truncated here */
};

struct record {
    uint64_t offset;     /* of the record's first byte in the file */
    const uint8_t *data; /* borrowed from the bytes given; NULL if there is none */
    size_t length;
    size_t need;
    enum record_damage damage;
    uint64_t found, wanted;
};

struct record_parser {
    uint64_t position; /* offset in the file of the first byte that the next call needs */
    uint64_t offset;   /* where the current record starts; everything before it has been handled */
    uint64_t limit;    /* longest data returned */
    uint64_t lost;     /* bytes skipped so far because of damage */
    /* private */
    int state;
    uint64_t resume;    /* the end of the current record, while the zeros after it are examined */
    int written;        /* those zeros are not the end: the current record has a wrong data CRC, which is 0 */
    uint64_t candidate; /* while lost: the first header whose record does not fit in the file yet */
    uint64_t found, wanted;
    uint64_t last_length; /* and its CRC (last_crc); 0: not computed yet */
    uint32_t last_crc;
};

/* Starts at a record boundary, usually 0. limit 0: RECORD_LENGTH_MAX. */
void record_parser_init(struct record_parser *p, uint64_t offset, uint64_t limit);

/*
 * bytes: n bytes of the file from p->position on; file_size: how long the file is now (position + n at least).
 * RECORD_MORE with position + need > file_size: the end for now. Zeros at the end of the file, where a header or a
 * data CRC should be, count as not written yet: file systems make a file longer before its bytes arrive.
 */
enum record_result record_next(struct record_parser *p, const uint8_t *bytes, size_t n, uint64_t file_size,
                               struct record *r);

/* For who reads many sound records of a window: 1 and *r if the parser is at a record that is whole in these bytes, is
 * within the limit and has the right CRCs; 0 otherwise: ask record_next(). The parser stays until record_pass(). */
int record_sound(struct record_parser *p, const uint8_t *bytes, size_t n, struct record *r);
void record_pass(struct record_parser *p, const struct record *r);

/* The file changed since record_next() reached its end: examine again what was taken for not written. */
void record_parser_again(struct record_parser *p);

/* 1 if the end that was reached is inside a record (or inside zeros, or lost), 0 if it is a record boundary. */
int record_parser_inside(const struct record_parser *p, uint64_t file_size);

#endif
