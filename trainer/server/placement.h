/*
 * placement.h - which server holds which part of the exchange vector. Pure.
 *
 * On several servers, variables larger than a PLACEMENT_PARTS-th of total / servers are first cut into equal parts
 * (sizes differ by at most one element), but not below PLACEMENT_LEAST elements; then the parts are placed from the
 * largest to the smallest, each on the server with the fewest elements so far. Ties: the part that comes first in the
 * vector, the server with the lowest number. No server gets more than total / servers plus one part. Parts are small
 * since all wait for the server that has most. And a large variable is on all servers, so all have work while backward
 * is still at earlier layers.
 */
#ifndef TRAINER_SERVER_PLACEMENT_H
#define TRAINER_SERVER_PLACEMENT_H

#include "base/error.h"
#include "trainer/collective/exchange.h"

enum { PLACEMENT_PARTS = 32, PLACEMENT_LEAST = 64 };

struct placed {
    struct extent extent;
    int server;
};

struct placement {
    struct placed *items; /* ascending; together all variables; neighbours on one server are one item */
    size_t count;
    size_t *held; /* (servers) elements each one holds */
    int servers;
    struct extent shared; /* above the variables: sent to all servers; may be empty */
};

/* variables: `count` extents of the vector, in any order, not overlapping. On OK placement_release() it. */
int placement_make(struct placement *out, const struct extent *variables, size_t count, int servers, struct error *e);
/* The same for all variables of a network, in the order in which it was built; the batch's weight is shared. dense: 1:
 * without its tables (variable.row_width), whose rows travel alone. */
int placement_of(struct placement *out, const struct network *n, int servers, int dense, struct error *e);
void placement_release(struct placement *p);

/*
 * A server's part of the vector as it is sent: the shared elements, then its own from the highest to the lowest item,
 * divided into packets of at most `limit` elements. Within a packet, pieces follow each other in `pieces` order.
 */
struct packet {
    size_t first_piece, pieces; /* in packing.pieces */
    size_t at, length;          /* elements of the packed vector */
    size_t low;                 /* the lowest exchange element in it: when that is final, all is */
};

struct packing {
    struct extent *pieces;
    struct packet *packets;
    size_t piece_count, packet_count, length;
};

int packing_make(struct packing *out, const struct placement *p, int server, size_t limit, struct error *e);
void packing_release(struct packing *p);
/* The index in the packed vector, within packet 0, of the last shared element. */
size_t packing_shared_at(const struct packing *p);

/* Packs packet k out of a vector. `packed` is the packet's own first element. */
void packing_gather(const struct packing *p, size_t k, const real *vector, real *packed);

/* Of a vector whose elements below `rounded` travel as bfloat16 (narrowing.h): the bytes of packet k; makes these of
 * its elements, in their place; and the reverse. rounded 0: nothing changes. */
size_t packing_bytes(const struct packing *p, size_t k, size_t rounded);
void packing_narrow(const struct packing *p, size_t k, size_t rounded, real *packed);
void packing_widen(const struct packing *p, size_t k, size_t rounded, real *packed);

#endif
