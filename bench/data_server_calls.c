/*
 * data_server_calls - asks a data server for the same thing again and again, by several clients at once, and tells how long
 * the answers took. It speaks HTTP/2 by itself, with headers that are encoded once, so that its own cost is a few
 * microseconds a call; gRPC's Python client takes some hundred.
 *
 *   data_server_calls PORT METHOD MESSAGE CLIENTS[:PAUSE] CALLS
 *
 * Each of CLIENTS connections asks CALLS times, each time PAUSE milliseconds after the last answer is complete, half of it
 * more or less, so that clients do not ask in step; without a pause, which is how many calls the processors can take rather
 * than how long one takes, at once. 0 calls: until standard input ends. MESSAGE is hexadecimal. Prints how long the DATA of the last answer are, the number of calls, and milliseconds from sending the
 * request to the end of the answer: median, 99th of 100, longest.
 */
#include "base/buffer.h"
#include "base/bytes.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS_MOST = 256, FRAME = 9, WINDOW = 0x7fffffff, CREDIT = 1 << 28, INPUT = 1 << 18 };
enum { DATA = 0, HEADERS = 1, SETTINGS = 4, PING = 6, GOAWAY = 7, WINDOW_UPDATE = 8 };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };

struct client {
    int fd;
    uint32_t stream;
    double began, due; /* due: when it asks the next time; 0: it waits for an answer */
    uint64_t taken;    /* bytes of DATA since the connection's window was last opened */
    uint64_t bytes;    /* of this answer */
    size_t have;
    uint8_t input[INPUT];
};

struct load {
    struct buffer headers, data; /* of a request, without their frames' heads */
    uint64_t bytes, calls_each;  /* bytes: of an answer */
    double pause;                /* seconds */
    uint32_t random;             /* changes with each pause */
    double *took;                /* seconds */
    size_t count, capacity;
};

static void fail(const char *what)
{
    fprintf(stderr, "data_server_calls: %s: %s\n", what, errno ? strerror(errno) : "not as it should be");
    exit(1);
}

