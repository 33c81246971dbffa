/*
 * places.h - ranks by number and host, as sentences name them. Pure.
 */
#ifndef TRAINER_COLLECTIVE_PLACES_H
#define TRAINER_COLLECTIVE_PLACES_H

#include "base/buffer.h"
#include "base/process.h"

/* Appends "rank 2 on host b", or "ranks 0, 1 on host a, 3 on host b", of the ranks r < count with marks[r] == mark;
 * without hosts where places is NULL. Returns how many there are; with none it appends nothing. */
int places_text(struct buffer *out, const struct process *places, const char *marks, int count, char mark);

/* 1: several of the ranks r < count have a mark (not 0), and they are not all the ranks of one host. */
int places_scattered(const struct process *places, const char *marks, int count);

/* 1: rank r is on the host of rank 0, for all r < count. */
int places_one_host(const struct process *places, int count);

#endif
