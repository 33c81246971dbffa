/*
 * transport_choice.h - opens the transport of an all-reduce that the user names, or that suits where the ranks are.
 */
#ifndef TRAINER_COLLECTIVE_TRANSPORT_CHOICE_H
#define TRAINER_COLLECTIVE_TRANSPORT_CHOICE_H

#include "trainer/collective/transport.h"

#define TRANSPORT_CHOICES "auto|shared|two-level|mpi"

/* Collective. how: one of the choices; auto, the first, never fails for want of shared memory. plan->ranks > 1 are the
 * first ranks of the world; the others, whose plan->rank is -1, call it too, and get no transport. ERR_ARG: it does not
 * suit where the ranks are. */
int transport_choose(struct transport **out, const struct transport_plan *plan, const char *how, struct error *e);

#endif
