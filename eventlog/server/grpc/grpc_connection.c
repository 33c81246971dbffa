#include "eventlog/server/grpc/grpc_connection.h"

#include "base/bytes.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WINDOW_STREAM = 1 << 20,
    WINDOW_CONNECTION = 4 << 20,
    FRAME_MOST = 256 << 10, /* of data in one frame, if the peer takes that */
    PREFIX = 5,
};

/* gRPC's codes for requests that are not ones */
enum { CODE_RESOURCE_EXHAUSTED = 8, CODE_UNIMPLEMENTED = 12, CODE_INTERNAL = 13 };

struct call {
    struct call *next, **link; /* in the connection's list */
    int32_t stream;
    char path[GRPC_PATH_MOST];
    double timeout;
    struct buffer body;
    size_t dropped; /* bytes of the body beyond the limit */
    int given;      /* to the handler */
    struct buffer answer;
    size_t sent;
    char code[12];
};

struct grpc_connection {
    struct grpc_handler handler;
    nghttp2_session *session;
    struct call *calls;
    size_t held;   /* bytes of all bodies */
    size_t unsent; /* bytes of the answers of all calls that are not over */
    int failed;
};

static nghttp2_nv header_of(const char *name, const char *value, size_t length)
{
    return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), length,
                         NGHTTP2_NV_FLAG_NONE };
}

double grpc_timeout_seconds(const char *text, size_t n)
{
    static const struct {
        char unit;
        double seconds;
    } units[] = { { 'H', 3600 }, { 'M', 60 }, { 'S', 1 }, { 'm', 1e-3 }, { 'u', 1e-6 }, { 'n', 1e-9 } };
    double number = 0;

    if (n < 2 || n > 9)
        return -1;
    for (size_t i = 0; i + 1 < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        number = number * 10 + (text[i] - '0');
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].unit == text[n - 1])
            return number * units[i].seconds;
    return -1;
}

void grpc_message_append(struct buffer *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c < 0x20 || c > 0x7e || c == '%')
            buffer_format(out, "%%%02X", c);
        else
            buffer_append_byte(out, c);
    }
}

/* Counts the bytes of a call's body after a change. */
static void count_body(struct grpc_connection *c, size_t before, size_t after)
{
    c->held += after - before;
    if (c->handler.held)
        *c->handler.held += after - before;
}

/* ---- receiving ------------------------------------------------------------------------------------------------- */

