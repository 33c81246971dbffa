#include "eventlog/server/grpc/grpc_server.h"

#include "base/clock.h"
#include "base/error.h"
#include "eventlog/server/grpc/grpc_connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- grpc listen ------------------------------------------------------------------------------------------------- */

/* Listening sockets for the addresses of a host. */

enum { GRPC_LISTEN_MOST = 4, GRPC_LISTEN_ADDRESS = 64 };

struct grpc_listen {
    int sockets[GRPC_LISTEN_MOST]; /* not blocking */
    size_t count;
    unsigned port;
    char address[GRPC_LISTEN_ADDRESS]; /* of the first */
};

static void set_port(struct sockaddr *address, unsigned port)
{
    if (address->sa_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)address)->sin6_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in *)(void *)address)->sin_port = htons((uint16_t)port);
}

/* A listening socket, or -1 and errno. */
static int listen_on(const struct addrinfo *a, unsigned port)
{
    struct sockaddr_storage address;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, failed;

    if (fd < 0)
        return -1;
    memcpy(&address, a->ai_addr, a->ai_addrlen);
    set_port((struct sockaddr *)&address, port);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, a->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    failed = errno;
    close(fd);
    errno = failed;
    return -1;
}

/* Notes port and address of the first socket. */
static void note_address(struct grpc_listen *l)
{
    struct sockaddr_storage address = { 0 };
    socklen_t size = sizeof address;
    char host[INET6_ADDRSTRLEN] = "";

    getsockname(l->sockets[0], (struct sockaddr *)&address, &size);
    if (address.ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)&address;

        l->port = ntohs(six->sin6_port);
        inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
        snprintf(l->address, sizeof l->address, "[%s]:%u", host, l->port);
    } else {
        const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)&address;

        l->port = ntohs(four->sin_port);
        inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
        snprintf(l->address, sizeof l->address, "%s:%u", host, l->port);
    }
}

/* One port for all addresses; those beside the first are left out if they cannot be had. port 0: any free one. OK;
 * ERR_IO: cannot bind or resolve: `failed to bind to ("localhost", 6806): Address already in use (os error 98)`. */
static int grpc_listen_open(struct grpc_listen *l, const char *host, unsigned port, struct error *e)
{
    const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    struct addrinfo *found;
    int failed = getaddrinfo(*host ? host : NULL, "0", &hints, &found), why = 0;

    memset(l, 0, sizeof *l);
    if (failed)
        return error_set(e, ERR_IO, "failed to bind to (\"%s\", %u): %s", host, port, gai_strerror(failed));
    /* IPv4 first: all clients of "localhost" try it. */
    for (int family = 0; family < 2; family++)
        for (const struct addrinfo *a = found; a && l->count < GRPC_LISTEN_MOST; a = a->ai_next) {
            int fd;

            if (a->ai_family != (family ? AF_INET6 : AF_INET))
                continue;
            if ((fd = listen_on(a, l->count ? l->port : port)) < 0) {
                why = why ? why : errno;
                continue;
            }
            l->sockets[l->count++] = fd;
            if (l->count == 1)
                note_address(l);
        }
    freeaddrinfo(found);
    if (l->count)
        return OK;
    return error_set(e, ERR_IO, "failed to bind to (\"%s\", %u): %s (os error %d)", host, port, strerror(why), why);
}

static void grpc_listen_close(struct grpc_listen *l)
{
    while (l->count)
        close(l->sockets[--l->count]);
}

/* ---- grpc server ------------------------------------------------------------------------------------------------- */

enum {
    CONNECTIONS_MOST = 512,
    THREADS_LEAST = 4,
    THREADS_MOST = 16,
    READ_BYTES = 64 << 10,  /* from a socket at a time */
    SEND_BYTES = 256 << 10, /* taken from a connection at a time */
    SEND_TURN = 1 << 20,    /* sent to one client before others have their turn */
    EVENTS = 64,
    TEXT_BYTES = 1000,
    PROGRESS_BYTES = 16 << 10, /* a client that takes fewer makes none */
    MANY_BYTES = 1 << 20,      /* nobody is closed for holding fewer */
};

#define UNSENT_MOST ((size_t)1 << 30) /* bytes of answers */

/* Seconds. A client is dropped that has not taken anything, or not said anything although it was asked to, for so long;
 * and if others wait for what it holds, the worst of those that have not for STALLED. */
