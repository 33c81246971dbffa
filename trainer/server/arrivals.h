/*
 * arrivals.h - the record of a run's pushes, in the order in which they were used or dropped: --record, --replay.
 * Pure.
 *
 * The file: a header of 136 bytes, then 12 bytes for each push; all integers are little-endian.
 *
 *   offset  bytes  header
 *   0       8      "arrivals"
 *   8       4      version of the format, 2
 *   12      4      workers
 *   16      4      aggregate: pushes that make an update; 0: asynchronous, each push is an update
 *   20      4      reserved, 0
 *   24      8      staleness: the bound of --staleness, -1: none
 *   32      8      first_step: updates before the run
 *   40      8      batch: samples of a worker's step
 *   48      8      seed
 *   56      8      training: a hash of all other options that the weights depend on
 *   64      32     model: its name, zeros after it
 *   96      32     data: likewise
 *   128     4      reserved, 0
 *   132     4      CRC-32C of the 132 bytes before
 *
 *   offset  bytes  push
 *   0       4      step: updates since first_step before the one that this push was part of, or was dropped at
 *   4       4      worker
 *   8       4      version: the step (likewise) of the weights that the gradients belong to
 *
 * Steps never decrease. Synchronous: a step has any number of dropped pushes (version < step), then `aggregate` used
 * ones (version == step). Asynchronous: step is the number of the push. A file whose last bytes are less than a whole
 * push, or than a whole step, is that of a run that was killed: they do not count.
 *
 * A run that ended in order has 12 bytes more at the end: 0xffffffff, the number of pushes modulo 2^32, and the CRC-32C
 * of all bytes before these 12.
 */
#ifndef TRAINER_SERVER_ARRIVALS_H
#define TRAINER_SERVER_ARRIVALS_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { ARRIVALS_HEADER_BYTES = 136, ARRIVALS_PUSH_BYTES = 12, ARRIVALS_NAME = 32, ARRIVALS_WORKERS_MAX = 1 << 20 };

struct arrivals_header {
    int workers, aggregate; /* aggregate 0: asynchronous */
    int64_t staleness;      /* -1: unbounded */
    int64_t first_step;
    int64_t batch;
    uint64_t seed, training;
    char model[ARRIVALS_NAME], data[ARRIVALS_NAME]; /* zeros after them */
};

struct arrival {
    uint32_t step, worker, version;
};

struct arrivals {
    struct arrivals_header header;
    struct arrival *items;
    size_t count;
    int64_t steps; /* whole updates in it */
    int complete;  /* 1: of a run that ended in order */
};

/* Parses the bytes of a file; name: for the error, which names the byte. ERR_CORRUPT, ERR_NOMEM. On OK
 * arrivals_release() it. */
int arrivals_parse(struct arrivals *out, const char *name, const uint8_t *bytes, size_t n, struct error *e);
void arrivals_release(struct arrivals *a);

void arrivals_put_header(const struct arrivals_header *h, uint8_t bytes[ARRIVALS_HEADER_BYTES]);
void arrivals_put(const struct arrival *a, uint8_t bytes[ARRIVALS_PUSH_BYTES]);
/* crc: of all bytes before. */
void arrivals_put_end(uint32_t pushes, uint32_t crc, uint8_t bytes[ARRIVALS_PUSH_BYTES]);

/* OK: a run like `now`, to step max_steps, can follow the record. ERR_ARG, with a sentence that begins with name. */
int arrivals_fit(const struct arrivals *a, const char *name, const struct arrivals_header *now, int64_t max_steps,
                 struct error *e);

#endif
