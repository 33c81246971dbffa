#include "trainer/plan/server_traffic.h"

#include "base/array.h"
#include "trainer/plan/cost.h"

#include <math.h>
#include <stdlib.h>

/* What a connection sends at once if it waits: as much as nearly all turns had in captures of links of 10 Mbit/s that 4
 * connections share, whatever the size of the messages. */
enum { SEGMENT_BYTES = 1448, TURN_BYTES = 4 * SEGMENT_BYTES, STEPS = 16, STEPS_BEFORE = 4 };

enum event_kind {
    FINAL,    /* a worker's packet */
    PREPARED, /* it can be sent */
    COMING,   /* its first piece is at the server's link */
    COME,     /* all of a piece */
    ANSWERED, /* a server has new values for all */
    LEFT,     /* a server's link is free */
    RETURNING,
    RETURNED
};

struct event {
    double at;
    size_t number; /* of those at the same time the first one is served first */
    enum event_kind kind;
    int who;              /* the worker; ANSWERED, LEFT: the server */
    size_t packet;        /* in server_traffic.packets */
    double bytes, arrive; /* COMING, RETURNING: of a piece, and when its last byte is there */
};

struct connection { /* from a server to a worker */
    size_t next;    /* in the server's answered packets */
    int sent;       /* pieces of that */
    int waits;      /* is in the ring */
};

struct traffic_server {
    double in_free, processor_free;
    int busy;
    struct connection *to; /* (workers) */
    int *ring;             /* (workers) whose turn is next */
    int ring_first, ring_count;
    size_t *answered, answered_count; /* (STEPS * its packets) in the order in which they were */
};

struct traffic_host {
    double link_free, back_free;
};

struct traffic_worker {
    double begun, processor_free;
    int steps;
    size_t returned; /* pieces of this step */
};

struct play {
    const struct server_traffic *t;
    struct event *heap;
    size_t waiting, capacity, numbered, pieces; /* pieces: of all packets */
    double piece;                               /* bytes of one: a segment, or more if those were too many to play */
    int failed;
    struct traffic_server *servers;
    struct traffic_worker *workers;
    struct traffic_host *hosts;   /* (workers) of workers */
    int *come;                    /* (count) pieces of all workers */
    double last_begun[STEPS + 1]; /* when the last worker began each step */
};

/* ---- events ------------------------------------------------------------------------------------------------------ */

static int before(const struct event *a, const struct event *b)
{
    return a->at < b->at || (a->at == b->at && a->number < b->number);
}

static void put(struct play *p, struct event event)
{
    size_t at = p->waiting;

    if (!ARRAY_ROOM(p->heap, p->capacity, p->waiting + 1)) {
        p->failed = 1;
        return;
    }
    event.number = p->numbered++;
    p->waiting++;
    for (; at > 0 && before(&event, &p->heap[(at - 1) / 2]); at = (at - 1) / 2)
        p->heap[at] = p->heap[(at - 1) / 2];
    p->heap[at] = event;
}

static struct event take_first(struct play *p)
{
    const struct event first = p->heap[0], last = p->heap[--p->waiting];
    size_t at = 0, child;

    while ((child = 2 * at + 1) < p->waiting) {
        child += child + 1 < p->waiting && before(&p->heap[child + 1], &p->heap[child]);
        if (!before(&p->heap[child], &last))
            break;
        p->heap[at] = p->heap[child];
        at = child;
    }
    p->heap[at] = last;
    return first;
}