#define PATIENCE 60.0
#define STALLED 1.0

enum { CODE_RESOURCE_EXHAUSTED = 8, CODE_CANCELLED = 1 };

struct client;

/* A call from its request to the moment when the connection takes its answer. */
struct job {
    struct job *next;           /* in the queue, or among those done */
    struct job *next_of_client; /* among those of its client that wait, or that are being answered */
    struct client *client;      /* NULL: it is gone; only the thread of the sockets looks at it */
    int32_t stream;
    int cancelled, code;
    double deadline;
    char *path;
    uint8_t *message;
    size_t length;
    struct buffer answer;
    char *text; /* NULL: none, or no memory */
};

struct client {
    struct client *previous, *next; /* of all: the one that had its turn last is at the end */
    struct grpc_server *server;
    int fd, writing; /* writing: waits until the socket takes more */
    struct in6_addr peer;
    struct grpc_connection *connection;
    struct buffer out;
    size_t sent;
    size_t unsent;                 /* what the server counts of it */
    struct job *waiting, *running; /* running: in the queue, or being answered */
    struct job **waiting_end;
    size_t running_count;
    size_t held;    /* bytes of requests of jobs */
    size_t largest; /* bytes of its largest answer */
    /* times */
    double gave;   /* bytes came */
    double took;   /* it took PROGRESS_BYTES, or all there was */
    double pinged; /* 0: not since bytes came */
    size_t taken;  /* bytes since then */
};

struct grpc_server {
    struct grpc_listen listen;
    int epoll, wake;
    struct grpc_service service;
    struct client *first, *last;
    size_t client_count, threads;
    size_t running; /* jobs in the queue, or being answered */
    size_t held;    /* bytes of requests that come, wait or are answered; these are of the thread of the sockets */
    size_t unsent;  /* bytes of answers that are not sent */
    double now;
    int full;             /* whoever connects waits */
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t wanted;
    struct job *queue, **queue_end, *done;
    int ending;
};

unsigned grpc_server_port(const struct grpc_server *s)
{
    return s->listen.port;
}

const char *grpc_server_address(const struct grpc_server *s)
{
    return s->listen.address;
}

/* ---- threads that answer --------------------------------------------------------------------------------------- */

