/* single.c - one rank: the local sum is the whole sum. */
#include "trainer/strategies/single.h"

#include <stdlib.h>

static int single_step_begin(struct strategy *s, int64_t step, struct error *e)
{
    (void)s;
    (void)step;
    (void)e;
    return OK;
}

static void single_ready(struct strategy *s, size_t low)
{
    (void)s;
    (void)low;
}

static int single_step_end(struct strategy *s, struct tally *tally, struct error *e)
{
    const struct tally_part part = { .score = tally->score, .flags = tally->flags };

    (void)e;
    *tally = tally_sum(&part, 1, s->global_step, s->options.max_steps);
    if (tally->flags & TALLY_LEFT)
        return OK;
    optimizer_apply(s->optimizer, s->global_step, network_exchange(s->network), 0,
                    network_exchange_count(s->network));
    s->global_step = tally->global_step;
    return OK;
}

static int single_collect(struct strategy *s, int last, int64_t *step, struct error *e)
{
    (void)last;
    (void)e;
    *step = s->global_step;
    return OK;
}

static int single_finish(struct strategy *s, struct error *e)
{
    (void)s;
    (void)e;
    return OK;
}

static void single_report(const struct strategy *s, struct strategy_report *r)
{
    (void)s;
    *r = (struct strategy_report){ .transport = "none" };
}

static void single_release(struct strategy *s)
{
    free(s);
}

static const struct strategy_operations operations = {
    .step_begin = single_step_begin, .ready = single_ready, .step_end = single_step_end, .collect = single_collect,
    .finish = single_finish, .report = single_report, .free = single_release,
};

int single_start(struct strategy **out, const struct strategy *common, struct error *e)
{
    struct strategy *s = malloc(sizeof *s);

    if (!s)
        return error_memory(e, NULL, "to start");
    *s = *common;
    s->operations = &operations;
    *out = s;
    return OK;
}

static int single_workers(const struct strategy_options *o, int ranks, struct error *e)
{
    (void)o;
    if (ranks > 1)
        return error_set(e, ERR_ARG, "--run-option single is for one rank, and %d were started; use mpi or ps", ranks);
    return ranks;
}

static void single_describe(const struct strategy_options *o, int ranks, char *text, size_t size)
{
    (void)o;
    (void)ranks;
    if (size > 0)
        text[0] = '\0';
}

const struct strategy_kind strategy_single = {
    .name = "single", .help = "on one rank", .workers = single_workers, .describe = single_describe,
    .start = single_start,
};
