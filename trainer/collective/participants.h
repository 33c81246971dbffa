/*
 * participants.h - the participants of a training, and messages between two of them: MPI ranks (ranks.c), or threads of
 * one process in tests. Other modules use world.h, which builds on this.
 */
#ifndef TRAINER_COLLECTIVE_PARTICIPANTS_H
#define TRAINER_COLLECTIVE_PARTICIPANTS_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { PARTICIPANT_ANY = -1, PARTICIPANTS_TAG_MAX = 32767 /* MPI promises no more */ };

struct participants;
struct participants_operations {
    /* Start sending to, or receiving from, a participant (receive: or PARTICIPANT_ANY); n <= INT_MAX. The bytes belong
     * to the message until it is done. Messages between two participants with the same tag arrive in order. *handle is
     * for done and cancel. */
    int (*send)(struct participants *p, int to, int tag, const void *bytes, size_t n, uint64_t *handle,
                struct error *e);
    int (*receive)(struct participants *p, int from, int tag, void *bytes, size_t n, uint64_t *handle, struct error *e);
    /* 1: done; *source is the sender, and the handle is released. 0: not yet. */
    int (*done)(struct participants *p, uint64_t *handle, int *source, struct error *e);
    /* Cancels a receive that nobody will answer. */
    void (*cancel)(struct participants *p, uint64_t *handle);
    void (*abort)(struct participants *p, int status); /* ends all immediately; does not return */
    void (*end)(struct participants *p);               /* ends normally; collective; frees p */
};
/* begins the struct of each kind */
struct participants {
    const struct participants_operations *operations;
    int rank, size;
};

/* Collective: starts MPI. *out may be set even after an error, for abort. */
int ranks_start(struct participants **out, struct error *e);

#endif
