/*
 * event_pieces.h - reads what is left of a large file by several threads: it is cut into pieces at the beginnings of
 * records, threads find the records of pieces, verify CRCs and decode, and the caller's thread takes what came of them,
 * in the order of the file. A piece that does not end exactly where the next one begins is dropped with all behind it.
 * The reader is the same afterwards as if it had come so far alone (event_reader_piece()).
 */
#ifndef EVENTLOG_READ_EVENT_PIECES_H
#define EVENTLOG_READ_EVENT_PIECES_H

#include "eventlog/read/event_reader.h"

#include <stddef.h>
#include <stdint.h>

/* The beginning of a caller's piece, whose memory is used again for others; zero at first. */
struct event_piece {
    struct event_reader *reader;
    uint64_t end;
    int met, failed; /* for event_pieces.c */
};

struct event_pieces {
    size_t size;     /* of a caller's piece */
    uint64_t length; /* of a piece of the file, at least */
    void *context;
    /* By any thread, for each event and damage of a piece; 0: it cannot be read this way, and is dropped with all that
     * follow. damage NULL: nor can a piece with damage. usual: as of event_reader_take_usual(), after each event; may
     * be NULL. */
    int (*event)(const void *context, void *piece, const struct event *event);
    int (*damage)(const void *context, void *piece, const struct event_damage *damage);
    int (*usual)(void *piece, const struct usual_event *event);
    /* By the caller's thread. prepare: before it is read; 0: read no more. take: a piece that was read, in order; 0: it
     * is dropped with all that follow. passed: after it, and once the reader is behind it; 0: read no more. empty: when
     * it has been taken or dropped. release: at the end, also of one that is not empty. prepare, passed may be NULL. */
    int (*prepare)(void *context, void *piece);
    int (*take)(void *context, void *piece);
    int (*passed)(void *context);
    void (*empty)(void *piece);
    void (*release)(void *piece);
};

/* Reads on with the reader, after its first event. It stops before the last pieces, before one that is dropped, and
 * where there is no memory or descriptor for one; then event_reader_next() goes on. It does nothing with one core. */
void event_pieces_read(const struct event_pieces *pieces, struct event_reader *reader);

#endif
