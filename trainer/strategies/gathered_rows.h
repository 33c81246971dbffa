/* gathered_rows.h - `mpi` with --sparse-exchange all-gather, of a model with tables on several ranks. */
#ifndef TRAINER_STRATEGIES_GATHERED_ROWS_H
#define TRAINER_STRATEGIES_GATHERED_ROWS_H

#include "trainer/strategies/strategy.h"

/* As strategy_kind.start. transport: one of TRANSPORT_CHOICES. */
int gathered_rows_start(struct strategy **out, const struct strategy *common, const char *transport, struct error *e);

#endif
