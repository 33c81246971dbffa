/*
 * participants.h - those who train one model together, and messages between two of them: the ranks of MPI (ranks.c), or
 * threads of one process, as tests have them. Everybody else uses world.h, which stands on this.
 */
#ifndef TRAINER_COLLECTIVE_PARTICIPANTS_H
#define TRAINER_COLLECTIVE_PARTICIPANTS_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { PARTICIPANT_ANY = -1, PARTICIPANTS_TAG_MAX = 32767 /* MPI promises no more */ };

struct participants;
struct participants_operations {
    /* Start sending to, or receiving from, a participant (receive: or PARTICIPANT_ANY); n <= INT_MAX. The bytes are the
     * message's until it is done. Messages between two with one tag arrive in order. *handle is for done and cancel. */
    int (*send)(struct participants *p, int to, int tag, const void *bytes, size_t n, uint64_t *handle,
                struct error *e);
    int (*receive)(struct participants *p, int from, int tag, void *bytes, size_t n, uint64_t *handle, struct error *e);
    /* 1: done, *source is who sent it, and the handle is gone. 0: not yet. */
    int (*done)(struct participants *p, uint64_t *handle, int *source, struct error *e);
    /* Gives up a receive that nobody will answer. */
    void (*cancel)(struct participants *p, uint64_t *handle);
    void (*abort)(struct participants *p, int status); /* ends all at once; does not return */
    void (*end)(struct participants *p);               /* in order, collective; frees p */
};
struct participants { /* begins the struct of each kind */
    const struct participants_operations *operations;
    int rank, size;
};

/* Collective: starts MPI. After an error *out may be set all the same, for abort. */
int ranks_start(struct participants **out, struct error *e);

#endif
