/*
 * dense_exchange.h - the all-reduce of a worker's gradient without those of tables, for strategies that send these as
 * rows: exchange vectors of which the dense part is packed into the transport's, and the update of that part. One
 * thread.
 */
#ifndef TRAINER_STRATEGIES_DENSE_EXCHANGE_H
#define TRAINER_STRATEGIES_DENSE_EXCHANGE_H

#include "base/error.h"
#include "trainer/collective/dense_part.h"
#include "trainer/collective/transport.h"
#include "trainer/strategies/strategy.h"

#include <stddef.h>
#include <stdint.h>

struct dense_exchange {
    const struct strategy *strategy;
    struct dense_part part;
    real **vectors; /* whole exchange vectors, the last of which is the network's; NULL on a rank that is no worker */
    real *alone;    /* of one worker: the packed dense part */
    struct transport *transport; /* NULL on a rank that is no worker */
    size_t bucket, gathered;     /* gathered: packed elements from here on are in the transport's vectors */
};

/* Zeroed before; s, which has its reduction, workers and worker, is borrowed. ERR_NOMEM. dense_exchange_release() it,
 * also after an error, while s has them. */
int dense_exchange_init(struct dense_exchange *d, const struct strategy *s, struct error *e);
/* Collective. Opens a transport of TRANSPORT_CHOICES among the workers. rounded: elements of the exchange vector below
 * it travel in messages as bfloat16. */
int dense_exchange_open(struct dense_exchange *d, const char *transport, size_t rounded, struct error *e);
void dense_exchange_release(struct dense_exchange *d);

/* As the strategy's step_begin and ready. */
void dense_exchange_begin(struct dense_exchange *d, int64_t step);
void dense_exchange_ready(struct dense_exchange *d, size_t low);
/* After training: the sums are in d->transport->result, packed; parts (workers): the tally's of all. */
int dense_exchange_complete(struct dense_exchange *d, const struct tally_part *mine, struct tally_part *parts,
                            struct error *e);
/* Makes the strategy's next update of the dense part. */
void dense_exchange_update(struct dense_exchange *d);

#endif
