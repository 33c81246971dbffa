/* single.c - one rank: the local sum is the whole sum. */
#include "trainer/strategies/strategy.h"

#include <stdlib.h>

static int step_begin(struct strategy *s, int64_t step, struct error *e)
{
    (void)s;
    (void)step;
    (void)e;
    return OK;
}

static void ready(struct strategy *s, size_t low)
{
    (void)s;
    (void)low;
}

static int step_end(struct strategy *s, struct tally *tally, struct error *e)
{
    size_t total = network_parameter_count(s->network) + network_statistic_count(s->network);

    (void)e;
    tally->global_step = s->global_step;
    tally->more = 0;
    if (tally->flags & TALLY_LEFT)
        return OK;
    optimizer_apply(s->optimizer, s->global_step, network_exchange(s->network), tally->samples, 0, total);
    tally->global_step = ++s->global_step;
    tally->more = s->global_step < s->options.max_steps && !(tally->flags & TALLY_ENDS);
    return OK;
}

static int collect(struct strategy *s, int last, int64_t *step, struct error *e)
{
    (void)last;
    (void)e;
    *step = s->global_step;
    return OK;
}

static int finish(struct strategy *s, struct error *e)
{
    (void)s;
    (void)e;
    return OK;
}

static void report(const struct strategy *s, struct strategy_report *r)
{
    (void)s;
    *r = (struct strategy_report){ .transport = "none" };
}

static void release(struct strategy *s)
{
    free(s);
}

static const struct strategy_operations operations = { "single", step_begin, ready, step_end, collect, NULL, finish,
                                                       report, release };

int single_new(struct strategy **out, const struct strategy *common, struct error *e)
{
    struct strategy *s = malloc(sizeof *s);

    if (!s)
        return error_set(e, ERR_NOMEM, "no memory to start");
    *s = *common;
    s->operations = &operations;
    *out = s;
    return OK;
}
