/* single.h - one rank alone, for the strategies that may be one. */
#ifndef TRAINER_STRATEGIES_SINGLE_H
#define TRAINER_STRATEGIES_SINGLE_H

#include "trainer/strategies/strategy.h"

/* As strategy_kind.start. */
int single_start(struct strategy **out, const struct strategy *common, struct error *e);

#endif
