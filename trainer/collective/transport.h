/*
 * transport.h - how the all-reduce adds vectors over ranks: in memory shared by all ranks (shared_window.c), by
 * messages (message_exchange.c), round a ring (ring.c), or in memory on each host and by messages between hosts
 * (two_level.c). The first two add each element once, on the rank that owns its slice, as the plan's reduction says:
 * the same bits either way. In two levels the ranks of a host are added first, then the hosts: the same bits where that
 * is the order of the reduction. The ring, without micro-shards only, has an order of its own.
 * Where gradients travel as bfloat16, whoever adds rounds its own part as the others did, adds in float32, and rounds
 * the sum, also for itself: all ranks have the same bits. What stays in shared memory is not rounded.
 *
 * A step: begin; the owner fills its vectors from the top; advance() as buckets become final in all of them (never for
 * the last bucket); complete() with this rank's part, after which result holds the sums until the next begin.
 */
#ifndef TRAINER_COLLECTIVE_TRANSPORT_H
#define TRAINER_COLLECTIVE_TRANSPORT_H

#include "base/error.h"
#include "model/network.h"
#include "trainer/collective/dense_part.h"
#include "trainer/collective/exchange.h"
#include "trainer/collective/reduction.h"
#include "trainer/collective/tally.h"
#include "trainer/collective/world.h"
#include "trainer/timing/phase_clock.h"

struct transport_plan {
    struct world *world;
    const struct network *network; /* to name tensors */
    size_t total, bucket;          /* elements: of the vector, of a bucket */
    size_t buckets;
    int ranks, rank;
    const struct reduction *reduction; /* which vectors each rank has, and how they are added; borrowed */
    struct phase_clock *clock;         /* borrowed; may be NULL */
    const struct dense_part *part;     /* the elements of the exchange vector that it is of; borrowed; NULL: all */
    size_t rounded;                    /* elements below it travel in messages as bfloat16 (narrowing.h); 0: none do */
};

struct transport;
struct transport_operations {
    const char *name;
    void (*begin)(struct transport *t, int64_t step);
    void (*advance)(struct transport *t, size_t ready);
    int (*complete)(struct transport *t, const struct tally_part *mine, struct tally_part *all, struct error *e);
    void (*free)(struct transport *t);
};
struct transport {
    const struct transport_operations *operations;
    struct transport_plan plan;
    real **vectors;     /* (reduction_vectors) this rank's exchange vectors: plan.total, aligned to 64 bytes */
    const real *result; /* the sums */
    int64_t step;
};

/* Collective. plan is copied. */
int shared_window_new(struct transport **out, const struct transport_plan *plan, struct error *e);
int message_exchange_new(struct transport **out, const struct transport_plan *plan, struct error *e);
int ring_new(struct transport **out, const struct transport_plan *plan, struct error *e);
/* host: (ranks) the number of each rank's host, as of places_hosts(). */
int two_level_new(struct transport **out, const struct transport_plan *plan, const int *host, struct error *e);
/* Of one rank, whose vector (borrowed) is the sum. */
int transport_alone_new(struct transport **out, const struct transport_plan *plan, real *vector, struct error *e);

/* ERR_ARG: too many buckets to tell their messages apart, or a bucket too large for one message. */
int transport_messages_fit(const struct transport_plan *plan, struct error *e);

/*
 * Reports a missed deadline: step, the bucket's tensors, and the ranks waited for (late[r] != 0), as far as
 * world_narrow() keeps them. ERR_PEER, or 0 without a sentence while another rank should report it (patience_speaks).
 */
int transport_late(const struct transport *t, size_t bucket, char *late, const struct patience *patience,
                   struct error *e);
/* The same by a rank that knows that it should report it. */
int transport_late_sentence(const struct transport *t, size_t bucket, char *late, const struct patience *patience,
                            struct error *e);

#endif