static void wake_up(struct grpc_server *s)
{
    uint64_t one = 1;

    while (write(s->wake, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

static void answer_job(struct grpc_server *s, struct job *job)
{
    const struct grpc_call call = { job->path, job->message, job->length, job->deadline, &job->cancelled };
    char text[TEXT_BYTES] = "";

    job->code = __atomic_load_n(&job->cancelled, __ATOMIC_RELAXED)
                    ? CODE_CANCELLED
                    : s->service.answer(s->service.context, &call, &job->answer, text, sizeof text);
    if (*text)
        job->text = strdup(text);
}

static void *answer_jobs(void *context)
{
    struct grpc_server *s = context;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        struct job *job;

        while (!s->queue && !s->ending)
            pthread_cond_wait(&s->wanted, &s->lock);
        if (s->ending)
            break;
        job = s->queue;
        if (!(s->queue = job->next))
            s->queue_end = &s->queue;
        pthread_mutex_unlock(&s->lock);
        answer_job(s, job);
        pthread_mutex_lock(&s->lock);
        job->next = s->done;
        s->done = job;
        if (!job->next)
            wake_up(s);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void unlink_client(struct grpc_server *s, struct client *c)
{
    *(c->previous ? &c->previous->next : &s->first) = c->next;
    *(c->next ? &c->next->previous : &s->last) = c->previous;
}

static void link_client(struct grpc_server *s, struct client *c)
{
    c->previous = s->last;
    c->next = NULL;
    *(s->last ? &s->last->next : &s->first) = c;
    s->last = c;
}

/* ---- calls ----------------------------------------------------------------------------------------------------- */

static void free_job(struct grpc_server *s, struct job *job)
{
    s->held -= job->length;
    free(job->path);
    free(job->message);
    free(job->text);
    buffer_release(&job->answer);
    free(job);
}

/* Makes the job of a call; NULL: there is no room for it. */
static struct job *new_job(struct client *c, const struct grpc_request *request)
{
    struct grpc_server *s = c->server;
    const size_t held = c->held + request->length;
    struct job *job = held <= 2 * (size_t)GRPC_REQUEST_MOST && s->held + request->length <= grpc_held_most(held)
                          ? calloc(1, sizeof *job)
                          : NULL;

    if (!job)
        return NULL;
    job->path = strdup(request->path);
    job->message = malloc(request->length + 1);
    job->length = request->length;
    s->held += job->length;
    if (!job->path || !job->message) {
        free_job(s, job);
        return NULL;
    }
    memcpy(job->message, request->message, request->length);
    job->client = c;
    job->stream = request->stream;
    job->deadline = request->timeout >= 0 ? s->now + request->timeout : 0;
    return job;
}

static void on_call(void *context, const struct grpc_request *request)
{
    struct client *c = context;
    struct buffer nothing = BUFFER_EMPTY;
    struct job *job = new_job(c, request);

    if (!job) {
        grpc_connection_answer(c->connection, request->stream, &nothing, CODE_RESOURCE_EXHAUSTED,
                               "too many calls at a time");
        return;
    }
    c->held += job->length;
    *c->waiting_end = job;
    c->waiting_end = &job->next_of_client;
}

/* Whether one more answer may be made for the client. The answers that are not sent have a bound, of which each client
 * that holds some has an equal share, at most a quarter; the next answer is taken to be as large as its largest one. */
static int has_share(const struct grpc_server *s, const struct client *c, size_t holders)
{
    const int holds = c->unsent || c->running_count;
    const size_t parts = holders + !holds + 1;

    if (c->running_count >= s->threads || s->unsent > UNSENT_MOST)
        return 0;
    return !holds || c->unsent + (c->running_count + 1) * c->largest <= UNSENT_MOST / (parts > 4 ? parts : 4);
}

static void admit_job(struct grpc_server *s, struct client *c)
{
    struct job *job = c->waiting;

    if (!(c->waiting = job->next_of_client))
        c->waiting_end = &c->waiting;
    job->next_of_client = c->running;
    c->running = job;
    c->running_count++;
    s->running++;
    pthread_mutex_lock(&s->lock);
    *s->queue_end = job;
    s->queue_end = &job->next;
    pthread_cond_signal(&s->wanted);
    pthread_mutex_unlock(&s->lock);
}

/* Puts calls that wait into the queue as far as their clients' shares allow, one of each client at a time; and not many
 * more than there are threads, since how large answers are is known when they are made. */
static void admit_jobs(struct grpc_server *s)
{
    size_t holders = 0;

    for (struct client *c = s->first; c; c = c->next)
        holders += c->unsent || c->running_count;
    for (int admitted = 1; admitted;) {
        admitted = 0;
        for (struct client *c = s->first, *next; c && s->running < 2 * s->threads; c = next) {
            next = c->next;
            if (!c->waiting || !has_share(s, c, holders))
                continue;
            holders += !(c->unsent || c->running_count);
            admit_job(s, c);
            unlink_client(s, c);
            link_client(s, c);
            admitted = 1;
        }
    }
}

static void free_waiting(struct client *c, struct job **at)
{
    struct job *job = *at;

    if (!(*at = job->next_of_client))
        c->waiting_end = at;
    c->held -= job->length;
    free_job(c->server, job);
}

static void on_gone(void *context, int32_t stream)
{
    struct client *c = context;

    for (struct job **at = &c->waiting; *at; at = &(*at)->next_of_client)
        if ((*at)->stream == stream) {
            free_waiting(c, at);
            return;
        }
    for (struct job *job = c->running; job; job = job->next_of_client)
        if (job->stream == stream)
            __atomic_store_n(&job->cancelled, 1, __ATOMIC_RELAXED);
}

/* ---- clients --------------------------------------------------------------------------------------------------- */

/* Counts the answers that the client's connection holds now. */
static void count_unsent(struct grpc_server *s, struct client *c, size_t now)
{
    if (!c->unsent && c->sent == c->out.length) /* it had taken everything */
        c->took = s->now;
    s->unsent += now - c->unsent;
    c->unsent = now;
}

static void close_client(struct grpc_server *s, struct client *c)
{
    count_unsent(s, c, 0);
    unlink_client(s, c);
    while (c->waiting)
        free_waiting(c, &c->waiting);
    for (struct job *job = c->running; job; job = job->next_of_client) {
        job->client = NULL;
        __atomic_store_n(&job->cancelled, 1, __ATOMIC_RELAXED);
    }
    grpc_connection_free(c->connection);
    close(c->fd);
    buffer_release(&c->out);
    free(c);
    s->client_count--;
}

static void watch_client(struct grpc_server *s, struct client *c, int writing)
{
    struct epoll_event event = { .events = EPOLLIN | (writing ? (uint32_t)EPOLLOUT : 0), .data.ptr = c };

    if (c->writing != writing)
        epoll_ctl(s->epoll, EPOLL_CTL_MOD, c->fd, &event);
    c->writing = writing;
}

/* Sends what the client takes now; 0: the connection is over, and the client is closed. */
static int flush_client(struct grpc_server *s, struct client *c)
{
    count_unsent(s, c, grpc_connection_unsent(c->connection));
    for (size_t turn = 0; turn < SEND_TURN;) {
        ssize_t n;

        if (c->sent == c->out.length) {
            buffer_clear(&c->out);
            c->sent = 0;
            if (!grpc_connection_send(c->connection, &c->out, SEND_BYTES) ||
                (!c->out.length && grpc_connection_over(c->connection))) {
                close_client(s, c);
                return 0;
            }
            count_unsent(s, c, grpc_connection_unsent(c->connection));
            if (!c->out.length) {
                if (c->out.capacity > SEND_BYTES)
                    buffer_release(&c->out);
                watch_client(s, c, 0);
                return 1;
            }
        }
        n = send(c->fd, c->out.data + c->sent, c->out.length - c->sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            close_client(s, c);
            return 0;
        }
        if (n < 0 && errno == EAGAIN)
            break;
        c->sent += n > 0 ? (size_t)n : 0;
        turn += n > 0 ? (size_t)n : 0;
        if (n > 0 && (c->taken += (size_t)n) >= PROGRESS_BYTES) {
            c->took = s->now;
            c->taken = 0;
        }
    }
    watch_client(s, c, 1);
    return 1;
}

static void read_client(struct grpc_server *s, struct client *c)
{
    uint8_t bytes[READ_BYTES];
    ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        close_client(s, c);
        return;
    }
    c->gave = s->now;
    c->pinged = 0;
    if (n > 0)
        grpc_connection_receive(c->connection, bytes, (size_t)n); /* flushing closes a connection that is over */
    flush_client(s, c);
}

/* ---- who has to go --------------------------------------------------------------------------------------------- */

/* For how long answers have been waiting for the client; 0: none are. */
static double stalled(const struct grpc_server *s, const struct client *c)
{
    return c->unsent || c->sent < c->out.length ? s->now - c->took : 0;
}

/* Ends an idle connection: calls that come meanwhile are known not to be answered, and are made again. */
static void end_client(struct grpc_server *s, struct client *c)
{
    grpc_connection_end(c->connection);
    if (flush_client(s, c))
        close_client(s, c);
}

static size_t count_of_peer(const struct grpc_server *s, const struct client *of)
{
    size_t count = 0;

    for (const struct client *c = s->first; c; c = c->next)
        count += !memcmp(&c->peer, &of->peer, sizeof c->peer);
    return count;
}

/* Whether answers have been waiting for c for longer than for the other, or none is and it has been idle for longer. */
static int is_worse(const struct grpc_server *s, const struct client *c, const struct client *other)
{
    const double a = stalled(s, c), b = stalled(s, other);

    return a > b || (a == b && c->gave < other->gave);
}

/* Closes the worst connection, of a host that has the most of them. 0: all are in use. */
static int close_one(struct grpc_server *s)
{
    struct client *worst = NULL;
    size_t most = 0;

    for (struct client *c = s->first; c; c = c->next) {
        const size_t count = count_of_peer(s, c);

        if (stalled(s, c) < STALLED && (c->unsent || c->sent < c->out.length || c->running || c->waiting))
            continue;
        if (!worst || count > most || (count == most && is_worse(s, c, worst))) {
            worst = c;
            most = count;
        }
    }
    if (worst && stalled(s, worst) > 0)
        close_client(s, worst);
    else if (worst)
        end_client(s, worst);
    return worst != NULL;
}

/* While too many bytes are held: closes connections that hold many and have not moved any for long. */
static void relieve(struct grpc_server *s)
{
    while (s->unsent > UNSENT_MOST || s->held > GRPC_HELD_MOST / 2) {
        const int requests = s->unsent <= UNSENT_MOST;
        struct client *worst = NULL;
        double badness = 0;

        for (struct client *c = s->first; c; c = c->next) {
            const double still = requests && !c->unsent ? s->now - c->gave : stalled(s, c);
            const size_t bytes = requests ? c->held + grpc_connection_held(c->connection) : c->unsent;

            if (still >= STALLED && bytes > MANY_BYTES && still * (double)bytes > badness) {
                badness = still * (double)bytes;
                worst = c;
            }
        }
        if (!worst)
            return;
        close_client(s, worst);
    }
}

/* Closes connections of those that have taken nothing, or said nothing, for too long. */
static void look_after(struct grpc_server *s)
{
    for (struct client *c = s->first, *next; c; c = next) {
        next = c->next;
        if (stalled(s, c) > PATIENCE || (c->pinged > 0 && s->now - c->pinged > PATIENCE)) {
            close_client(s, c);
        } else if (c->pinged <= 0 && s->now - c->gave > PATIENCE) {
            c->pinged = s->now;
            grpc_connection_ping(c->connection);
            flush_client(s, c);
        }
    }
}

/* ---- those that come ------------------------------------------------------------------------------------------- */

/* Accepts connections, or leaves them to the system for a while. */
static void watch_listeners(struct grpc_server *s, int full)
{
    for (size_t i = 0; i < s->listen.count && s->full != full; i++) {
        struct epoll_event event = { .events = full ? 0 : EPOLLIN, .data.ptr = &s->listen.sockets[i] };

        epoll_ctl(s->epoll, EPOLL_CTL_MOD, s->listen.sockets[i], &event);
    }
    s->full = full;
}

static int has_room(struct grpc_server *s)
{
    struct rlimit limit;
    size_t most = CONNECTIONS_MOST;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 4 < most)
        most = limit.rlim_cur / 4 ? limit.rlim_cur / 4 : 1;
    return s->client_count < most || close_one(s);
}

/* The address of the other side; IPv4's within IPv6's. */
static struct in6_addr address_of(const struct sockaddr_storage *peer)
{
    struct in6_addr address = IN6ADDR_ANY_INIT;

    if (peer->ss_family == AF_INET6)
        address = ((const struct sockaddr_in6 *)peer)->sin6_addr;
    else if (peer->ss_family == AF_INET)
        memcpy(&address, &((const struct sockaddr_in *)peer)->sin_addr, sizeof(struct in_addr));
    return address;
}

static void accept_client(struct grpc_server *s, int listener)
{
    struct grpc_handler handler = { NULL, on_call, on_gone, &s->held };
    struct epoll_event event = { .events = EPOLLIN };
    struct sockaddr_storage peer = { 0 };
    socklen_t size = sizeof peer;
    int fd, on = 1;
    struct client *c;

    if (!has_room(s)) {
        watch_listeners(s, 1);
        return;
    }
    fd = accept4(listener, (struct sockaddr *)&peer, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
        if (!close_one(s)) /* the next round accepts it */
            watch_listeners(s, 1);
        return;
    }
    if (fd < 0)
        return;
    if (!(c = calloc(1, sizeof *c))) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    handler.context = event.data.ptr = c;
    c->server = s;
    c->fd = fd;
    c->peer = address_of(&peer);
    c->waiting_end = &c->waiting;
    c->gave = c->took = s->now;
    if (!(c->connection = grpc_connection_new(&handler)) || epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        grpc_connection_free(c->connection);
        close(fd);
        free(c);
        return;
    }
    link_client(s, c);
    s->client_count++;
    flush_client(s, c);
}

/* ---- answers --------------------------------------------------------------------------------------------------- */

/* The client does not run the job any more. */
static void forget_running(struct client *c, struct job *job)
{
    struct job **at = &c->running;

    while (*at != job)
        at = &(*at)->next_of_client;
    *at = job->next_of_client;
    c->running_count--;
    c->held -= job->length;
}

/* Hands answers to their connections. */
static void take_done(struct grpc_server *s)
{
    struct job *job, *next;
    uint64_t count;

    while (read(s->wake, &count, sizeof count) < 0 && errno == EINTR)
        ;
    pthread_mutex_lock(&s->lock);
    job = s->done;
    s->done = NULL;
    pthread_mutex_unlock(&s->lock);
    for (; job; job = next) {
        struct client *c = job->client;

        next = job->next;
        s->running--;
        if (c)
            forget_running(c, job);
        if (c && !job->cancelled) {
            c->largest = job->answer.length > c->largest ? job->answer.length : c->largest;
            grpc_connection_answer(c->connection, job->stream, &job->answer, job->code, job->text ? job->text : "");
            flush_client(s, c);
        }
        free_job(s, job);
    }
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

int grpc_server_listen(struct grpc_server **out, const char *host, unsigned port, struct error *e)
{
    struct grpc_server *s = calloc(1, sizeof *s);
    int rc;

    *out = NULL;
    if (!s)
        return error_memory(e, NULL, "to serve");
    s->epoll = s->wake = -1;
    s->queue_end = &s->queue;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wanted, NULL);
    rc = grpc_listen_open(&s->listen, host, port, e);
    if (rc == OK &&
        ((s->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0 || (s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0))
        rc = error_system(e, "cannot wait for connections");
    if (rc != OK) {
        grpc_server_free(s);
        return rc;
    }
    *out = s;
    return OK;
}

static int watch_all(struct grpc_server *s)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = &s->wake };

    if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->wake, &event) != 0)
        return 0;
    for (size_t i = 0; i < s->listen.count; i++) {
        event.data.ptr = &s->listen.sockets[i];
        if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->listen.sockets[i], &event) != 0)
            return 0;
    }
    return 1;
}

