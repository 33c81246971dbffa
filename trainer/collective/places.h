/*
 * places.h - ranks by number and host, as sentences name them, and who has the word before whom. Pure.
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

/* When a deadline passes several ranks know. The one that knows most speaks and ends all, which takes the launcher a
 * second or two; the others wait this many seconds longer, so that they speak only where it cannot. A tenth of the
 * deadline is for their clocks, which count only the time in which they run, on a busy machine. before: how many have
 * the word before; 0: none. */
double places_precedence(double deadline, int before);

/* 1: rank r is on the host of rank 0, for all r < count. */
int places_one_host(const struct process *places, int count);

#endif
