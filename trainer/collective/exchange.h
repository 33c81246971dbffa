/*
 * exchange.h - divides the exchange vector into buckets and slices, and adds vectors in their order. Pure functions.
 */
#ifndef TRAINER_COLLECTIVE_EXCHANGE_H
#define TRAINER_COLLECTIVE_EXCHANGE_H

#include "model/network.h"

#include <stddef.h>
#include <stdint.h>

struct extent {
    size_t from, to; /* elements [from, to) of the exchange vector */
};

enum { EXCHANGE_ALIGNMENT = 16 }; /* elements per cache line: no two ranks write the same one */

/* Number of buckets of at most `bucket` elements in a vector of `total`; at least 1. */
size_t bucket_count(size_t total, size_t bucket);
/* Bucket q of a vector: bucket 0 is the highest, since backward makes the last layers' gradients first. */
struct extent bucket_extent(size_t total, size_t bucket, size_t q);
/* How many buckets, from bucket 0 on, are entirely at or above `low`. */
size_t buckets_ready(size_t total, size_t bucket, size_t low);
/* The part of an extent that rank r of n adds. */
struct extent slice_extent(struct extent whole, int n, int r);

/*
 * How many elements to exchange at once where the user does not say: `total` of them are cut into at least `pieces` of
 * equal size, but fewer if a piece would be smaller than EXCHANGE_LEAST_BYTES, and more if one would be larger than
 * EXCHANGE_MOST_BYTES. At least 1.
 */
enum {
    /* A few segments of TCP: below, headers and segments that are not full cost more than overlapping gains. */
    EXCHANGE_LEAST_BYTES = 5120,
    /* Below Open MPI's eager limit for TCP, 65536 with its header. Larger messages are announced first, and sent once
     * the receiver has answered: with a latency of 5 ms a step of lenet, ps, took 26 ms instead of 10. */
    EXCHANGE_MOST_BYTES = 61440
};
size_t exchange_piece(size_t total, size_t pieces);
/* Elements of a bucket of the all-reduce: as many as the user said in bytes; 0: buckets of equal size, of which two can
 * overlap, with slices of equal size. */
size_t exchange_bucket(size_t total, size_t bytes, int ranks);
/*
 * Elements of a packet to a server that holds `total`: as many as the user said in bytes; 0: a small model has several
 * packets, too, so that the new values of one come back while the gradients of the next are on their way. beside: 1:
 * each of several hosts of workers has servers, too: then two packets suffice, since links carry gradients and values
 * at the same time anyway, and each packet more is one more for which all may wait.
 */
size_t exchange_packet(size_t total, size_t bytes, int beside);

/*
 * With whom rank r of n exchanges messages k-th, k from 0 to n - 1: each rank once, itself in one of the rounds (then
 * it has nothing to send). Ranks are partners both ways, so each sends to one that sends to it: no rank's link gets the
 * messages of several at once while others' are idle, and TCP's acknowledgements travel with segments of data.
 */
int exchange_partner(int n, int r, int k);

/* Elements of all of rank r's slices, one of each bucket. */
size_t slices_count(size_t total, size_t bucket, int n, int r);

/*
 * out[i] = ((parts[0][i] + parts[1][i]) + parts[2][i]) + ... for i in [from, to): the same bits whichever rank adds and
 * however the vector is divided. parts and out must not overlap, except that out may be parts[0].
 */
void exchange_sum(real *out, const real *const *parts, int count, size_t from, size_t to);

/* 64-bit FNV-1a over words: detects differing replicas, not malice. To continue a hash, pass it as `seed`. */
uint64_t exchange_hash(const void *bytes, size_t n, uint64_t seed);
enum { EXCHANGE_HASH_SEED = 0 };

/* Hash of the names, kinds, shapes and offsets of all variables of a network. */
uint64_t exchange_table_hash(const struct network *n);

/* Hash of a replica: all weights and moving statistics. */
uint64_t exchange_replica_hash(struct network *n);

/* "conv1/weights .. fc4/biases": the first and last variable of an extent, into text (size bytes). */
void extent_names(const struct network *n, struct extent x, char *text, size_t size);

#endif
