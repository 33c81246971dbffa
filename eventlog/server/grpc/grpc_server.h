/*
 * grpc_server.h - serves gRPC calls on sockets: one thread moves bytes for all connections, others answer calls, so
 * that neither a slow client nor a large answer holds up other calls.
 *
 * Bounded: connections, calls, bytes of requests, and bytes of answers that are not sent yet (1 GiB). Each client that
 * has answers waiting has an equal share of these, at most a quarter; calls beyond it wait until the client takes some.
 * Who takes less than 16 KiB in 60 s while answers wait for it is dropped; if others wait for the memory or for the
 * connection it holds, after one second, the worst one first. If none has stalled, an idle connection makes room, of
 * the host that has most; if all are in use, whoever connects waits. A client that says nothing for 60 s is sent a
 * PING, and dropped after another 60 s without a word.
 */
#ifndef EVENTLOG_SERVER_GRPC_GRPC_SERVER_H
#define EVENTLOG_SERVER_GRPC_GRPC_SERVER_H

#include "base/buffer.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct grpc_call {
    const char *path;
    const uint8_t *message; /* length bytes */
    size_t length;
    double deadline;      /* monotonic; 0: none */
    const int *cancelled; /* atomic: the answer is not wanted any more */
};

struct grpc_service {
    void *context;
    /* Called from several threads. Returns a gRPC code: 0 and messages with their prefixes, or another one and a text
     * (of size bytes). */
    int (*answer)(void *context, const struct grpc_call *call, struct buffer *messages, char *text, size_t size);
};

struct grpc_server;

/* Listens on the addresses of that host; port 0: any free one. *out is yours: grpc_server_free() it. ERR_IO: cannot
 * bind or resolve. */
int grpc_server_listen(struct grpc_server **out, const char *host, unsigned port, struct error *e);
unsigned grpc_server_port(const struct grpc_server *s);
/* The first address, "127.0.0.1:6806" or "[::1]:6806". Borrowed. */
const char *grpc_server_address(const struct grpc_server *s);

/* Serves until an error: ERR_IO, ERR_NOMEM. service is copied. */
int grpc_server_run(struct grpc_server *s, const struct grpc_service *service, struct error *e);
void grpc_server_free(struct grpc_server *s); /* NULL is fine */

#endif
