/*
 * run_pieces.h - reads much of a large file into a scalar_run by several threads: they find records, verify CRCs and
 * decode pieces of the file, each into a scalar_run of its own, and the caller's thread adds their points, in the order
 * of the file. The run and the reader are the same afterwards as if the reader alone had come so far
 * (event_reader_piece()). Memory: that of the run, and the points of a few pieces.
 */
#ifndef EVENTLOG_READ_RUN_PIECES_H
#define EVENTLOG_READ_RUN_PIECES_H

#include "eventlog/read/event_reader.h"
#include "eventlog/read/scalar_series.h"

#include <stdint.h>

#define RUN_PIECES_LENGTH ((uint64_t)4 << 20) /* bytes: worth a thread */

/* Reads on with the reader, whose first events are in the run. It stops before the last pieces; before the first piece
 * with damage, with values for run->other, or with series that are of another kind than in the run; and where there is
 * no memory or descriptor for one. Then event_reader_next() goes on. It does nothing with one core, in views that
 * depend on the order of all events, and with very many series. passed: called after each piece, may be NULL.
 * OK; ERR_NOMEM: the run may only be restarted or released. */
int run_pieces_read(struct event_reader *reader, struct scalar_run *run, uint64_t length, void (*passed)(void *context),
                    void *context, struct error *e);

#endif
