#include "eventlog/server/grpc/grpc_server.h"

#include "base/clock.h"
#include "eventlog/server/grpc/grpc_connection.h"
#include "eventlog/server/grpc/grpc_listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECTIONS_MOST = 512,
    THREADS_LEAST = 4,
    THREADS_MOST = 16,
    JOBS_MOST = 4096,       /* calls that wait or are being answered */
    READ_BYTES = 64 << 10,  /* from a socket at a time */
    SEND_BYTES = 256 << 10, /* taken from a connection at a time */
    SEND_TURN = 1 << 20,    /* sent to one client before others have their turn */
    EVENTS = 64,
    TEXT_BYTES = 1000,
};

#define UNSENT_MOST ((size_t)1 << 30) /* bytes of answers */

enum { CODE_RESOURCE_EXHAUSTED = 8 };

struct client;

/* A call from its request to the moment when the connection takes its answer. */
struct job {
    struct job *next;           /* in the queue, or among those done */
    struct job *next_of_client; /* among those of its client that are not done */
    struct client *client;      /* NULL: nobody waits for it; only the thread of the sockets looks at it */
    int32_t stream;
    int cancelled, code;
    double deadline;
    char *path;
    uint8_t *message;
    size_t length;
    struct buffer answer;
    char text[TEXT_BYTES];
};

struct client {
    struct client *previous, *next; /* of all: the one whose bytes came last is at the end */
    struct grpc_server *server;
    int fd, writing; /* writing: waits until the socket takes more */
    struct grpc_connection *connection;
    struct buffer out;
    size_t sent;
    size_t unsent; /* what the server counts of it */
    struct job *jobs;
};

struct grpc_server {
    struct grpc_listen listen;
    int epoll, wake;
    int stop; /* atomic */
    struct grpc_service service;
    struct client *first, *last;
    size_t client_count;
    size_t jobs;          /* that exist; of the thread of the sockets */
    size_t held;          /* bytes of requests that come, wait or are answered; of that thread, too */
    size_t unsent;        /* atomic: bytes of answers that are not sent */
    int spare;            /* a descriptor for the moment in which there are no others; -1: none */
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

    if (__atomic_load_n(&s->unsent, __ATOMIC_RELAXED) > UNSENT_MOST) {
        job->code = CODE_RESOURCE_EXHAUSTED;
        strcpy(job->text, "too many answers wait for slow clients");
        return;
    }
    job->code = s->service.answer(s->service.context, &call, &job->answer, job->text, sizeof job->text);
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

/* ---- calls ----------------------------------------------------------------------------------------------------- */

static void free_job(struct grpc_server *s, struct job *job)
{
    s->jobs--;
    s->held -= job->length;
    free(job->path);
    free(job->message);
    buffer_release(&job->answer);
    free(job);
}

/* Makes the job of a call; NULL: there is no room for it. */
static struct job *new_job(struct client *c, const struct grpc_request *request)
{
    struct grpc_server *s = c->server;
    struct job *job = s->jobs < JOBS_MOST && s->held <= GRPC_HELD_MOST ? calloc(1, sizeof *job) : NULL;

