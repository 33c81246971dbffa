/*
 * Replicas in one process (source: strategies.md, 7.1, 7.2). Threads: each adds a slice of all vectors in memory;
 * copied weights are updated by every thread, shared ones in slices. Devices with memory of their own: shared weights
 * are those of device 0, which sends them to the others and gets their gradients; copied ones are added round a ring.
 */
#include "trainer/plan/cost.h"

static int threads_cost(const struct plan_work *w, const struct plan_machine *m, const struct plan_shape *s, int shared,
                        struct plan_cost *out)
{
    const double n = s->workers, crowding = plan_crowding(m, s->workers), all = (double)w->elements * sizeof(float);
    const double adding = n > 1 ? plan_adding(m, all, n) : 0;

    out->seconds = crowding * (w->forward + w->backward + w->update / (shared ? n : 1)) + adding;
    out->steps = 1 / out->seconds;
    return OK;
}

static int devices_cost(const struct plan_work *w, const struct plan_machine *m, const struct plan_shape *s, int shared,
                        struct plan_cost *out)
{
    const double n = s->workers, all = (double)w->elements * sizeof(float);
    const double volume = shared ? 2 * (n - 1) * all : 2 * (n - 1) / n * all;
    const double turns = shared ? (n > 1 ? 2 : 0) : 2 * (n - 1);

    out->seconds = w->forward + w->backward + w->update + volume / m->network.bandwidth + turns * m->network.latency;
    out->steps = 1 / out->seconds;
    out->bytes = shared ? (n - 1) * all : volume;
    return OK;
}

static int copied_cost(const struct plan_work *w, const struct plan_machine *m, const struct plan_shape *s,
                       struct plan_cost *out, struct error *e)
{
    (void)e;
    return (m->devices ? devices_cost : threads_cost)(w, m, s, 0, out);
}

static int shared_cost(const struct plan_work *w, const struct plan_machine *m, const struct plan_shape *s,
                       struct plan_cost *out, struct error *e)
{
    (void)e;
    return (m->devices ? devices_cost : threads_cost)(w, m, s, 1, out);
}

const struct plan_strategy plan_mirrored_copied = {
    .name = "mirrored",
    .help = "threads of one process, a copy of the weights each",
    .devices = 1,
    .cost = copied_cost,
};

const struct plan_strategy plan_mirrored_shared = {
    .name = "mirrored:weights=shared",
    .help = "threads of one process, one set of weights",
    .devices = 1,
    .cost = shared_cost,
};
