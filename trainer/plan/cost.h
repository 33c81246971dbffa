/*
 * cost.h - what a step of each strategy costs on given machines: seconds, bytes, and what limits it. Pure.
 *
 * The models follow what trainer/strategies/ sends, and when. What takes time is laid out as tasks on links and
 * processors (pipeline.h): a bucket is sent when backward has made it final, added when all of it has come, and sent on
 * while the next ones come. A link is a host's network, one direction each. Bytes are those of strategies.md, 8.1;
 * messages between hosts also have headers, of 66 bytes for every 1448, and are acknowledged.
 *
 * All workers are alike, so no time is lost by waiting for a slow one. docs/plan.md names what else is left out.
 */
#ifndef TRAINER_PLAN_COST_H
#define TRAINER_PLAN_COST_H

#include "base/error.h"
#include "trainer/plan/setting.h"

enum plan_limit { PLAN_COMPUTE, PLAN_WIRE, PLAN_LATENCY, PLAN_ADDING, PLAN_SERVER, PLAN_LIMITS };
extern const char *const plan_limit_names[PLAN_LIMITS]; /* "compute", "wire", ... */

struct plan_cost {
    double seconds; /* from one step of a worker to its next */
    double steps;   /* global steps a second; asynchronous: of all workers together */
    double samples; /* a second, of all workers */
    double bytes;   /* a global step, on the busiest link: sent or received, whichever is more, without headers */
    enum plan_limit limit; /* what would take longest if all else took no time */
    int on_server;         /* 1: the busiest link is a server's */
};

struct plan_strategy {
    const char *name, *help;
    int devices;      /* 1: threads of one process: no hosts */
    int servers;      /* 1: has servers */
    int rows;         /* 1: differs from mpi for models with tables only */
    int asynchronous; /* 1: a global step is one worker's */
    /* Sets *out except samples and limit. */
    int (*cost)(const struct plan_work *w, const struct plan_machine *m, const struct plan_shape *s,
                struct plan_cost *out, struct error *e);
};

#define PLAN_STRATEGIES(ROW) \
    ROW(allreduce) \
    ROW(ring) \
    ROW(gathered_rows) \
    ROW(hybrid) \
    ROW(server) \
    ROW(server_async) \
    ROW(mirrored_copied) \
    ROW(mirrored_shared)

#define PLAN_DECLARATION(name) extern const struct plan_strategy plan_##name;
PLAN_STRATEGIES(PLAN_DECLARATION)
#undef PLAN_DECLARATION

/* All of them, NULL at the end; and the one of that name, or NULL. */
extern const struct plan_strategy *const plan_strategies[];
const struct plan_strategy *plan_strategy_find(const char *name);

/* What a step costs. ERR_NOMEM. */
int plan_cost(const struct plan_strategy *strategy, const struct plan_work *w, const struct plan_machine *m,
              const struct plan_shape *s, struct plan_cost *out, struct error *e);

/* ---- for the strategies ------------------------------------------------------------------------------------------ */

/* Seconds after the beginning of a step at which everything at or above `low` can be sent. */
double plan_final_at(const struct plan_work *w, size_t low);
/* Bytes on the wire of so many messages, of n bytes each, with headers and with the acknowledgements of as many that
 * come. */
double plan_wire_bytes(double messages, double n);
/* Bytes a second on the wire, with headers, where so many bytes of a long message arrive. */
double plan_wire_rate(double rate);
/* Seconds in which each of `together` ranks of a host reads n bytes to add them. */
double plan_adding(const struct plan_machine *m, double n, double together);
/* How many times slower the ranks of a host compute, for want of cores. */
double plan_crowding(const struct plan_machine *m, int ranks);

#endif