    if (!job)
        return NULL;
    job->path = strdup(request->path);
    job->message = malloc(request->length + 1);
    job->length = request->length;
    s->jobs++;
    s->held += job->length;
    if (!job->path || !job->message) {
        free_job(s, job);
        return NULL;
    }
    memcpy(job->message, request->message, request->length);
    job->client = c;
    job->stream = request->stream;
    job->deadline = request->timeout >= 0 ? clock_monotonic() + request->timeout : 0;
    return job;
}

static void on_call(void *context, const struct grpc_request *request)
{
    struct client *c = context;
    struct grpc_server *s = c->server;
    struct buffer nothing = BUFFER_EMPTY;
    struct job *job = new_job(c, request);

    if (!job) {
        grpc_connection_answer(c->connection, request->stream, &nothing, CODE_RESOURCE_EXHAUSTED,
                               "too many calls at a time");
        return;
    }
    job->next_of_client = c->jobs;
    c->jobs = job;
    pthread_mutex_lock(&s->lock);
    *s->queue_end = job;
    s->queue_end = &job->next;
    pthread_cond_signal(&s->wanted);
    pthread_mutex_unlock(&s->lock);
}

static void forget_job(struct job *job)
{
    for (struct job **at = &job->client->jobs; *at; at = &(*at)->next_of_client)
        if (*at == job) {
            *at = job->next_of_client;
            break;
        }
    job->client = NULL;
    __atomic_store_n(&job->cancelled, 1, __ATOMIC_RELAXED);
}

static void on_gone(void *context, int32_t stream)
{
    struct client *c = context;

    for (struct job *job = c->jobs; job; job = job->next_of_client)
        if (job->stream == stream) {
            forget_job(job);
            return;
        }
}

/* ---- clients --------------------------------------------------------------------------------------------------- */

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

/* Counts the answers that the client's connection holds now. */
static void count_unsent(struct grpc_server *s, struct client *c, size_t now)
{
    __atomic_fetch_add(&s->unsent, now - c->unsent, __ATOMIC_RELAXED);
    c->unsent = now;
}

static void close_client(struct grpc_server *s, struct client *c)
{
    count_unsent(s, c, 0);
    unlink_client(s, c);
    while (c->jobs)
        forget_job(c->jobs);
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
    unlink_client(s, c);
    link_client(s, c);
    if (n > 0)
        grpc_connection_receive(c->connection, bytes, (size_t)n); /* flushing closes a connection that is over */
    flush_client(s, c);
}

/* Makes room for one more client; 0: all have calls. */
static int make_room(struct grpc_server *s)
{
    struct rlimit limit;
    size_t most = CONNECTIONS_MOST;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 4 < most)
        most = limit.rlim_cur / 4 ? limit.rlim_cur / 4 : 1;
    if (s->client_count < most)
        return 1;
    for (struct client *c = s->first; c; c = c->next)
        if (!c->jobs && c->sent == c->out.length) {
            close_client(s, c);
            return 1;
        }
    return 0;
}

/* No descriptor is left: the client is accepted with the spare one, and closed, since it would wait for ever. */
static void refuse_client(struct grpc_server *s, int listener)
{
    close(s->spare);
    s->spare = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (s->spare >= 0)
        close(s->spare);
    s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void accept_client(struct grpc_server *s, int listener)
{
    struct grpc_handler handler = { NULL, on_call, on_gone, &s->held };
    struct epoll_event event = { .events = EPOLLIN };
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), on = 1;
    struct client *c;

    if (fd < 0 && (errno == EMFILE || errno == ENFILE) && s->spare >= 0)
        refuse_client(s, listener);
    if (fd < 0)
        return;
    if (!make_room(s) || !(c = calloc(1, sizeof *c))) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    handler.context = event.data.ptr = c;
    c->server = s;
    c->fd = fd;
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
        if (c) {
            forget_job(job);
            grpc_connection_answer(c->connection, job->stream, &job->answer, job->code, job->text);
            count_unsent(s, c, grpc_connection_unsent(c->connection));
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
    s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
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

static int watch_listeners(struct grpc_server *s)
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

int grpc_server_run(struct grpc_server *s, const struct grpc_service *service, struct error *e)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t wanted = processors > THREADS_MOST    ? THREADS_MOST
                    : processors > THREADS_LEAST ? (size_t)processors
                                                 : THREADS_LEAST;
    pthread_t threads[THREADS_MOST];
    struct epoll_event events[EVENTS];
    size_t count = 0;
    int rc = OK;

    s->service = *service;
    if (!watch_listeners(s))
        return error_system(e, "cannot wait for connections");
    for (; count < wanted; count++)
        if (pthread_create(&threads[count], NULL, answer_jobs, s) != 0)
            break;
    if (!count)
        rc = error_set(e, ERR_NOMEM, "cannot start a thread that answers");
    while (rc == OK && !__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
        int n = epoll_wait(s->epoll, events, EVENTS, -1);

        if (n < 0 && errno != EINTR)
            rc = error_system(e, "cannot wait for connections");
        else
            handle_events(s, events, n);
    }
    pthread_mutex_lock(&s->lock);
    s->ending = 1;
    pthread_cond_broadcast(&s->wanted);
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return rc;
}

void grpc_server_stop(struct grpc_server *s)
{
    __atomic_store_n(&s->stop, 1, __ATOMIC_RELAXED);
    wake_up(s);
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
    if (s->spare >= 0)
        close(s->spare);
    grpc_listen_close(&s->listen);
    pthread_cond_destroy(&s->wanted);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
