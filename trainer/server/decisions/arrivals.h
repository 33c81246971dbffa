/*
 * arrivals.h - the record of a run's pushes, in the order in which they were used or dropped: --record, --replay.
 * Pure.
 *
 * The file: a header of 48 bytes, then 12 bytes for each push; all integers are little-endian.
 *
 *   offset  bytes  header
 *   0       8      "arrivals"
 *   8       4      version of the format, 1
 *   12      4      workers
 *   16      4      aggregate: pushes that make an update; 0: asynchronous, each push is an update
 *   20      4      tokens: 1: --first-step-tokens
 *   24      8      staleness: the bound of --staleness, -1: none
 *   32      8      first_step: updates before the run
 *   40      8      reserved, 0
 *
 *   offset  bytes  push
 *   0       4      step: updates since first_step before the one that this push was part of, or was dropped at
 *   4       4      worker
 *   8       4      version: the step (likewise) of the weights that the gradients belong to
 *
 * Steps never decrease. Synchronous: a step has any number of dropped pushes (version < step), then `aggregate` used
 * ones (version == step). Asynchronous: step is the number of the push. A file whose last bytes are less than a whole
 * push, or than a whole step, is that of a run that was killed: they do not count.
 */
#ifndef TRAINER_SERVER_DECISIONS_ARRIVALS_H
#define TRAINER_SERVER_DECISIONS_ARRIVALS_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { ARRIVALS_HEADER_BYTES = 48, ARRIVALS_PUSH_BYTES = 12, ARRIVALS_WORKERS_MAX = 1 << 20 };

struct arrivals_header {
    int workers, aggregate, tokens; /* aggregate 0: asynchronous */
    int64_t staleness;              /* -1: unbounded */
    int64_t first_step;
};

struct arrival {
    uint32_t step, worker, version;
};

struct arrivals {
    struct arrivals_header header;
    struct arrival *items;
    size_t count;
    int64_t steps; /* whole updates in it */
};

/* Parses the bytes of a file; name: for the error. ERR_CORRUPT, ERR_NOMEM. On OK arrivals_release() it. */
int arrivals_parse(struct arrivals *out, const char *name, const uint8_t *bytes, size_t n, struct error *e);
void arrivals_release(struct arrivals *a);

void arrivals_put_header(const struct arrivals_header *h, uint8_t bytes[ARRIVALS_HEADER_BYTES]);
void arrivals_put(const struct arrival *a, uint8_t bytes[ARRIVALS_PUSH_BYTES]);

#endif