static void put_be32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void append_frame(struct buffer *b, int type, int flags, uint32_t stream, const void *bytes, size_t n)
{
    uint8_t head[FRAME] = { (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n, (uint8_t)type, (uint8_t)flags };

    put_be32(head + 5, stream);
    buffer_append(b, head, sizeof head);
    buffer_append(b, bytes, n);
}

static void send_all(struct client *c, struct buffer *b)
{
    for (size_t at = 0; at < b->length;) {
        ssize_t n = send(c->fd, b->data + at, b->length - at, MSG_NOSIGNAL);

        if (n < 0 && errno != EINTR)
            fail("send");
        at += n > 0 ? (size_t)n : 0;
    }
    buffer_release(b);
}

/* A header as HPACK's literal without indexing. */
static void append_header(struct buffer *b, const char *name, const char *value)
{
    const uint8_t head[2] = { 0, (uint8_t)strlen(name) };
    const uint8_t length = (uint8_t)strlen(value);

    buffer_append(b, head, sizeof head);
    buffer_append_text(b, name);
    buffer_append(b, &length, 1);
    buffer_append_text(b, value);
}

static void make_request(struct load *l, const char *method, const char *message)
{
    char path[120];
    uint8_t prefix[5] = { 0 };

    if (strlen(message) % 2 || strlen(message) > 20000)
        fail("message");
    snprintf(path, sizeof path, "/tensorboard.data.TensorBoardDataProvider/%s", method);
    append_header(&l->headers, ":method", "POST");
    append_header(&l->headers, ":scheme", "http");
    append_header(&l->headers, ":path", path);
    append_header(&l->headers, ":authority", "localhost");
    append_header(&l->headers, "te", "trailers");
    append_header(&l->headers, "content-type", "application/grpc");
    put_be32(prefix + 1, (uint32_t)strlen(message) / 2);
    buffer_append(&l->data, prefix, sizeof prefix);
    for (; *message; message += 2) {
        const char digits[3] = { message[0], message[1], 0 };
        const uint8_t byte = (uint8_t)strtoul(digits, NULL, 16);

        buffer_append(&l->data, &byte, 1);
    }
}

static void ask(const struct load *l, struct client *c)
{
    struct buffer b = BUFFER_EMPTY;

    c->stream += c->stream ? 2 : 1;
    append_frame(&b, HEADERS, END_HEADERS, c->stream, l->headers.data, l->headers.length);
    append_frame(&b, DATA, END_STREAM, c->stream, l->data.data, l->data.length);
    c->bytes = 0;
    c->began = now();
    send_all(c, &b);
}

static void open_client(struct client *c, uint16_t port)
{
    const struct sockaddr_in address = { .sin_family = AF_INET,
                                         .sin_port = htons(port),
                                         .sin_addr = { htonl(INADDR_LOOPBACK) } };
    struct buffer b = BUFFER_EMPTY;
    uint8_t setting[6] = { 0, 4 }, window[4]; /* INITIAL_WINDOW_SIZE */
    int on = 1;

    if ((c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0 ||
        connect(c->fd, (const struct sockaddr *)&address, sizeof address) != 0)
        fail("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    put_be32(setting + 2, WINDOW);
    put_be32(window, WINDOW - 65535);
    buffer_append(&b, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    append_frame(&b, SETTINGS, 0, 0, setting, sizeof setting);
    append_frame(&b, WINDOW_UPDATE, 0, 0, window, sizeof window);
    send_all(c, &b);
}

/* Handles a frame; 1: it ends the answer. */
static int take_frame(struct client *c, int type, int flags, uint32_t stream, const uint8_t *bytes, size_t n)
{
    struct buffer b = BUFFER_EMPTY;
    uint8_t window[4];

    if ((type == SETTINGS || type == PING) && !(flags & ACK)) {
        append_frame(&b, type, ACK, 0, bytes, type == PING ? n : 0);
        send_all(c, &b);
    }
    if (type == DATA) {
        c->bytes += n;
        if ((c->taken += n) > CREDIT) {
            put_be32(window, (uint32_t)c->taken);
            append_frame(&b, WINDOW_UPDATE, 0, 0, window, sizeof window);
            send_all(c, &b);
            c->taken = 0;
        }
    }
    if (type == GOAWAY)
        fail("GOAWAY");
    return (type == DATA || type == HEADERS) && (flags & END_STREAM) && stream == c->stream;
}

/* Reads what has come; 1: the answer is complete. */
static int receive(struct client *c)
{
    ssize_t got = recv(c->fd, c->input + c->have, sizeof c->input - c->have, 0);
    size_t at = 0;
    int complete = 0;

    if (got <= 0)
        fail("recv");
    c->have += (size_t)got;
    while (c->have - at >= FRAME) {
        const uint8_t *head = c->input + at;
        size_t n = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];

        if (n > sizeof c->input - FRAME)
            fail("length of a frame");
        if (c->have - at < FRAME + n)
            break;
        complete |= take_frame(c, head[3], head[4], get_be32(head + 5) & 0x7fffffff, head + FRAME, n);
        at += FRAME + n;
    }
    c->have -= at;
    memmove(c->input, c->input + at, c->have);
    return complete;
}

static void note(struct load *l, const struct client *c)
{
    if (l->count == l->capacity) {
        l->capacity = l->capacity ? 2 * l->capacity : 4096;
        if (!(l->took = realloc(l->took, l->capacity * sizeof *l->took)))
            fail("memory");
    }
    l->took[l->count++] = now() - c->began;
    if (!c->bytes)
        fail("an answer without data");
    l->bytes = c->bytes;
}

static double pause_of(struct load *l)
{
    l->random = l->random * 1664525 + 1013904223;
    return l->pause * (0.5 + (double)(l->random >> 8) / (1 << 24));
}

/* Asks whose time has come. Seconds until the next one's has; < 0: none waits for that. */
static double ask_due(const struct load *l, struct client *clients, size_t count)
{
    const double at = now();
    double next = -1;

    for (size_t i = 0; i < count; i++) {
        double left = clients[i].due - at;

        if (clients[i].due > 0 && left <= 0) {
            clients[i].due = 0;
            ask(l, &clients[i]);
        } else if (clients[i].due > 0 && (next < 0 || left < next)) {
            next = left;
        }
    }
    return next;
}

/* Waits for answers, and for the next one that is due. */
static void wait_for(struct pollfd *waits, size_t count, double seconds)
{
    const struct timespec limit = { (time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds)) };

    if (ppoll(waits, count, seconds < 0 ? NULL : &limit, NULL) < 0 && errno != EINTR)
        fail("poll");
}

/* All clients until each has asked so often, or standard input has ended. */
static void run(struct load *l, struct client *clients, size_t count)
{
    struct pollfd waits[CLIENTS_MOST + 1];
    uint64_t asked[CLIENTS_MOST];
    size_t active = count;
    int stop = 0;

    for (size_t i = 0; i < count; i++) {
        waits[i] = (struct pollfd){ clients[i].fd, POLLIN, 0 };
        asked[i] = 1;
        clients[i].due = now() + (l->pause > 0 ? pause_of(l) : 0);
    }
    waits[count] = (struct pollfd){ l->calls_each ? -1 : 0, POLLIN, 0 };
    while (active) {
        wait_for(waits, count + 1, ask_due(l, clients, count));
        stop |= waits[count].revents != 0;
        if (stop)
            waits[count].fd = -1;
        for (size_t i = 0; i < count; i++) {
            if (waits[i].fd < 0 || !waits[i].revents || !receive(&clients[i]))
                continue;
            note(l, &clients[i]);
            if (stop || (l->calls_each && asked[i] >= l->calls_each)) {
                waits[i].fd = -1;
                active--;
            } else {
                asked[i]++;
                clients[i].due = now() + (l->pause > 0 ? pause_of(l) : 0);
            }
        }
    }
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void ask_for(struct load *l, const char *method, const char *message, struct client *clients, size_t count)
{
    l->count = 0;
    make_request(l, method, message);
    run(l, clients, count);
    qsort(l->took, l->count, sizeof *l->took, compare);
    printf("%llu %zu %.4f %.4f %.4f\n", (unsigned long long)l->bytes, l->count, 1e3 * l->took[l->count / 2],
           1e3 * l->took[l->count * 99 / 100], 1e3 * l->took[l->count - 1]);
    fflush(stdout);
    buffer_release(&l->headers);
    buffer_release(&l->data);
}

int main(int argc, char **argv)
{
    static struct client clients[CLIENTS_MOST];
    struct load l = { .headers = BUFFER_EMPTY, .data = BUFFER_EMPTY };
    char *rest = NULL;
    size_t count = argc == 6 ? strtoull(argv[4], &rest, 10) : 0;

    if (count && *rest == ':')
        l.pause = strtod(rest + 1, &rest) / 1000;
    if (!count || *rest || count > CLIENTS_MOST) {
        fprintf(stderr, "data_server_calls PORT METHOD MESSAGE CLIENTS[:PAUSE] CALLS\n");
        return 2;
    }
    l.calls_each = strtoull(argv[5], NULL, 10);
    for (size_t i = 0; i < count; i++)
        open_client(&clients[i], (uint16_t)strtoul(argv[1], NULL, 10));
    ask_for(&l, argv[2], argv[3], clients, count);
    free(l.took);
    return 0;
}
