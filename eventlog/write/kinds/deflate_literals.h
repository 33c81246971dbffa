/*
 * deflate_literals.h - a deflate stream (RFC 1951) without matches: one block of literals in Huffman codes of its own.
 * Of bytes in which hardly anything repeats, such as the filtered rows of a photograph, that is as small as what looks
 * for repetitions, and several times as fast. Pure.
 */
#ifndef EVENTLOG_WRITE_KINDS_DEFLATE_LITERALS_H
#define EVENTLOG_WRITE_KINDS_DEFLATE_LITERALS_H

#include <stddef.h>
#include <stdint.h>

enum { DEFLATE_LITERALS_SPARE = 8 }; /* bytes behind the stream that are written, too */

struct deflate_literals {
    uint8_t length[257]; /* bits of each byte's code, and of that for the end of the block */
    size_t bytes;        /* of the stream */
};

/* Chooses the codes for n bytes, 1 to UINT32_MAX of them. */
void deflate_literals_plan(struct deflate_literals *out, const uint8_t *bytes, size_t n);
/* Writes the stream of these bytes, of which the plan was made; out has room for plan->bytes and the spare ones. */
void deflate_literals_write(const struct deflate_literals *plan, const uint8_t *bytes, size_t n, uint8_t *out);

#endif
