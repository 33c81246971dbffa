/*
 * row_traffic.h - what it costs to exchange the rows of tables with their servers (source: strategies.md, 6 and 8.1),
 * beside a step of all else. Before a step the rows that the batch uses are fetched; after it the sums of their
 * gradients are sent. Both are waited for: the first by forward, the second by the next step's first. The workers of a
 * host do both together, by one of them, unless the plan is to be without local aggregation, or all are on one host.
 * Pure.
 */
#ifndef TRAINER_PLAN_ROW_TRAFFIC_H
#define TRAINER_PLAN_ROW_TRAFFIC_H

#include "trainer/plan/setting.h"

struct row_traffic {
    double seconds;        /* of a step */
    double worker, server; /* bytes of a step, one way: on the link of a host of workers, and of servers alone */
    double busy;           /* seconds for which a push, and what is fetched for it, keep a server's link */
};

/* How many elements of the exchange vector are no tables'. */
size_t row_traffic_dense(const struct plan_work *w);

/* Of synchronous workers; aggregates 0: each for itself. Zeros if there are no tables. */
struct row_traffic row_traffic_of(const struct plan_work *w, const struct plan_machine *m, const struct plan_shape *s,
                                  int aggregates);

/* Without servers: each worker sends its rows to every other one. */
struct row_traffic row_traffic_gathered(const struct plan_work *w, const struct plan_machine *m,
                                        const struct plan_shape *s);

/* 1: workers and servers are all on one host. */
int row_traffic_one_host(const struct plan_shape *s);

#endif