static int is_listener(const struct grpc_server *s, const void *what)
{
    return (const int *)what >= s->listen.sockets && (const int *)what < s->listen.sockets + GRPC_LISTEN_MOST;
}

/* A client that is closed while others of the same batch wait is not among the events of that batch any more: answers
 * are taken, and clients accepted, only after all events of clients. */
static void handle_events(struct grpc_server *s, const struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++) {
        void *what = events[i].data.ptr;

        if (what == &s->wake || is_listener(s, what))
            continue;
        if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            read_client(s, what);
        else
            flush_client(s, what);
    }
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr == &s->wake)
            take_done(s);
        else if (is_listener(s, events[i].data.ptr))
            accept_client(s, *(const int *)events[i].data.ptr);
    }
}

/* After events, and every second while there are clients. */
static void go_on(struct grpc_server *s, double *looked)
{
    relieve(s);
    if (s->now - *looked >= 1) {
        look_after(s);
        watch_listeners(s, 0);
        *looked = s->now;
    }
    admit_jobs(s);
}

int grpc_server_run(struct grpc_server *s, const struct grpc_service *service, struct error *e)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t wanted = processors > THREADS_MOST    ? THREADS_MOST
                    : processors > THREADS_LEAST ? (size_t)processors
                                                 : THREADS_LEAST;
    pthread_t threads[THREADS_MOST];
    struct epoll_event events[EVENTS];
    double looked = clock_monotonic();
    size_t count = 0;
    int rc = OK;

    s->service = *service;
    if (!watch_all(s))
        return error_system(e, "cannot wait for connections");
    for (; count < wanted; count++)
        if (pthread_create(&threads[count], NULL, answer_jobs, s) != 0)
            break;
    if (!count)
        rc = error_set(e, ERR_NOMEM, "cannot start a thread that answers");
    s->threads = count;
    while (rc == OK) {
        int n = epoll_wait(s->epoll, events, EVENTS, s->first || s->full ? 1000 : -1);

        if (n < 0 && errno != EINTR) {
            rc = error_system(e, "cannot wait for connections");
            break;
        }
        s->now = clock_monotonic();
        handle_events(s, events, n);
        go_on(s, &looked);
    }
    pthread_mutex_lock(&s->lock);
    s->ending = 1;
    pthread_cond_broadcast(&s->wanted);
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return rc;
}

void grpc_server_free(struct grpc_server *s)
{
    if (!s)
        return;
    while (s->first)
        close_client(s, s->first);
    while (s->queue || s->done) {
        struct job **list = s->queue ? &s->queue : &s->done, *job = *list;

        *list = job->next;
        free_job(s, job);
    }
    if (s->epoll >= 0)
        close(s->epoll);
    if (s->wake >= 0)
        close(s->wake);
    grpc_listen_close(&s->listen);
    pthread_cond_destroy(&s->wanted);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
