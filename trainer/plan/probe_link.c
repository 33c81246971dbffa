#include "trainer/plan/probe_link.h"

#include "base/clock.h"
#include "trainer/plan/median.h"

#include <stdlib.h>

enum { TAG_PING = 1, TAG_PONG, TAG_MANY, ROUNDS_LEAST = 5, ROUNDS_MOST = 100, MANY = 200, SMALL = 64 };

#define SECONDS_EACH 0.5 /* for one size */

struct pair {
    struct world *world;
    int first, other; /* first: 1 on rank 0 */
    char *bytes;
};

static int wait_for(struct pair *p, struct message *m, struct error *e)
{
    struct patience patience;
    int rc;

    patience_init(&patience, p->world, world_deadline(p->world));
    while ((rc = message_done(p->world, m, e)) == 0)
        if (!patience_pause(&patience))
            return patience_over(&patience, e, "for rank %d to answer a message", p->other);
    return rc < 0 ? rc : OK;
}

static int say(struct pair *p, int tag, size_t n, struct error *e)
{
    struct message m = { 0 };
    const int rc = world_send(p->world, p->other, tag, p->bytes, n, &m, e);

    return rc < 0 ? rc : wait_for(p, &m, e);
}

static int hear(struct pair *p, int tag, size_t n, struct error *e)
{
    struct message m = { 0 };
    const int rc = world_receive(p->world, p->other, tag, p->bytes, n, &m, e);

    return rc < 0 ? rc : wait_for(p, &m, e);
}

/* One message there and one back. The first byte of rank 0's says whether another pair follows. */
static int ping_pong(struct pair *p, size_t n, int more, struct error *e)
{
    int rc;

    if (!p->first)
        return (rc = hear(p, TAG_PING, n, e)) < 0 ? rc : say(p, TAG_PONG, n, e);
    p->bytes[0] = (char)more;
    return (rc = say(p, TAG_PING, n, e)) < 0 ? rc : hear(p, TAG_PONG, n, e);
}

/* The median of half a round trip. */
static int time_size(struct pair *p, size_t n, double *seconds, struct error *e)
{
    double times[ROUNDS_MOST], began = clock_monotonic();
    int rounds = -1, more = 1, rc = OK; /* the first one makes the connection */

    while (more && rc == OK) {
        const double begun = clock_monotonic();

        more = rounds + 1 < ROUNDS_LEAST || (rounds + 1 < ROUNDS_MOST && begun - began < SECONDS_EACH);
        rc = ping_pong(p, n, more, e);
        if (rounds >= 0)
            times[rounds] = (clock_monotonic() - begun) / 2;
        else
            began = clock_monotonic();
        rounds++;
        more = p->bytes[0]; /* the answer is the same bytes */
    }
    *seconds = median(times, (size_t)(rounds > 0 ? rounds : 0));
    return rc;
}

/* Many small messages in a row, and one back. */
static int time_many(struct pair *p, double *seconds, struct error *e)
{
    struct message many[MANY] = { { 0 } };
    const double begun = clock_monotonic();
    int rc = OK;

    for (int i = 0; i < MANY && rc == OK; i++)
        rc = p->first ? world_send(p->world, p->other, TAG_MANY, p->bytes, SMALL, &many[i], e)
                      : world_receive(p->world, p->other, TAG_MANY, p->bytes, SMALL, &many[i], e);
    for (int i = 0; i < MANY && rc == OK; i++)
        rc = wait_for(p, &many[i], e);
    if (rc == OK)
        rc = p->first ? hear(p, TAG_PONG, SMALL, e) : say(p, TAG_PONG, SMALL, e);
    *seconds = clock_monotonic() - begun;
    return rc;
}

/* The bandwidth by what the largest message takes more than the next smaller one: what is there for nothing in a link
 * that was idle, such as a bucket of tokens, is in both. The latency by the smallest message. */
static struct plan_link link_of(const struct probe_link *l)
{
    const int most = PROBE_SIZES - 1;
    const double more = l->seconds[most] - l->seconds[most - 1], least = l->seconds[most] / 1e3;
    const double rate = (l->bytes[most] - l->bytes[most - 1]) / (more > least ? more : least);
    const double latency = l->seconds[0] - l->bytes[0] / rate;

    return (struct plan_link){ latency > 0 ? latency : 0, rate };
}

static int measure(struct probe_link *out, struct pair *p, size_t largest, struct error *e)
{
    double many;
    int rc = OK;

    for (int i = 0; i < PROBE_SIZES && rc == OK; i++) {
        const size_t n = (largest >> (2 * (PROBE_SIZES - 1 - i))) + 1;

        out->bytes[i] = (double)n;
        rc = time_size(p, n, &out->seconds[i], e);
    }
    if (rc == OK)
        rc = time_many(p, &many, e);
    if (rc < 0 || !p->first)
        return rc;
    out->link = link_of(out);
    out->message = (many - 2 * out->seconds[0]) / (double)MANY;
    if (!(out->message > 0))
        out->message = 0;
    return OK;
}

int probe_link(struct probe_link *out, struct world *w, size_t largest, struct error *e)
{
    const int rank = world_rank(w), last = world_size(w) - 1;
    struct pair p = { .world = w, .first = rank == 0, .other = rank == 0 ? last : 0 };
    int rc = OK;

    *out = (struct probe_link){ .message = 0 };
    if (!(p.bytes = calloc(1, largest + SMALL + 1)))
        rc = error_memory(e, NULL, "for messages of %zu bytes", largest);
    if ((rc = world_agree(w, "begin to measure messages", rc, e)) == OK && (rank == 0 || rank == last))
        rc = measure(out, &p, largest, e);
    free(p.bytes);
    return rc;
}
