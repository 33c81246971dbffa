/*
 * file_pieces.h - reads much of a large file into a run by several threads: they find records, verify CRCs and decode
 * pieces of the file, and the caller's thread adds what they found, in the order of the file. The run, what is told of
 * damage and the reader are the same afterwards as if the reader alone had come so far (event_reader_piece()).
 *
 * What is at hand meanwhile: a few pieces, with 24 bytes for each number and all bytes of other values.
 */
#ifndef EVENTLOG_SERVER_FILE_PIECES_H
#define EVENTLOG_SERVER_FILE_PIECES_H

#include "eventlog/read/event_reader.h"
#include "eventlog/server/store/run_data.h"

#include <stddef.h>
#include <stdint.h>

#define FILE_PIECES_LENGTH ((uint64_t)4 << 20) /* bytes: worth a thread */

struct file_pieces {
    uint64_t length; /* of a piece, at least */
    void *context;
    void (*damage)(void *context, const struct event_damage *damage); /* but not its data */
    int (*go_on)(void *context);                                      /* after each piece; 0: read no more */
};

/* Reads on with the reader, whose events are those of file number `file` of the run. It stops before the last pieces,
 * where two do not fit together, and where there is no memory or descriptor for one; then event_reader_next() goes on.
 * OK; RUN_DATA_AGAIN or ERR_NOMEM as run_data_event(): the run must be restarted. */
int file_pieces_read(const struct file_pieces *f, struct event_reader *reader, struct run_data *run, size_t file,
                     const char *path, struct error *e);

#endif
