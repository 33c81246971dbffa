/* single.c - one rank: an all-reduce whose local sum is the total. */
#include "trainer/strategies/allreduce.h"

static int single_workers(const struct strategy_options *o, int ranks, struct error *e)
{
    (void)o;
    if (ranks > 1)
        return error_set(e, ERR_ARG, "--run-option single is for one rank, but %d were started; use mpi or ps", ranks);
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
    .name = "single",
    .help = "on one rank",
    .workers = single_workers,
    .describe = single_describe,
    .start = allreduce_start,
};
