#include "trainer/plan/cost.h"

#include <math.h>
#include <string.h>

/* TCP over Ethernet with an MTU of 1500: headers of 14 (Ethernet), 20 (IP) and 32 (TCP with its timestamps). What comes
 * is acknowledged by such headers alone, for every second segment; as much comes as leaves. */
enum { SEGMENT = 1448, HEADERS = 66, ACKNOWLEDGEMENT = HEADERS / 2 };

const char *const plan_limit_names[PLAN_LIMITS] = {
    [PLAN_COMPUTE] = "compute", [PLAN_WIRE] = "wire",     [PLAN_LATENCY] = "latency",
    [PLAN_ADDING] = "adding",   [PLAN_SERVER] = "server",
};

#define PLAN_ADDRESS(name) &plan_##name,
const struct plan_strategy *const plan_strategies[] = { PLAN_STRATEGIES(PLAN_ADDRESS) NULL };

const struct plan_strategy *plan_strategy_find(const char *name)
{
    for (size_t i = 0; plan_strategies[i]; i++)
        if (!strcmp(plan_strategies[i]->name, name))
            return plan_strategies[i];
    return NULL;
}

double plan_final_at(const struct plan_work *w, size_t low)
{
    double share = 1;

    if (w->overlap && w->final_count == 0)
        share = 1 - (double)low / (double)w->elements;
    for (size_t i = 0; w->overlap && i < w->final_count; i++)
        if (w->finals[i].low <= low) {
            share = w->finals[i].share;
            break;
        }
    return w->forward + share * w->backward;
}

double plan_wire_bytes(double messages, double n)
{
    return messages * (n + (HEADERS + ACKNOWLEDGEMENT) * ceil(n / (double)SEGMENT));
}

double plan_wire_rate(double rate)
{
    return rate * (SEGMENT + HEADERS) / (double)SEGMENT;
}

double plan_adding(const struct plan_machine *m, double n, double together)
{
    const double alone = n * m->add, all = n * together / m->bus;

    return alone > all ? alone : all;
}

double plan_crowding(const struct plan_machine *m, int ranks)
{
    return m->cores > 0 && ranks > m->cores ? (double)ranks / m->cores : 1;
}

/* Lets one of the things that take time take none. */
static void without(enum plan_limit what, struct plan_work *w, struct plan_machine *m)
{
    switch (what) {
    case PLAN_COMPUTE: w->forward = w->backward = w->update = 0; break;
    case PLAN_WIRE: m->network.bandwidth = m->memory.bandwidth = INFINITY; break;
    case PLAN_LATENCY: m->network.latency = m->memory.latency = m->message = 0; break;
    case PLAN_ADDING:
        m->add = 0;
        m->bus = INFINITY;
        break;
    case PLAN_SERVER:
    case PLAN_LIMITS: break;
    }
}

int plan_cost(const struct plan_strategy *strategy, const struct plan_work *w, const struct plan_machine *m,
              const struct plan_shape *s, struct plan_cost *out, struct error *e)
{
    double longest = -1;
    int rc;

    *out = (struct plan_cost){ .limit = PLAN_COMPUTE };
    if ((rc = strategy->cost(w, m, s, out, e)) < 0)
        return rc;
    out->samples = w->batch * (double)s->workers / out->seconds;
    for (int l = 0; l < PLAN_SERVER; l++) {
        struct plan_work work = *w;
        struct plan_machine machine = *m;
        struct plan_cost cost = { 0 };

        for (int other = 0; other < PLAN_SERVER; other++)
            if (other != l)
                without((enum plan_limit)other, &work, &machine);
        if ((rc = strategy->cost(&work, &machine, s, &cost, e)) < 0)
            return rc;
        if (cost.seconds > longest) {
            longest = cost.seconds;
            out->limit = (enum plan_limit)l;
        }
    }
    if (out->on_server && (out->limit == PLAN_WIRE || out->limit == PLAN_ADDING))
        out->limit = PLAN_SERVER;
    return OK;
}
