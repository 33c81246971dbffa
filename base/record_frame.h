/*
 * record_frame.h - TFRecord framing, the outer layer of event files and of TensorFlow's data files. Pure functions.
 *
 *   offset 0      length       uint64 little-endian, N
 *   offset 8      length CRC   masked CRC-32C of the 8 bytes before
 *   offset 12     data         N bytes
 *   offset 12+N   data CRC     masked CRC-32C of the data
 *
 * A file consists of records end to end.
 */
#ifndef BASE_RECORD_FRAME_H
#define BASE_RECORD_FRAME_H

#include "base/bytes.h"
#include "base/crc32c.h"

#include <stddef.h>
#include <stdint.h>

enum {
    RECORD_HEADER = 12,
    RECORD_FOOTER = 4,
    RECORD_OVERHEAD = RECORD_HEADER + RECORD_FOOTER,
    RECORD_LENGTH_MAX = 0x7fffffff, /* protobuf's limit for a message: a longer record cannot hold one */
};

/* Fills in header and footer around the n bytes of data that are already at record + RECORD_HEADER; record holds n +
 * RECORD_OVERHEAD bytes. */
static inline void record_seal(uint8_t *record, size_t n)
{
    put_le64(record, n);
    put_le32(record + 8, crc32c_mask(crc32c(record, 8)));
    put_le32(record + RECORD_HEADER + n, crc32c_mask(crc32c(record + RECORD_HEADER, n)));
}

/* 1 if these RECORD_HEADER bytes are a valid header; *length is that of the record's data. */
static inline int record_header_right(const uint8_t *header, uint64_t *length)
{
    *length = get_le64(header);
    return *length <= RECORD_LENGTH_MAX && get_le32(header + 8) == crc32c_mask(crc32c(header, 8));
}

#endif
