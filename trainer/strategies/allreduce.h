/* allreduce.h - ranks that each have all weights, for strategies made of these: as strategy_kind.start. */
#ifndef TRAINER_STRATEGIES_ALLREDUCE_H
#define TRAINER_STRATEGIES_ALLREDUCE_H

#include "trainer/collective/transport.h"
#include "trainer/strategies/strategy.h"

/* With the transport of the options of `mpi`. */
int allreduce_start(struct strategy **out, const struct strategy *common, struct error *e);

/* With one that `make` makes for several ranks. exchange: of shared_rows_exchange(). ERR_ARG: not with micro-shards. */
typedef int transport_maker(struct transport **out, const struct transport_plan *plan, struct error *e);
int allreduce_start_with(struct strategy **out, const struct strategy *common, transport_maker *make,
                         const char *exchange, struct error *e);

#endif
