/*
 * lanes.h - which ranks of several hosts exchange sums with each other. Pure.
 *
 * There are as many lanes as the smallest host has ranks. The first ranks of each host carry one each, the i-th rank of
 * a host lane i; further ranks carry none. Hosts have numbers from 0 in the order of their first ranks (places_hosts).
 */
#ifndef TRAINER_COLLECTIVE_LANES_H
#define TRAINER_COLLECTIVE_LANES_H

#include "base/error.h"
#include "trainer/collective/reduction.h"

/* as one rank sees them */
struct lanes {
    int count, lane;               /* lane: the one that this rank carries, -1: none */
    int hosts, host, group, local; /* this rank's host, and its number among the `group` ranks there */
    int *host_of;                  /* (ranks) */
    int *members;                  /* (group) ranks of this host, ascending */
    int *carriers;                 /* (hosts) the ranks that carry this rank's lane, if it carries one */
};

/* host[r]: the number of rank r's host. ERR_NOMEM. lanes_release() it, also after an error. */
int lanes_init(struct lanes *l, const int *host, int ranks, int rank, struct error *e);
void lanes_release(struct lanes *l); /* zeroed is fine */

/* 1: adding first the ranks of each host, then the hosts, has the bits of the reduction's own order, or that has no
 * micro-shards, and any order will do: the vectors of each host's ranks, which are neighbours, together are one node of
 * the tree. */
int lanes_keep_order(const int *host, const struct reduction *r);
/* The node that the ranks [from, to) make; they must be those of such a host. */
struct tree_node lanes_node(const struct reduction *r, int from, int to);

#endif
