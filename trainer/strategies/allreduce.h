/* allreduce.h - ranks that each have all weights, for strategies made of these: as strategy_kind.start. */
#ifndef TRAINER_STRATEGIES_ALLREDUCE_H
#define TRAINER_STRATEGIES_ALLREDUCE_H

#include "trainer/strategies/strategy.h"

int allreduce_start(struct strategy **out, const struct strategy *common, struct error *e);

#endif
