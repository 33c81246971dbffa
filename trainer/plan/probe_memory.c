#include "trainer/plan/probe_memory.h"

#include "base/clock.h"
#include "trainer/collective/exchange.h"
#include "trainer/collective/team.h"
#include "trainer/plan/median.h"

#include <sched.h>
#include <stdlib.h>

enum { ELEMENTS = 1 << 20, VECTORS = 2, ROUNDS = 7, CORES_MOST = 256 };

struct adder {
    real *memory; /* VECTORS of ELEMENTS, then their sum */
};

struct adders {
    struct adder each[CORES_MOST];
};

static void add_vectors(void *context, int member)
{
    real *at = ((struct adders *)context)->each[member].memory;
    const real *const parts[VECTORS] = { at, at + ELEMENTS };

    exchange_sum(at + (size_t)VECTORS * ELEMENTS, parts, VECTORS, 0, ELEMENTS);
}

/* Median seconds of one addition in every member. */
static double time_adding(struct team *team, struct adders *a)
{
    double seconds[ROUNDS];

    for (int i = -1; i < ROUNDS; i++) { /* the first one touches the memory */
        const double begun = clock_monotonic();

        team_run(team, add_vectors, NULL, a);
        if (i >= 0)
            seconds[i] = clock_monotonic() - begun;
    }
    return median(seconds, ROUNDS);
}

static int cores_here(void)
{
    cpu_set_t set;
    int n = 1;

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = CPU_COUNT(&set);
    return n < 1 ? 1 : n > CORES_MOST ? CORES_MOST : n;
}

int probe_memory(struct probe_memory *out, struct error *e)
{
    const double bytes = (double)VECTORS * (double)ELEMENTS * sizeof(real);
    struct adders *a = calloc(1, sizeof *a);
    struct team *alone = NULL, *all = NULL;
    int rc = OK;

    *out = (struct probe_memory){ .cores = cores_here() };
    for (int i = 0; a && i < out->cores && rc == OK; i++)
        if (!(a->each[i].memory = calloc((size_t)(VECTORS + 1) * ELEMENTS, sizeof(real))))
            rc = ERR_NOMEM;
    if (!a || rc < 0)
        rc = error_memory(e, NULL, "to measure how fast it adds");
    if (rc == OK && (rc = team_new(&alone, 1, e)) == OK && (rc = team_new(&all, out->cores, e)) == OK) {
        out->add = time_adding(alone, a) / bytes;
        out->bus = bytes * out->cores / time_adding(all, a);
        if (out->bus * out->add < 1) /* another program was busy */
            out->bus = 1 / out->add;
    }
    team_free(all);
    team_free(alone);
    for (int i = 0; a && i < out->cores; i++)
        free(a->each[i].memory);
    free(a);
    return rc;
}
