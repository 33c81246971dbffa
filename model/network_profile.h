/* network_profile.h - the time each kind of layer takes, for benchmarks. Reading the clock costs a few per cent. */
#ifndef MODEL_NETWORK_PROFILE_H
#define MODEL_NETWORK_PROFILE_H

#include "model/network.h"

struct network_profile_row {
    const char *kind;         /* "convolution"; static */
    double forward, backward; /* seconds since the start, over all layers of the kind */
};

int network_profile_start(struct network *n); /* from now on, from 0; returns 0 without memory */
/* Fills up to `room` rows, in order of the kinds' first layers; returns their number. */
size_t network_profile_read(const struct network *n, struct network_profile_row *rows, size_t room);

#endif
