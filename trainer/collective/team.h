/*
 * team.h - threads of one process that work together: all do the same work, each as another member, and the caller goes
 * on when the last one is done.
 *
 * The caller of team_new() is member 0 and the only one who may call these functions. The other members are threads
 * that live as long as the team, so what a library keeps for a thread (oneDNN: the scratch memory of the primitives
 * made in it) is still there the next time. They block all signals: these are for the caller. Between works, and while
 * it waits for others, a member sleeps.
 */
#ifndef TRAINER_COLLECTIVE_TEAM_H
#define TRAINER_COLLECTIVE_TEAM_H

#include "base/error.h"

struct team;

/* Starts size - 1 threads; size >= 1. ERR_NOMEM: the system allows no more. On OK *out is yours. */
int team_new(struct team **out, int size, struct error *e);
void team_free(struct team *t); /* ends the threads; NULL is fine */

typedef void team_work(void *context, int member);

/* Runs work(context, m) in every member m, and returns when all are done: what they have written can be read then.
 * idle: called in the caller, at least every 20 ms, while it waits for the others; may be NULL. */
void team_run(struct team *t, team_work *work, void (*idle)(void *context), void *context);

#endif
