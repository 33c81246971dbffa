/*
 * Parallax's hybrid (source: strategies.md, 6 and 8.1): dense variables by all-reduce, a table on servers. Before a
 * step each worker fetches the rows that its batch uses; after it the workers of a host send the sums of their
 * gradients together. Both are waited for: the first by forward, the second by the next step's first.
 */
#include "trainer/plan/cost.h"

#include <math.h>
#include <stdint.h>

#define NAME_BYTES ((double)sizeof(int32_t)) /* of a row's number */

/* Bytes of a step, one way each. */
struct row_traffic {
    double names, values, sums; /* on the link where they take longest */
    double worker, server;      /* of all of them, on the link of a host of workers, and of servers alone */
    double added;               /* by a server */
};

/* Distinct rows of `together` workers, each of which uses some of all rows at random. */
static double distinct_rows(const struct plan_rows *r, double together)
{
    return r->rows * (1 - pow(1 - r->used / r->rows, together));
}

static int on_one_host(const struct plan_shape *s)
{
    return s->servers ? s->workers + s->servers <= s->per_host : plan_hosts(s) == 1;
}

static struct row_traffic traffic_of(const struct plan_work *w, const struct plan_shape *s)
{
    const struct plan_rows *r = &w->rows;
    const double hosts = plan_hosts(s), workers = s->workers, together = fmin(s->workers, s->per_host);
    const double group = on_one_host(s) ? 1 : together; /* on one host a rank's reading and writing is a link */
    const double of_host = distinct_rows(r, together), servers = s->servers ? s->servers : hosts;
    const double away = s->servers ? 1 : (hosts - 1) / hosts; /* share of rows that another host has */
    const double most = fmax(group, workers / servers);       /* a worker's host, or a server's */
    struct row_traffic t;

    if (!s->servers && !on_one_host(s)) { /* all hosts are alike: what comes to one is as much as what leaves it */
        t.names = group * away * r->used * NAME_BYTES;
        t.values = group * away * r->used * r->row_bytes;
        t.sums = away * of_host * (r->row_bytes + NAME_BYTES);
        t.worker = t.names + t.values + t.sums;
        t.server = 0;
    } else {
        t.names = most * r->used * NAME_BYTES;
        t.values = most * r->used * r->row_bytes;
        t.sums = fmax(1, hosts / servers) * of_host * (r->row_bytes + NAME_BYTES);
        t.worker = fmax(group * r->used * r->row_bytes,
                        group * r->used * NAME_BYTES + of_host * (r->row_bytes + NAME_BYTES));
        t.server = fmax(workers * r->used * r->row_bytes,
                        workers * r->used * NAME_BYTES + hosts * of_host * (r->row_bytes + NAME_BYTES)) /
                   servers;
    }
    t.added = hosts / servers * of_host * r->row_bytes;
    return t;
}

static int hybrid_cost(const struct plan_work *w, const struct plan_machine *m, const struct plan_shape *s,
                       struct plan_cost *out, struct error *e)
{
    const struct plan_shape without_servers = { s->workers, s->per_host, 0 };
    const int messages = !on_one_host(s);
    const struct plan_link *l = messages ? &m->network : &m->memory;
    struct plan_work dense = *w;
    struct row_traffic t;
    double wire;
    int rc;

    if (!(w->rows.rows > 0))
        return plan_allreduce.cost(w, m, &without_servers, out, e);
    dense.elements -= (size_t)(w->rows.rows * w->rows.row_bytes / (double)sizeof(float));
    dense.finals = NULL;
    dense.final_count = 0;
    if ((rc = plan_allreduce.cost(&dense, m, &without_servers, out, e)) < 0)
        return rc;
    t = traffic_of(w, s);
    wire = messages ? plan_wire_bytes(1, t.names) + plan_wire_bytes(1, t.values) + plan_wire_bytes(1, t.sums)
                    : t.added + s->workers * w->rows.used * w->rows.row_bytes; /* to and from the host's server */
    out->seconds += wire / l->bandwidth + 3 * l->latency + t.added * m->add;
    out->steps = 1 / out->seconds;
    out->bytes += t.worker;
    out->on_server = t.server > out->bytes;
    out->bytes = fmax(out->bytes, t.server);
    return OK;
}

const struct plan_strategy plan_hybrid = {
    .name = "hybrid",
    .help = "tables on parameter servers, of which the rows in use travel; all else by all-reduce",
    .servers = 1,
    .rows = 1,
    .cost = hybrid_cost,
};
