/*
 * server_traffic.h - how long a step takes where workers and servers have hosts of their own, found by playing some
 * steps message by message. Workers may share a host. Pure.
 *
 * The order of messages matters: a server's link is shared by all workers, and the worker that gets its last values
 * last begins its next step last. By then the other workers' gradients wait before its own at the server's link, and no
 * packet can be answered before its last part has come; meanwhile nothing leaves. With one server and 4 workers, 16
 * packets each, that is a tenth of the step.
 *
 * Each link serves what comes in the order in which it comes. What a server has for several workers leaves in turns, as
 * TCP sends what waits on a connection: 4 segments at once.
 */
#ifndef TRAINER_PLAN_SERVER_TRAFFIC_H
#define TRAINER_PLAN_SERVER_TRAFFIC_H

#include "base/error.h"

#include <stddef.h>

struct traffic_packet {
    int server;
    double bytes;   /* of the new values, and of a gradient unless pushed says otherwise */
    double final;   /* seconds after the beginning of a step, in which all computing is of the model */
    double prepare; /* seconds of the worker's processor before it is sent, */
    double answer;  /* of the server's when all its parts have come, */
    double take;    /* and of the worker's for the new values */
    double pushed;  /* bytes of a gradient; 0: as of the values */
};

struct server_traffic {
    int workers, servers;                 /* workers: those that push, each for itself or for its host */
    int per_host;                         /* so many of them share a host's link */
    const struct traffic_packet *packets; /* (count) in the order in which a worker sends them */
    size_t count;
    double computing;          /* seconds of a step before which no worker begins the next */
    double bandwidth, latency; /* of each host's network */
};

/* More messages than that in a step take too long to play. */
enum { TRAFFIC_MESSAGES_MOST = 32768 };

/* The mean of several steps, after some that fill the links. ERR_NOMEM. */
int server_traffic_seconds(const struct server_traffic *t, double *seconds, struct error *e);

#endif
