/* Any bytes from a gRPC client, in pieces, after the preface of HTTP/2 unless the first byte says otherwise. Every call is
 * answered, at once or later, with messages or a code; what is held stays bounded. */
#include "eventlog/server/grpc/grpc_connection.h"

#include <stdlib.h>
#include <string.h>

enum { LATER = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct answering {
    struct grpc_connection *connection;
    int32_t later[LATER];
    size_t count;
};

static void answer(struct answering *a, int32_t stream)
{
    struct buffer messages = BUFFER_EMPTY;

    for (int i = stream % 4 == 1 ? 4096 : 1; i; i--)
        buffer_append(&messages, "\0\0\0\0\3abc", 8);
    grpc_connection_answer(a->connection, stream, &messages, stream % 8 == 3 ? 5 : 0, "no such thing");
}

static void on_call(void *context, const struct grpc_request *request)
{
    struct answering *a = context;

    if (strlen(request->path) >= GRPC_PATH_MOST || request->length > GRPC_REQUEST_MOST)
        abort();
    if (request->length && request->message[request->length - 1] & 1 && a->count < LATER)
        a->later[a->count++] = request->stream;
    else
        answer(a, request->stream);
}

static void on_gone(void *context, int32_t stream)
{
    struct answering *a = context;

    for (size_t i = 0; i < a->count; i++)
        if (a->later[i] == stream)
            a->later[i--] = a->later[--a->count];
}

static int send_all(struct grpc_connection *c)
{
    struct buffer out = BUFFER_EMPTY;
    int good = 1;

    do {
        buffer_clear(&out);
        good = grpc_connection_send(c, &out, 4096);
    } while (good && out.length);
    buffer_release(&out);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
    struct answering a = { 0 };
    size_t held = 0;
    const struct grpc_handler handler = { &a, on_call, on_gone, &held };
    size_t piece;

    if (!size)
        return 0;
    if (!(a.connection = grpc_connection_new(&handler)))
        return 0;
    piece = 1 + (*data >> 1);
    if (!(*data & 1))
        grpc_connection_receive(a.connection, (const uint8_t *)preface,
                                sizeof preface); /* its NUL is the stream's last byte */
    for (size_t at = 1; at < size; at += piece) {
        size_t n = size - at < piece ? size - at : piece;

        if (!grpc_connection_receive(a.connection, data + at, n) || !send_all(a.connection))
            break;
        if (a.count && at % 3 == 0)
            answer(&a, a.later[--a.count]);
    }
    send_all(a.connection);
    grpc_connection_free(a.connection);
    if (held)
        abort();
    return 0;
}
