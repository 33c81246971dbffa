/* grpc_listen.h - listening sockets for the addresses of a host. */
#ifndef EVENTLOG_SERVER_GRPC_GRPC_LISTEN_H
#define EVENTLOG_SERVER_GRPC_GRPC_LISTEN_H

#include "base/error.h"

#include <stddef.h>

enum { GRPC_LISTEN_MOST = 4, GRPC_LISTEN_ADDRESS = 64 };

struct grpc_listen {
    int sockets[GRPC_LISTEN_MOST]; /* not blocking */
    size_t count;
    unsigned port;
    char address[GRPC_LISTEN_ADDRESS]; /* of the first */
};

/* One port for all addresses; those beside the first are left out if they cannot be had. port 0: any free one. OK;
 * ERR_IO: cannot bind or resolve: `failed to bind to ("localhost", 6806): Address already in use (os error 98)`. */
int grpc_listen_open(struct grpc_listen *l, const char *host, unsigned port, struct error *e);
void grpc_listen_close(struct grpc_listen *l);

#endif
