/* shared_rows.h - options that several strategies have, which must be the same in all. */
#ifndef TRAINER_STRATEGIES_SHARED_ROWS_H
#define TRAINER_STRATEGIES_SHARED_ROWS_H

#include "base/program/options.h"
#include "trainer/strategies/strategy.h"

#include <stddef.h>

/* --servers and --servers-per-host, 1 server by default; --transport, auto. Each returns how many rows it filled. */
size_t shared_rows_servers(struct option *rows, struct strategy_servers *servers);
size_t shared_rows_transport(struct option *rows, const char **transport);

/* --exchange, float32. */
size_t shared_rows_exchange(struct option *rows, const char **exchange);
/* How many elements of the exchange vector then travel as bfloat16: 0, or all gradients. */
size_t shared_rows_rounded(const char *exchange, const struct network *n);
/* ERR_ARG: not with micro-shards. */
int shared_rows_check_exchange(const char *exchange, const struct strategy *s, struct error *e);

/* --local-aggregation, auto. */
size_t shared_rows_aggregation(struct option *rows, const char **how);

/* Fills `own` with the defaults of this kind, but for the values of its --transport and --exchange. */
void shared_rows_messages(const struct strategy_kind *kind, struct strategy_own *own, const char *transport,
                          const char *exchange);

/* For strategy_kind.workers and .describe: all ranks but the servers. */
int shared_rows_workers(const struct strategy_servers *servers, int ranks, struct error *e);
void shared_rows_describe(const struct strategy_servers *servers, int ranks, char *text, size_t size);

#endif
