/*
 * shared_push.h - the memory in which the workers of a host, a group, push to the parameter servers together. All make
 * their vectors in it; the first of them, the speaker, adds a piece of the vector once that is final in all, and
 * exchanges the sums with the servers; the new values come into this memory, where all find them.
 *
 *   marks    of each worker how far it is: turn * (elements + 2) + the elements that are final, from the top of the
 *            vector, + 1 once its tally is there, too. A turn is a step, so marks only grow
 *   answers  the turns that are over: a counter, on which all but the speaker sleep
 *
 * Nothing needs a second copy. The servers answer a piece of turn t + 1 only when its sum of this group has come, that
 * is when all its workers have taken what turn t brought; and a worker makes gradients of t + 1 after t is over, when
 * the speaker has added those of t. One thread of each worker.
 */
#ifndef TRAINER_SERVER_SHARED_PUSH_H
#define TRAINER_SERVER_SHARED_PUSH_H

#include "base/error.h"
#include "model/real.h"
#include "trainer/collective/tally.h"
#include "trainer/collective/world.h"
#include "trainer/server/verdict.h"
#include "trainer/server/worker_groups.h"

#include <stddef.h>
#include <stdint.h>

struct shared_push_plan {
    struct world *world;                /* workers are its first ranks */
    const struct worker_groups *groups; /* borrowed */
    const struct reduction *reduction;  /* the workers' vectors; borrowed */
    size_t total;                       /* elements of a vector */
    size_t values;                      /* elements of all that the servers send back */
    size_t pushed;                      /* elements of all that is pushed to them */
    int worker;                         /* -1: a server, which has no part in it */
};

struct shared_push;

/* Collective over all ranks of the world, servers too. plan is copied. All ranks return the same error, or OK: then
 * *out is yours, shared_push_free() it. */
int shared_push_new(struct shared_push **out, const struct shared_push_plan *plan, struct error *e);
void shared_push_free(struct shared_push *s); /* NULL is fine */

int shared_push_speaks(const struct shared_push *s);  /* 1: this worker is the speaker */
int shared_push_members(const struct shared_push *s); /* how many workers push together */
real *shared_push_vector(const struct shared_push *s, int v);
real *shared_push_values(const struct shared_push *s); /* (values) */

/* Call at the start of a step. */
void shared_push_begin(struct shared_push *s);
/* This worker's vectors are final from `low` on; its tally is there, too. */
void shared_push_final(struct shared_push *s, size_t low);
void shared_push_tally(struct shared_push *s, const struct tally_part *part);

/* The speaker, often while it waits for anything: says that it runs. */
void shared_push_look(struct shared_push *s);
/* The speaker: 1: the vectors of all are final from `low` on; their tallies are there. */
int shared_push_is_final(struct shared_push *s, size_t low);
int shared_push_tallied(struct shared_push *s);
/* The speaker: out[i] = the sum of all vectors, for i in [from, to). */
void shared_push_sum(const struct shared_push *s, real *out, size_t from, size_t to);
/* The speaker: the workers' tallies, in their order. */
const struct tally_part *shared_push_parts(const struct shared_push *s);
/* The speaker: the step is over: all values have come, and this verdict. */
void shared_push_answer(struct shared_push *s, const struct verdict *verdict);
/* The speaker: marks (workers) whose tally is missing. */
void shared_push_late(const struct shared_push *s, char *late);

/* All others: waits until the step is over, and sets *verdict. As long as the speaker looks for messages, it knows
 * better who is missing; else ERR_PEER names it. step: for the sentence. */
int shared_push_wait(struct shared_push *s, int64_t step, struct verdict *verdict, struct error *e);

/* Bytes of this worker that others of its group read in a step; counts them, too. */
size_t shared_push_count(const struct shared_push *s);

#endif
