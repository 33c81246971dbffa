/*
 * places.h - formats ranks by number and host for messages. Pure.
 */
#ifndef TRAINER_COLLECTIVE_PLACES_H
#define TRAINER_COLLECTIVE_PLACES_H

#include "base/buffer.h"
#include "base/process.h"

/* Appends "rank 2 on host b", or "ranks 0, 1 on host a, 3 on host b", for the ranks r < count with marks[r] == mark;
 * without hosts if places is NULL. Returns how many there are; appends nothing if 0. */
int places_text(struct buffer *out, const struct process *places, const char *marks, int count, char mark);

/* When a deadline passes several ranks know. The one that knows most speaks and ends all, which takes the launcher a
 * second or two; the others wait this many seconds longer, so that they speak only where it cannot. A tenth of the
 * deadline is for their clocks, which count only the time in which they run, on a busy machine. before: how many have
 * the word before; 0: none. */
double places_precedence(double deadline, int before);

/* How many have the word before this rank, which misses the ranks r < count with late[r] != 0. Who misses one rank
 * knows most, first on its own host, where all see what it does. Who misses a whole host of several ranks cannot know
 * for which of them the others there wait, and who misses any other ranks not even on which host. Among equals the
 * lowest of the ranks that are not late has the word. */
int places_before(const struct process *places, const char *late, int count, int rank);

/* Numbers the hosts in the order of their first ranks: hosts[r], r < count, is that of rank r. Two ranks are on one
 * host if its name and boot are the same. Returns how many hosts there are. */
int places_hosts(const struct process *places, int count, int *hosts);

/* 1: both are on one host: of one name, and since one boot. */
int places_same_host(const struct process *a, const struct process *b);

/* Appends "2 hosts: a: workers 0-1, server 4; b: worker 2, server 5", where ranks from `workers` on are servers; hosts
 * are in the order of their first ranks. */
void places_roles(struct buffer *out, const struct process *places, int count, int workers);

/* Appends the same as JSON: [{"host": "a", "workers": [0, 1], "servers": [4]}, ...]; [] of no ranks. */
void places_json(struct buffer *out, const struct process *places, int count, int workers);

/* 1: all ranks r < count are on the host of rank 0. */
int places_one_host(const struct process *places, int count);

#endif
