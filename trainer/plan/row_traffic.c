#include "trainer/plan/row_traffic.h"

#include "trainer/plan/cost.h"

#include <math.h>
#include <stdint.h>

#define NAME_BYTES ((double)sizeof(int32_t)) /* of a row's number */

size_t row_traffic_dense(const struct plan_work *w)
{
    return w->elements - (size_t)(w->rows.rows * w->rows.row_bytes / (double)sizeof(float));
}

/* Distinct rows of `together` workers, each of which uses some of all rows at random. */
static double distinct_rows(const struct plan_rows *r, double together)
{
    return r->rows * (1 - pow(1 - r->used / r->rows, together));
}

int row_traffic_one_host(const struct plan_shape *s)
{
    return s->servers ? s->workers + s->servers <= s->per_host : plan_hosts(s) == 1;
}

struct row_traffic row_traffic_of(const struct plan_work *w, const struct plan_machine *m, const struct plan_shape *s,
                                  int aggregates)
{
    const int one_host = row_traffic_one_host(s);
    const struct plan_link *l = one_host ? &m->memory : &m->network;
    const double hosts = plan_hosts(s), servers = s->servers ? s->servers : hosts;
    const double group = fmin(s->workers, s->per_host);
    const double speakers = aggregates ? hosts : s->workers; /* who exchange rows with servers */
    const double own = aggregates || one_host ? 1 : group; /* on a link: on one host a rank's reading and writing is */
    const double used = aggregates ? distinct_rows(&w->rows, group) : w->rows.used; /* by each of them */
    const double names = used * NAME_BYTES, values = used * w->rows.row_bytes;      /* of each */
    const double added = speakers / servers * values;                               /* by a server */
    double most = fmax(own, speakers / servers), wire = 2 * added; /* in memory: sums, and as many values */
    struct row_traffic t = { .worker = own * (names + values + names),
                             .server = speakers / servers * (names + values + names) };

    if (!(w->rows.rows > 0))
        return (struct row_traffic){ 0 };
    if (!s->servers && !one_host) { /* all hosts are alike, and what comes to one is as much as what leaves it */
        most = own * (hosts - 1) / hosts;
        t.worker = most * (names + values + values + names);
        t.server = 0;
    }
    if (!one_host)
        wire = plan_wire_bytes(1, most * names) + plan_wire_bytes(1, most * values) +
               plan_wire_bytes(1, most * (values + names));
    t.seconds = wire / l->bandwidth + 3 * l->latency + added * m->add;
    t.busy = (one_host ? 2 * values : plan_wire_bytes(1, names) + plan_wire_bytes(1, values + names)) / servers /
             l->bandwidth;
    return t;
}

struct row_traffic row_traffic_gathered(const struct plan_work *w, const struct plan_machine *m,
                                        const struct plan_shape *s)
{
    const int one_host = plan_hosts(s) == 1;
    const struct plan_link *l = one_host ? &m->memory : &m->network;
    const double here = one_host ? 1 : fmin(s->workers, s->per_host); /* whose messages share a link */
    const double messages = here * (s->workers - here);
    const double sums = w->rows.used * (NAME_BYTES + w->rows.row_bytes);
    const double wire = one_host ? messages * sums : plan_wire_bytes(messages, sums);

    if (!(w->rows.rows > 0) || s->workers == 1)
        return (struct row_traffic){ 0 };
    return (struct row_traffic){ .worker = messages * sums,
                                 .seconds = wire / l->bandwidth + l->latency + s->workers * sums * m->add };
}
