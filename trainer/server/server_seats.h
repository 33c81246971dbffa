/*
 * server_seats.h - which ranks are servers when so many on each host are: the last ones of the host. Launchers number
 * ranks by host, or in turns over the hosts; whichever they did, the ranks are numbered anew with workers first, in the
 * launcher's order, then the servers, in the same. Pure.
 */
#ifndef TRAINER_SERVER_SERVER_SEATS_H
#define TRAINER_SERVER_SERVER_SEATS_H

#include "base/error.h"
#include "base/process.h"

/* places: the hosts of `count` ranks. Sets order[i], for each rank i < count, to the number that the launcher gave to
 * that rank, and returns how many servers there are, the last ones of `order`. ERR_ARG: a host has no rank that is left
 * to be a worker; ERR_NOMEM. */
int server_seats(const struct process *places, int count, int per_host, int *order, struct error *e);

#endif
