/*
 * grpc_connection.h - the server's side of one gRPC connection over cleartext HTTP/2 (nghttp2), without input or
 * output: bytes go in, calls and bytes come out. A call has one request message; its answer is any number of messages,
 * already with their prefixes, and a code. One thread at a time.
 *
 * What a peer can make it hold is bounded: GRPC_STREAMS calls at a time, requests of at most GRPC_REQUEST_MOST bytes,
 * of all calls together at most twice that, of all connections GRPC_HELD_MOST, headers of at most GRPC_PATH_MOST bytes
 * that count. What goes beyond is answered with RESOURCE_EXHAUSTED.
 */
#ifndef EVENTLOG_SERVER_GRPC_GRPC_CONNECTION_H
#define EVENTLOG_SERVER_GRPC_GRPC_CONNECTION_H

#include "base/buffer.h"

#include <stddef.h>
#include <stdint.h>

enum { GRPC_STREAMS = 256, GRPC_REQUEST_MOST = 32 << 20, GRPC_HELD_MOST = 256 << 20, GRPC_PATH_MOST = 1024 };

/* How many bytes of requests all connections may hold so that this one may hold `bytes`: a quarter is left to those
 * that hold little. */
static inline size_t grpc_held_most(size_t bytes)
{
    return bytes <= 1 << 20 ? GRPC_HELD_MOST : GRPC_HELD_MOST / 4 * 3;
}

struct grpc_connection;

struct grpc_request {
    int32_t stream;
    const char *path; /* a NUL-terminated text */
    const uint8_t *message;
    size_t length;
    double timeout; /* seconds; < 0: none */
};

struct grpc_handler {
    void *context;
    /* A complete call; the request is borrowed. Answer it now or later. */
    void (*call)(void *context, const struct grpc_request *request);
    /* The peer has given up the call, or the connection ends; it must not be answered any more. */
    void (*gone)(void *context, int32_t stream);
    /* Bytes of requests that all connections hold, and that the caller adds for those that it keeps; NULL: others are
     * not counted. */
    size_t *held;
};

/* handler is copied. NULL: no memory. */
struct grpc_connection *grpc_connection_new(const struct grpc_handler *handler);
void grpc_connection_free(struct grpc_connection *c); /* NULL is fine */

/* Bytes from the peer; 0: the connection is over, close it after what it still has to send. */
int grpc_connection_receive(struct grpc_connection *c, const uint8_t *bytes, size_t n);

/* Answers a call: with code 0 all messages, else the code and its text. messages is taken over, and is empty then. */
void grpc_connection_answer(struct grpc_connection *c, int32_t stream, struct buffer *messages, int code,
                            const char *text);

/* Appends what is to be sent, until out has `most` bytes or a little more. 0: the connection has failed. */
int grpc_connection_send(struct grpc_connection *c, struct buffer *out, size_t most);

/* How many bytes of answers it holds for calls that are not over. */
size_t grpc_connection_unsent(const struct grpc_connection *c);

/* How many bytes of requests it holds that are not complete. */
size_t grpc_connection_held(const struct grpc_connection *c);

/* Asks the peer for a sign of life. */
void grpc_connection_ping(struct grpc_connection *c);

/* Says that no more calls are taken. */
void grpc_connection_end(struct grpc_connection *c);

/* 1: nothing more will be sent or received. */
int grpc_connection_over(const struct grpc_connection *c);

/* The seconds that the text of a grpc-timeout header says ("5S", "100m"); -1: it says none. Pure. */
double grpc_timeout_seconds(const char *text, size_t n);

/* Appends the text as a grpc-message header has it: percent-encoded. Pure. */
void grpc_message_append(struct buffer *out, const char *text);

#endif
