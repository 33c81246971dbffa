/*
 * record_index.h - where the records of TFRecord files are (base/record_frame.h), so that any of them can be read at
 * any time. Making the index reads each header and checks its CRC, which the next header's place depends on; the data's
 * CRC is checked whenever a record is read.
 *
 * What is broken has a place in the index, too: a damaged or incomplete record, or a piece of a file in which no header
 * is right (then the index continues at the next right one). Reading it is the error that names it.
 */
#ifndef DATASET_STREAM_RECORD_INDEX_H
#define DATASET_STREAM_RECORD_INDEX_H

#include "base/buffer.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct record_place {
    uint64_t offset; /* of its header in the file */
    uint32_t length; /* of its data; RECORD_NONE: here is no record */
    uint32_t file;
};

#define RECORD_NONE UINT32_MAX

struct record_index {
    const char *const *paths; /* borrowed, like the files' bytes: files that are replaced meanwhile are not noticed */
    size_t files;
    int *fds; /* (files), if so many may be open; NULL: each is opened again for each read */
    struct record_place *places;
    size_t count, room;
};

/* Lists the records of the files, at most `most`. ERR_IO: a file cannot be read. ERR_ARG: one is compressed. On OK or
 * not, record_index_release() it. */
int record_index_make(struct record_index *out, const char *const *paths, size_t files, size_t most, struct error *e);

/* Reads record i's data into `out`, which is emptied first. ERR_CORRUPT: it is broken; the sentence names the file and
 * the byte. Any number of threads may read. */
int record_index_read(const struct record_index *x, size_t i, struct buffer *out, struct error *e);

/* Reads n bytes of record i's data from `from` on, without a check, into out (n). ERR_CORRUPT as above. */
int record_index_part(const struct record_index *x, size_t i, size_t from, uint8_t *out, size_t n, struct error *e);

void record_index_release(struct record_index *x);

#endif
