/*
 * record.h - TFRecord framing, the outer layer of event files: pure functions between bytes and records.
 *
 *   offset 0      length       uint64 little-endian, N
 *   offset 8      length CRC   masked CRC-32C of the 8 bytes before
 *   offset 12     data         N bytes
 *   offset 12+N   data CRC     masked CRC-32C of the data
 *
 * A file is records end to end, nothing else. The parser reads a file that somebody may still be writing: what is not
 * whole yet is waited for, what is broken is reported once and passed over. It sees a window of the file at a time and
 * keeps no bytes, so its memory is this struct.
 */
#ifndef EVENTLOG_FORMAT_RECORD_H
#define EVENTLOG_FORMAT_RECORD_H

#include <stddef.h>
#include <stdint.h>

enum {
    RECORD_HEADER = 12,
    RECORD_FOOTER = 4,
    RECORD_OVERHEAD = RECORD_HEADER + RECORD_FOOTER,
    RECORD_LENGTH_MAX = 0x7fffffff, /* protobuf's own limit on a message: a longer record cannot hold an event */
};

/* Fills in header and footer around the n bytes of data that stand at record + RECORD_HEADER already; record holds
 * n + RECORD_OVERHEAD bytes. */
void record_seal(uint8_t *record, size_t n);

/* 1 if these RECORD_HEADER bytes are the header of a record that can be: *length of its data. */
int record_header_right(const uint8_t *header, uint64_t *length);

enum record_result {
    RECORD_MORE,   /* no record in these bytes: come again with at least record.need of them */
    RECORD_DATA,   /* record.data, record.length */
    RECORD_DAMAGE, /* record.damage, found, wanted at record.offset, and of RECORD_BAD_DATA_CRC data and length as well;
                    * the next call goes on behind it */
};

enum record_damage {
    RECORD_BAD_LENGTH_CRC, /* the rest up to the next header that fits is lost */
    RECORD_BAD_DATA_CRC,   /* this record is lost */
    RECORD_TOO_LONG,       /* over the limit: not looked at; found is the length, wanted the limit */
    RECORD_BAD_STREAM,     /* of record_file.h only: what the file was unpacked from is damaged or cut here */
};

struct record {
    uint64_t offset;     /* of the record's first byte in the file */
    const uint8_t *data; /* borrowed from the bytes given; NULL where there is none */
    size_t length;
    size_t need;
    enum record_damage damage;
    uint64_t found, wanted;
};

struct record_parser {
    uint64_t position;   /* offset in the file of the first byte the next call wants */
    uint64_t offset;     /* where the record at hand starts; all before it is done with */
    uint64_t limit;      /* longest data handed out */
    uint64_t lost;       /* bytes passed over so far because of damage */
    /* private */
    int state;
    uint64_t resume;     /* behind the record at hand, while the zeros after it are looked at */
    int written;         /* those zeros are no end: the record at hand has a wrong data CRC, which is 0 */
    uint64_t candidate;  /* first header that did not fit in the file yet, while lost */
    uint64_t found, wanted;
    uint64_t last_length; /* and its CRC; 0: not computed yet */
    uint32_t last_crc;
};

/* Starts at a record border, 0 as a rule. limit 0: RECORD_LENGTH_MAX. */
void record_parser_init(struct record_parser *p, uint64_t offset, uint64_t limit);

/*
 * bytes: n bytes of the file from p->position on; file_size: how long the file is now (position + n at least).
 * RECORD_MORE with position + need > file_size: the end for now. Zeros at the end of the file, where a header or a
 * data CRC should be, count as not written yet: file systems make a file longer before its bytes arrive.
 */
enum record_result record_next(struct record_parser *p, const uint8_t *bytes, size_t n, uint64_t file_size,
                               struct record *r);

/* The file changed since record_next() came to its end: what was taken for not written is to be looked at again. */
void record_parser_again(struct record_parser *p);

/* 1 if the end that was reached is inside a record (or inside zeros, or lost), 0 if it is a record border. */
int record_parser_inside(const struct record_parser *p, uint64_t file_size);

#endif