static void free_call(struct grpc_connection *c, struct call *call)
{
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    count_body(c, call->body.length, 0);
    c->unsent -= call->answer.length;
    buffer_release(&call->body);
    buffer_release(&call->answer);
    free(call);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct grpc_connection *c = context;
    struct call *call;

    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    if (!(call = calloc(1, sizeof *call)))
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    call->stream = frame->hd.stream_id;
    call->timeout = -1;
    call->next = c->calls;
    call->link = &c->calls;
    if (c->calls)
        c->calls->link = &call->next;
    c->calls = call;
    nghttp2_session_set_stream_user_data(session, call->stream, call);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
                     const uint8_t *value, size_t length, uint8_t flags, void *context)
{
    struct call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

    (void)flags;
    (void)context;
    if (!call || frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    if (name_length == 5 && !memcmp(name, ":path", 5) && length < sizeof call->path) {
        memcpy(call->path, value, length);
        call->path[length] = 0;
    } else if (name_length == 12 && !memcmp(name, "grpc-timeout", 12)) {
        call->timeout = grpc_timeout_seconds((const char *)value, length);
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes, size_t n,
                   void *context)
{
    struct grpc_connection *c = context;
    struct call *call = nghttp2_session_get_stream_user_data(session, stream);
    size_t before;

    (void)flags;
    if (!call || call->given)
        return 0;
    before = call->body.length;
    if (call->dropped || before + n > GRPC_REQUEST_MOST || c->held + n > 2 * (size_t)GRPC_REQUEST_MOST ||
        (c->handler.held && *c->handler.held + n > grpc_held_most(c->held + n))) {
        call->dropped += n;
        count_body(c, before, 0);
        buffer_release(&call->body);
        return call->dropped > 4 * (size_t)GRPC_REQUEST_MOST ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
    }
    buffer_append(&call->body, bytes, n);
    count_body(c, before, call->body.length);
    return 0;
}

/* The call is complete: gives it to the handler, or answers that it is not one. */
static void take_call(struct grpc_connection *c, struct call *call)
{
    const uint8_t *body = (const uint8_t *)call->body.data;
    struct buffer nothing = BUFFER_EMPTY;
    uint32_t length;

    call->given = 1;
    if (call->dropped || !buffer_ok(&call->body)) {
        grpc_connection_answer(c, call->stream, &nothing, CODE_RESOURCE_EXHAUSTED,
                               "the request is too large, or too many are");
    } else if (call->body.length && body[0] > 1) {
        grpc_connection_answer(c, call->stream, &nothing, CODE_INTERNAL, "the message has an unknown flag");
    } else if (call->body.length && body[0] == 1) {
        grpc_connection_answer(c, call->stream, &nothing, CODE_UNIMPLEMENTED, "compressed messages are not supported");
    } else if (call->body.length < PREFIX || (length = get_be32(body + 1)) > call->body.length - PREFIX) {
        grpc_connection_answer(c, call->stream, &nothing, CODE_INTERNAL, "the message is cut off or missing");
    } else {
        struct grpc_request request = { call->stream, call->path, body + PREFIX, length, call->timeout };

        c->handler.call(c->handler.context, &request);
    }
    /* The handler may have answered and the session may have freed nothing yet: calls end in on_close() only. */
    count_body(c, call->body.length, 0);
    buffer_release(&call->body);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct call *call;

    if ((frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) ||
        !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (call && !call->given)
        take_call(context, call);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *context)
{
    struct grpc_connection *c = context;
    struct call *call = nghttp2_session_get_stream_user_data(session, stream);

    (void)code;
    if (!call)
        return 0;
    nghttp2_session_set_stream_user_data(session, stream, NULL);
    c->handler.gone(c->handler.context, stream);
    free_call(c, call);
    return 0;
}

int grpc_connection_receive(struct grpc_connection *c, const uint8_t *bytes, size_t n)
{
    if (c->failed)
        return 0;
    if (nghttp2_session_mem_recv(c->session, bytes, n) < 0)
        c->failed = 1;
    return !c->failed;
}

/* ---- answering ------------------------------------------------------------------------------------------------- */

static ssize_t read_answer(nghttp2_session *session, int32_t stream, uint8_t *out, size_t room, uint32_t *flags,
                           nghttp2_data_source *source, void *context)
{
    struct call *call = source->ptr;
    size_t left = call->answer.length - call->sent, n = left < room ? left : room;
    nghttp2_nv trailer = header_of("grpc-status", call->code, strlen(call->code));

    (void)context;
    if (n)
        memcpy(out, call->answer.data + call->sent, n);
    call->sent += n;
    if (call->sent == call->answer.length) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (nghttp2_submit_trailer(session, stream, &trailer, 1) != 0)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return (ssize_t)n;
}

static ssize_t length_of_frame(nghttp2_session *session, uint8_t type, int32_t stream, int32_t session_window,
                               int32_t stream_window, uint32_t frame_most, void *context)
{
    int64_t most = frame_most < FRAME_MOST ? (int64_t)frame_most : FRAME_MOST;

    (void)session;
    (void)type;
    (void)stream;
    (void)context;
    most = session_window < most ? session_window : most;
    return (ssize_t)(stream_window < most ? stream_window : most);
}

void grpc_connection_answer(struct grpc_connection *c, int32_t stream, struct buffer *messages, int code,
                            const char *text)
{
    struct call *call = nghttp2_session_get_stream_user_data(c->session, stream);
    nghttp2_nv head[4] = { header_of(":status", "200", 3), header_of("content-type", "application/grpc", 16) };
    struct buffer message = BUFFER_EMPTY;
    nghttp2_data_provider provider = { .read_callback = read_answer };
    int rc;

    if (!call) {
        buffer_release(messages);
        return;
    }
    snprintf(call->code, sizeof call->code, "%d", code);
    if (code == 0) {
        call->answer = *messages;
        c->unsent += call->answer.length;
        provider.source.ptr = call;
        rc = nghttp2_submit_response(c->session, stream, head, 2, &provider);
    } else {
        buffer_release(messages);
        grpc_message_append(&message, text);
        head[2] = header_of("grpc-status", call->code, strlen(call->code));
        head[3] = header_of("grpc-message", buffer_text(&message), message.length);
        rc = nghttp2_submit_response(c->session, stream, head, message.length ? 4 : 3, NULL);
        buffer_release(&message);
    }
    *messages = (struct buffer)BUFFER_EMPTY;
    if (rc != 0)
        nghttp2_submit_rst_stream(c->session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_INTERNAL_ERROR);
}

int grpc_connection_send(struct grpc_connection *c, struct buffer *out, size_t most)
{
    while (out->length < most) {
        const uint8_t *bytes;
        ssize_t n = nghttp2_session_mem_send(c->session, &bytes);

        if (n < 0) {
            c->failed = 1;
            return 0;
        }
        if (!n)
            break;
        buffer_append(out, bytes, (size_t)n);
    }
    return buffer_ok(out);
}

size_t grpc_connection_unsent(const struct grpc_connection *c)
{
    return c->unsent;
}

size_t grpc_connection_held(const struct grpc_connection *c)
{
    return c->held;
}

void grpc_connection_ping(struct grpc_connection *c)
{
    nghttp2_submit_ping(c->session, NGHTTP2_FLAG_NONE, NULL);
}

void grpc_connection_end(struct grpc_connection *c)
{
    nghttp2_session_terminate_session(c->session, NGHTTP2_NO_ERROR);
}

int grpc_connection_over(const struct grpc_connection *c)
{
    return c->failed || (!nghttp2_session_want_read(c->session) && !nghttp2_session_want_write(c->session));
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

static int new_session(struct grpc_connection *c)
{
    nghttp2_session_callbacks *callbacks;
    const nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, GRPC_STREAMS },
        { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_STREAM },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, 16384 },
    };
    int rc = nghttp2_session_callbacks_new(&callbacks);

    if (rc != 0)
        return 0;
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, length_of_frame);
    rc = nghttp2_session_server_new(&c->session, callbacks, c);
    nghttp2_session_callbacks_del(callbacks);
    return rc == 0 &&
           nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof *settings) == 0 &&
           nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0, WINDOW_CONNECTION) == 0;
}

struct grpc_connection *grpc_connection_new(const struct grpc_handler *handler)
{
    struct grpc_connection *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->handler = *handler;
    if (!new_session(c)) {
        grpc_connection_free(c);
        return NULL;
    }
    return c;
}

void grpc_connection_free(struct grpc_connection *c)
{
    if (!c)
        return;
    while (c->calls) {
        c->handler.gone(c->handler.context, c->calls->stream);
        free_call(c, c->calls);
    }
    if (c->session)
        nghttp2_session_del(c->session);
    free(c);
}