/* What is served now, or once the resource is free, is done then. */
static double use(double *free_at, double now, double duration)
{
    *free_at = fmax(now, *free_at) + duration;
    return *free_at;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static int pieces_of(const struct play *p, double bytes)
{
    return bytes > p->piece ? (int)ceil(bytes / p->piece) : 1;
}

static double pushed(const struct traffic_packet *k)
{
    return k->pushed > 0 ? k->pushed : k->bytes;
}

static double wire(const struct play *p, double bytes)
{
    return plan_wire_bytes(1, bytes) / p->t->bandwidth;
}

static void begin_step(struct play *p, int w, double now)
{
    struct traffic_worker *worker = &p->workers[w];
    const int step = worker->steps++;

    p->last_begun[step] = fmax(p->last_begun[step], now);
    worker->begun = now;
    worker->returned = 0;
    for (size_t i = 0; i < p->t->count && step < STEPS; i++)
        put(p, (struct event){ .at = now + p->t->packets[i].final, .kind = FINAL, .who = w, .packet = i });
}

/* Over one's own link; a piece enters the other's as soon as its first bytes are there. */
static double send_piece(struct play *p, double *link_free, double now, struct event coming, double bytes)
{
    const double end = use(link_free, now, wire(p, bytes)), begin = end - wire(p, bytes);

    coming.at = begin + p->t->latency;
    coming.arrive = end + p->t->latency;
    coming.bytes = bytes;
    put(p, coming);
    return end;
}

static void push_packet(struct play *p, const struct event *e)
{
    const struct traffic_packet *k = &p->t->packets[e->packet];
    const int pieces = pieces_of(p, pushed(k));

    for (int i = 0; i < pieces; i++)
        send_piece(p, &p->hosts[e->who / p->t->per_host].link_free, e->at,
                   (struct event){ .kind = COMING, .who = e->who, .packet = e->packet }, pushed(k) / pieces);
}

/* The piece has all come over the second link. */
static double pass(struct play *p, double *link_free, const struct event *e)
{
    const double end = fmax(use(link_free, e->at, wire(p, e->bytes)), e->arrive);

    return *link_free = end;
}

static void take_piece(struct play *p, const struct event *e)
{
    const struct traffic_packet *k = &p->t->packets[e->packet];
    struct traffic_server *s = &p->servers[k->server];

    if (++p->come[e->packet] < pieces_of(p, pushed(k)) * p->t->workers)
        return;
    p->come[e->packet] = 0;
    put(p,
        (struct event){
            .at = use(&s->processor_free, e->at, k->answer), .kind = ANSWERED, .who = k->server, .packet = e->packet });
}

/* ---- a server's link to the workers ------------------------------------------------------------------------------ */

static void wait_for_turn(const struct play *p, struct traffic_server *s, int worker)
{
    struct connection *c = &s->to[worker];

    if (c->waits || c->next == s->answered_count)
        return;
    c->waits = 1;
    s->ring[(s->ring_first + s->ring_count++) % p->t->workers] = worker;
}

/* Sends what waits for the next worker, up to a turn. */
static void next_turn(struct play *p, int server, double now)
{
    struct traffic_server *s = &p->servers[server];
    double link_free = now, sent = 0;
    struct connection *c;
    int worker;

    if (s->busy || s->ring_count == 0)
        return;
    worker = s->ring[s->ring_first];
    s->ring_first = (s->ring_first + 1) % p->t->workers;
    s->ring_count--;
    c = &s->to[worker];
    c->waits = 0;
    while (c->next < s->answered_count) {
        const size_t packet = s->answered[c->next];
        const struct traffic_packet *k = &p->t->packets[packet];
        const int pieces = pieces_of(p, k->bytes);

        if (sent > 0 && sent + k->bytes / pieces > TURN_BYTES + 1)
            break;
        send_piece(p, &link_free, now, (struct event){ .kind = RETURNING, .who = worker, .packet = packet },
                   k->bytes / pieces);
        sent += k->bytes / pieces;
        if (++c->sent == pieces) {
            c->sent = 0;
            c->next++;
        }
    }
    s->busy = 1;
    put(p, (struct event){ .at = link_free, .kind = LEFT, .who = server });
    wait_for_turn(p, s, worker);
}

static void answer(struct play *p, const struct event *e)
{
    struct traffic_server *s = &p->servers[e->who];

    s->answered[s->answered_count++] = e->packet;
    for (int w = 0; w < p->t->workers; w++)
        wait_for_turn(p, s, w);
    next_turn(p, e->who, e->at);
}

static void take_values(struct play *p, const struct event *e)
{
    struct traffic_worker *w = &p->workers[e->who];
    const double pieces = pieces_of(p, p->t->packets[e->packet].bytes);
    const double end = use(&w->processor_free, e->at, p->t->packets[e->packet].take / pieces);

    if (++w->returned == p->pieces && w->steps <= STEPS)
        begin_step(p, e->who, fmax(end, w->begun + p->t->computing));
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static void happen(struct play *p, struct event e)
{
    const struct traffic_packet *k = &p->t->packets[e.packet];

    switch (e.kind) {
    case FINAL:
        e.at = use(&p->workers[e.who].processor_free, e.at, k->prepare);
        e.kind = PREPARED;
        put(p, e);
        break;
    case PREPARED: push_packet(p, &e); break;
    case COMING:
        e.at = pass(p, &p->servers[k->server].in_free, &e);
        e.kind = COME;
        put(p, e);
        break;
    case COME: take_piece(p, &e); break;
    case ANSWERED: answer(p, &e); break;
    case LEFT:
        p->servers[e.who].busy = 0;
        next_turn(p, e.who, e.at);
        break;
    case RETURNING:
        e.at = pass(p, &p->hosts[e.who / p->t->per_host].back_free, &e);
        e.kind = RETURNED;
        put(p, e);
        break;
    case RETURNED: take_values(p, &e); break;
    }
}

static int play_new(struct play *p, struct error *e)
{
    const size_t workers = (size_t)p->t->workers, servers = (size_t)p->t->servers;
    double bytes = 0;
    int bad;

    for (size_t i = 0; i < p->t->count; i++)
        bytes += p->t->packets[i].bytes;
    p->piece = fmax(SEGMENT_BYTES, (double)workers * bytes / (double)TRAFFIC_MESSAGES_MOST);
    p->servers = calloc(servers, sizeof *p->servers);
    p->workers = calloc(workers, sizeof *p->workers);
    p->hosts = calloc(workers, sizeof *p->hosts);
    p->come = calloc(p->t->count + 1, sizeof *p->come);
    bad = !p->servers || !p->workers || !p->hosts || !p->come;
    for (size_t j = 0; j < servers && !bad; j++) {
        struct traffic_server *s = &p->servers[j];
        size_t held = 0;

        for (size_t i = 0; i < p->t->count; i++)
            held += p->t->packets[i].server == (int)j;
        s->to = calloc(workers, sizeof *s->to);
        s->ring = calloc(workers, sizeof *s->ring);
        s->answered = calloc(STEPS * held + 1, sizeof *s->answered);
        bad = !s->to || !s->ring || !s->answered;
    }
    for (size_t i = 0; i < p->t->count; i++)
        p->pieces += (size_t)pieces_of(p, p->t->packets[i].bytes);
    return bad ? error_memory(e, NULL, "to plan the messages of %d workers", p->t->workers) : OK;
}

static void play_release(struct play *p)
{
    for (int j = 0; p->servers && j < p->t->servers; j++) {
        free(p->servers[j].to);
        free(p->servers[j].ring);
        free(p->servers[j].answered);
    }
    free(p->servers);
    free(p->workers);
    free(p->hosts);
    free(p->come);
    free(p->heap);
}

int server_traffic_seconds(const struct server_traffic *t, double *seconds, struct error *e)
{
    struct play p = { .t = t };
    int rc = play_new(&p, e);

    for (int w = 0; w < t->workers && rc == OK; w++)
        begin_step(&p, w, 0);
    while (rc == OK && p.waiting > 0)
        happen(&p, take_first(&p));
    if (rc == OK && p.failed)
        rc = error_memory(e, NULL, "to plan the messages of %d workers", t->workers);
    *seconds = (p.last_begun[STEPS] - p.last_begun[STEPS_BEFORE]) / (STEPS - STEPS_BEFORE);
    play_release(&p);
    return rc;
}
