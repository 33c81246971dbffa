/*
 * record_pieces.h - reads one large event file by several threads, a piece each, with the same records, the same damage
 * and the same order as one reader from its start.
 *
 * record_pieces_cut() looks for places where a whole record begins, with both CRCs right. Such a place may still not be
 * a boundary: the data of a record may hold records, and so may bytes that damage makes part of another record. So a
 * piece is read past its end to the next record, and has met the next piece if that begins exactly there: from there on
 * both see the same. If it has not, the next piece has been read in vain: give it up, set `end` to where that one was
 * to end, and read on.
 *
 *     for each piece i, in any order, each by its own thread:
 *         while ((rc = record_piece_next(&pieces[i], &record, e)) == RECORD_DATA || rc == RECORD_DAMAGE)
 *             ...                                                   into the results of i
 *     for (i = 0; i < count; i = next) {
 *         for (next = i + 1; next < count && !pieces[i].met; next++) {
 *             pieces[i].end = pieces[next].end;                     forget the results of `next`
 *             ... record_piece_next(&pieces[i], ...) as above       more results of i
 *         }
 *     }
 *
 * For files as they are at one moment: bytes that are added later are not seen. A piece is for one thread at a time.
 */
#ifndef EVENTLOG_READ_RECORD_PIECES_H
#define EVENTLOG_READ_RECORD_PIECES_H

#include "base/error.h"
#include "eventlog/format/record_file.h"

/* Pieces that are worth a thread have some megabytes; a file of less than two of them stays whole. */
enum { RECORD_PIECE_LEAST = 4 * 1024 * 1024 };

struct record_piece {
    uint64_t end; /* where the next piece begins; the size of the file for the last one */
    int met;      /* after RECORD_MORE: it came to its end exactly */
    struct record_file file;
    /* private */
    struct record held; /* the record after the end, while is_held */
    int is_held, held_result;
};

/* Finds at most `most` pieces of at least `least` bytes (but the last one may be smaller): piece i is from starts[i] to
 * starts[i + 1], with starts[0] = 0 and starts[count] the size of the file; starts has room for most + 1. Returns the
 * count, at least 1; or -1 and errno: the file cannot be read. */
int record_pieces_cut(const struct record_file *f, size_t most, uint64_t least, uint64_t *starts);

/* A piece of the file at path from start to end, where the file ends at size; limit: as for record_parser_init(). Close
 * it also after an error. path is borrowed. */
int record_piece_open(struct record_piece *p, const char *path, uint64_t start, uint64_t end, uint64_t size,
                      uint64_t limit, struct error *e);
void record_piece_close(struct record_piece *p);

/* RECORD_DATA or RECORD_DAMAGE with *r, borrowed until the next call, for what begins before the end; RECORD_MORE at
 * the end, with p->met; ERR_IO, ERR_NOMEM. Bytes lost to damage: p->file.parser.lost, once the end was reached. */
int record_piece_next(struct record_piece *p, struct record *r, struct error *e);

#endif
