/*
 * traffic.h - the bytes that the ranks of a run sent to each other, as the program counted them: payload, without the
 * headers of MPI and of the network. Per step, and apart from that what start, checkpoints and end took.
 *
 * Per step, with D bytes of the exchange vector, n workers and k servers with D_j bytes each (source: strategies.md,
 * 8.1): an all-reduce sends 2 (n - 1) / n D from each rank and as much to it; a worker sends D to its servers and gets
 * D; server j gets n D_j and sends n D_j. Where the workers of a host push together, the host counts as one worker.
 * Besides, the parts of a step's tally travel, and the batch's weight to every server.
 *
 * A link is what can be too slow: where all ranks are on one host, a rank's reading and writing; else the network of a
 * host, with all that its ranks exchange with other hosts. The busiest one sends or receives most.
 */
#ifndef TRAINER_COLLECTIVE_TRAFFIC_H
#define TRAINER_COLLECTIVE_TRAFFIC_H

#include "base/buffer.h"
#include "base/process.h"
#include "trainer/collective/world.h"

#include <stdint.h>

struct traffic {
    int ranks, workers, hosts;    /* ranks from `workers` on are servers */
    const struct process *places; /* (ranks); borrowed from the world */
    int *host;                    /* (ranks) number of a rank's host */
    struct world_sent *sent;      /* (ranks, ranks) from the first to the second */
};

struct traffic_link {
    int host, rank;         /* rank -1: of a whole host */
    int64_t sent, received; /* bytes */
};

/* Collective: collects what all ranks have sent; `doing` is what a late rank should do. Nothing without a launcher
 * (ranks 0). traffic_release() it, also after an error. */
int traffic_gather(struct traffic *out, struct world *w, int workers, const char *doing, struct error *e);
void traffic_release(struct traffic *t);

/* What a rank sent in steps, by messages and in shared memory, and to other hosts alone. */
struct traffic_link traffic_of_rank(const struct traffic *t, int rank);
struct traffic_link traffic_of_rank_away(const struct traffic *t, int rank);
/* What all ranks of a host sent to other hosts in steps. */
struct traffic_link traffic_of_host(const struct traffic *t, int host);
struct traffic_link traffic_busiest(const struct traffic *t);

/* Appends "server 0 (rank 2), 187 KB sent and 187 KB received a step", or "host b (rank 2, 3), ...". */
void traffic_text(struct buffer *out, const struct traffic *t, const struct traffic_link *link, int64_t steps);
/* Appends the members "links" and "busiest_link" of a JSON object: bytes per step. */
void traffic_json(struct buffer *out, const struct traffic *t, int64_t steps);

#endif
