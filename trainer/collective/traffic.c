#include "trainer/collective/traffic.h"

#include "base/human.h"
#include "base/json.h"
#include "trainer/collective/places.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int traffic_gather(struct traffic *out, struct world *w, int workers, const char *doing, struct error *e)
{
    const size_t n = world_sent(w) ? (size_t)world_size(w) : 0;
    struct world_sent *mine; /* as it is now: counting goes on while it is sent */
    int rc = OK;

    *out = (struct traffic){ .ranks = (int)n, .workers = workers, .places = world_places(w) };
    if (n == 0)
        return OK;
    out->host = calloc(n, sizeof *out->host);
    out->sent = calloc(n * n, sizeof *out->sent);
    mine = calloc(n, sizeof *mine);
    if (!out->host || !out->sent || !mine)
        rc = error_memory(e, NULL, "for the bytes of %zu ranks", n);
    else
        memcpy(mine, world_sent(w), n * sizeof *mine);
    if ((rc = world_agree(w, doing, rc, e)) == OK) {
        out->hosts = places_hosts(out->places, (int)n, out->host);
        rc = world_gather(w, mine, n * sizeof *mine, out->sent, doing, e);
    }
    free(mine);
    return rc;
}

void traffic_release(struct traffic *t)
{
    free(t->host);
    free(t->sent);
    *t = (struct traffic){ 0 };
}

static const struct world_sent *between(const struct traffic *t, int from, int to)
{
    return &t->sent[(size_t)from * (size_t)t->ranks + (size_t)to];
}

/* Adds what rank r exchanges in steps with all others, or with those on other hosts. */
static void add_rank(struct traffic_link *link, const struct traffic *t, int r, int away)
{
    for (int k = 0; k < t->ranks; k++) {
        if (away && t->host[k] == t->host[r])
            continue;
        link->sent += between(t, r, k)->steps + between(t, r, k)->memory;
        link->received += between(t, k, r)->steps + between(t, k, r)->memory;
    }
}

struct traffic_link traffic_of_rank(const struct traffic *t, int rank)
{
    struct traffic_link link = { t->host[rank], rank, 0, 0 };

    add_rank(&link, t, rank, 0);
    return link;
}

struct traffic_link traffic_of_rank_away(const struct traffic *t, int rank)
{
    struct traffic_link link = { t->host[rank], rank, 0, 0 };

    add_rank(&link, t, rank, 1);
    return link;
}

struct traffic_link traffic_of_host(const struct traffic *t, int host)
{
    struct traffic_link link = { host, -1, 0, 0 };

    for (int r = 0; r < t->ranks; r++)
        if (t->host[r] == host)
            add_rank(&link, t, r, 1);
    return link;
}

static int64_t load_of(const struct traffic_link *link)
{
    return link->sent > link->received ? link->sent : link->received;
}

struct traffic_link traffic_busiest(const struct traffic *t)
{
    const int count = t->hosts > 1 ? t->hosts : t->ranks;
    struct traffic_link busiest = { 0, 0, -1, -1 };

    for (int i = 0; i < count; i++) {
        const struct traffic_link link = t->hosts > 1 ? traffic_of_host(t, i) : traffic_of_rank(t, i);

        if (load_of(&link) > load_of(&busiest))
            busiest = link;
    }
    return busiest;
}

/* ---- as text ----------------------------------------------------------------------------------------------------- */

static double per_step(int64_t bytes, int64_t steps)
{
    return steps > 0 ? (double)bytes / (double)steps : 0;
}

static int first_rank(const struct traffic *t, int host)
{
    int r = 0;

    while (t->host[r] != host)
        r++;
    return r;
}

void traffic_text(struct buffer *out, const struct traffic *t, const struct traffic_link *link, int64_t steps)
{
    char sent[HUMAN_TEXT_MAX], received[HUMAN_TEXT_MAX];
    const char *comma = "";

    if (link->rank >= t->workers) {
        buffer_format(out, "server %d (rank %d)", link->rank - t->workers, link->rank);
    } else if (link->rank >= 0) {
        buffer_format(out, "rank %d", link->rank);
    } else {
        buffer_format(out, "host %s (rank", t->places[first_rank(t, link->host)].host);
        for (int r = 0; r < t->ranks; r++)
            if (t->host[r] == link->host) {
                buffer_format(out, "%s %d", comma, r);
                comma = ",";
            }
        buffer_append_text(out, ")");
    }
    buffer_format(out, ", %s sent and %s received a step", human_bytes((uint64_t)per_step(link->sent, steps), sent),
                  human_bytes((uint64_t)per_step(link->received, steps), received));
}

static void member(struct buffer *out, const char *name, double value)
{
    buffer_format(out, ", \"%s\": ", name);
    json_double(out, value);
}

static void link_members(struct buffer *out, const struct traffic *t, const struct traffic_link *link, int64_t steps)
{
    buffer_append_text(out, "{\"host\": ");
    json_text(out, t->places[link->rank >= 0 ? link->rank : first_rank(t, link->host)].host);
    if (link->rank >= 0)
        buffer_format(out, ", \"rank\": %d, \"role\": \"%s\"", link->rank,
                      link->rank < t->workers ? "worker" : "server");
    member(out, "sent_per_step", per_step(link->sent, steps));
    member(out, "received_per_step", per_step(link->received, steps));
}

void traffic_json(struct buffer *out, const struct traffic *t, int64_t steps)
{
    struct traffic_link busiest;

    buffer_append_text(out, "\"links\": [");
    for (int r = 0; r < t->ranks; r++) {
        const struct traffic_link link = traffic_of_rank(t, r), away = traffic_of_rank_away(t, r);
        int64_t aside = 0;

        for (int k = 0; k < t->ranks; k++)
            aside += between(t, r, k)->aside;
        buffer_append_text(out, r ? ", " : "");
        link_members(out, t, &link, steps);
        member(out, "sent_to_other_hosts_per_step", per_step(away.sent, steps));
        member(out, "received_from_other_hosts_per_step", per_step(away.received, steps));
        buffer_format(out, ", \"sent_between_steps\": %" PRId64 "}", aside);
    }
    buffer_append_text(out, "], \"busiest_link\": ");
    if (t->ranks == 0) {
        buffer_append_text(out, "null");
        return;
    }
    busiest = traffic_busiest(t);
    link_members(out, t, &busiest, steps);
    buffer_append_text(out, "}");
}
