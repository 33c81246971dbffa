/*
 * idx.h - decodes the IDX format of MNIST and Fashion-MNIST, plain or gzipped, into one array. Layout (big-endian):
 * bytes 0, 0, type, rank; rank sizes of 4 bytes; then the elements, row-major. The decoder is pure: it takes bytes in
 * pieces of any size and never touches a file. One decoder is for one thread at a time.
 */
#ifndef DATASET_IDX_H
#define DATASET_IDX_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { IDX_RANK_MAX = 4 };

enum idx_type {
    IDX_UINT8 = 0x08,
    IDX_INT8 = 0x09,
    IDX_INT16 = 0x0b,
    IDX_INT32 = 0x0c,
    IDX_FLOAT = 0x0d,
    IDX_DOUBLE = 0x0e,
};

struct idx {
    int type;                    /* enum idx_type */
    int rank;                    /* 1 to IDX_RANK_MAX */
    uint32_t size[IDX_RANK_MAX]; /* the dimensions; unused ones are 1 */
    size_t bytes;                /* size of data: the product of the sizes times the type's width */
    uint8_t *data;               /* the elements as in the file (big-endian); owned: idx_release() */
};

void idx_release(struct idx *x); /* frees data and empties x */

struct idx_decoder;

/* name: of the file in messages, copied. file_bytes: length of the input; a header that promises more than that many
 * bytes can hold (deflate packs at most 1032 to 1) is refused before anything is allocated. */
int idx_decoder_new(struct idx_decoder **out, const char *name, uint64_t file_bytes, struct error *e);
void idx_decoder_free(struct idx_decoder *d); /* NULL is fine */

/* Takes the next n bytes of the file. ERR_CORRUPT: the sentence names the file and the byte (as stored, so of the
 * compressed bytes in a .gz); ERR_NOMEM. After an error only idx_decoder_free() may follow. */
int idx_decoder_feed(struct idx_decoder *d, const uint8_t *bytes, size_t n, struct error *e);

/* Call at the end of the file: ERR_CORRUPT if it ended early. On OK *out owns the array. */
int idx_decoder_finish(struct idx_decoder *d, struct idx *out, struct error *e);

/* Reads a whole file, gzipped or not (recognised by its first bytes, not its name). */
int idx_read(struct idx *out, const char *path, struct error *e);

#endif
