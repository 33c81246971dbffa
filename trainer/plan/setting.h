/*
 * setting.h - what a planned training is: the work of a step, the machines, and who is where. All times in seconds, all
 * sizes in bytes unless they are called elements (of the exchange vector, 4 bytes each).
 */
#ifndef TRAINER_PLAN_SETTING_H
#define TRAINER_PLAN_SETTING_H

#include "trainer/collective/exchange.h"

#include <stddef.h>
#include <stdint.h>

/* Everything in the exchange vector at or above `low` is final after `share` of the backward pass. */
struct plan_final {
    size_t low;
    double share;
};

/* A variable of which a batch uses some rows. rows 0: the model has none. */
struct plan_rows {
    double rows, row_bytes; /* of the table */
    double used;            /* distinct rows in a worker's batch */
};

/* One step of one worker, alone. */
struct plan_work {
    size_t elements; /* of the exchange vector; the last is the batch's weight */
    size_t rounded;  /* of these, from the first on: what of gradients is sent as bfloat16 */
    const struct extent
        *variables; /* what servers hold beside tables: (variable_count), or NULL: all but the weight is one */
    size_t variable_count;
    const struct plan_final *finals; /* (final_count) descending by low; none: gradients become final at an even pace */
    size_t final_count;
    double forward, backward, update;
    double batch;        /* samples */
    size_t bucket_bytes; /* of the pieces in which gradients are sent; 0: as the trainer chooses */
    int overlap;         /* 1: they are sent while backward goes on; 0: after it */
    int apart; /* 1: workers of a host exchange with servers each for itself; 0: together, if hosts are several */
    struct plan_rows rows;
};

struct plan_link {
    double latency;   /* until a message of no length arrives */
    double bandwidth; /* bytes a second, each way, at the same time */
};

struct plan_machine {
    struct plan_link network; /* of a host; bandwidth with the headers of Ethernet, IP and TCP */
    struct plan_link memory;  /* messages between ranks of a host */
    double message;           /* seconds of processor that a message takes, on each side */
    double add;               /* seconds that a core takes to add a byte */
    double bus;               /* bytes a second that all cores of a host add together */
    int cores;                /* of a host; 0: one for each of its ranks */
    int devices;              /* 1: threads are devices with memory of their own, joined by links like `network` */
};

struct plan_shape {
    int workers, per_host; /* workers on each host; if some have fewer, on the one with most */
    int servers;           /* of all; 0: one on each host of workers */
    int hosts, fewest;     /* with workers, and workers on the one with fewest; 0: each is filled before the next */
};

/* Hosts with workers. */
static inline int plan_hosts(const struct plan_shape *s)
{
    return s->hosts ? s->hosts : (s->workers + s->per_host - 1) / s->per_host;
}

/* Workers on the host with fewest. */
static inline int plan_fewest(const struct plan_shape *s)
{
    return s->hosts ? s->fewest : s->workers - (plan_hosts(s) - 1) * s->per_host;
}

#endif
