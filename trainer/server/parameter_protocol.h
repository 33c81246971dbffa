/*
 * parameter_protocol.h - the protocol between workers and parameter servers. Workers are ranks 0 .. n-1, server j is
 * rank n + j. Each server holds part of the exchange vector's elements (placement.h), packed into packets.
 *
 *   worker -> server   PUSH k     packet k of the worker's gradients, as soon as backward has made it. Packet 0 has
 *                                 the batch's weight, and is used first. A worker with several vectors (reduction.h)
 *                                 sends the packet of each, one after the other, in one message
 *   server -> worker   REPLY k    packet k of the new weights and statistics: the pull. The last packet is one element
 *                                 longer: flags (enum tally_flag) of that server's signal
 *   worker -> server 0 TALLY      struct tally_part: the end of a push
 *   server 0 -> worker VERDICT    struct verdict
 *   worker -> server   CONTROL    int64: kind, then its arguments
 *   server -> worker 0 COUNTS, SNAPSHOT, see collect
 *   server 0 -> worker 0 STATISTICS  struct server_statistics, after the last step of all workers
 *
 * Workers of a host may push together (groups/shared_push.h): then the first of them sends PUSH, with the sum of all,
 * and TALLY, with a struct tally_part of each in worker order, and gets REPLY and VERDICT, for all of them. To the
 * server that is a push of each of them at once; CONTROL each sends for itself.
 *
 * Every push is decided about as a whole, for all servers alike: used or dropped, and whether the worker is answered.
 * Each server carries out the decisions in their order (server_core.h), packet by packet: once packet k of all pushes
 * that are used has come, it adds them in worker order, updates, and replies to the workers that are answered.
 *
 * Synchronous, with all workers in every update: what is decided is known before pushes come, and nobody says it.
 * Otherwise (arbiter.h) server 0 decides, once it has a push's TALLY:
 *
 *   server 0 -> server j   DECISION    number, step, whether it is an update, and the fate of each worker's pushes
 *
 * A worker whose verdict says `values` 0 gets no replies: it goes on with the same weights, or ends. An asynchronous
 * push cannot be taken back, so a worker begins it only when it can no longer abandon the step: after backward.
 *
 * Clipped (--clip-norm): a synchronous server updates with a step's gradients once all its packets are added, and the
 * norm of the whole gradient is known, for which the servers tell each other their sums of squares (norm_exchange.h);
 * only then it replies. The last REPLY has the norm after the flags. An asynchronous push is clipped by its own norm:
 * its PUSH 0 begins with the factor, which the worker computes.
 *
 *   server -> server   SQUARES     sums of squares of the sender's part of the step's gradient
 *
 * A consistent cut (collect): worker 0 sends FREEZE; each server begins no other decision, and sends the number of
 * those that it has begun, and the global step as far as it knows (COUNTS). Worker 0 sends back the largest number over
 * all servers (CUT); each server continues to exactly that, sends its state (SNAPSHOT), and is released. So the saved
 * state is that after whole pushes, the same ones on every server.
 *
 * A synchronous step that a worker has abandoned (TALLY_LEFT) is pushed to its end all the same, and servers update
 * with it; but they keep each packet's previous state, and send that after CUT_BACK instead of CUT.
 */
#ifndef TRAINER_SERVER_PARAMETER_PROTOCOL_H
#define TRAINER_SERVER_PARAMETER_PROTOCOL_H

#include "trainer/collective/world.h"
#include "trainer/server/verdict.h"

#include <stdint.h>

enum {
    PACKETS_MAX = 10000, /* of a server: MPI promises tags up to 32767 */
    TAG_PUSH = 0,
    TAG_REPLY = PACKETS_MAX,
    TAG_TALLY = 2 * PACKETS_MAX,
    TAG_VERDICT,
    TAG_DECISION,
    TAG_SQUARES,
    TAG_CONTROL = WORLD_TAG_ASIDE, /* from here on not part of a step */
    TAG_COUNTS,
    TAG_SNAPSHOT,
    TAG_STATISTICS,
};

enum control {
    CONTROL_FREEZE,
    CONTROL_FREEZE_LAST, /* once all workers are done */
    CONTROL_CUT,         /* int64: decisions */
    CONTROL_CUT_BACK,    /* the same, excluding the last push */
    CONTROL_DONE,        /* int64: this worker's flags for the others */
    CONTROL_EXIT
};

enum {
    CONTROL_WORDS = 2, /* of CONTROL: the kind and an argument */
    CUT_WORDS = 2      /* of COUNTS: decisions, the global step; 0: not known */
};

#endif
