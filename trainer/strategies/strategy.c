#include "trainer/strategies/strategy.h"

#include "trainer/collective/exchange.h"

#include <string.h>

int strategy_workers(const struct strategy_options *options, int ranks, struct error *e)
{
    if (options->run_option == RUN_SINGLE && ranks > 1)
        return error_set(e, ERR_ARG, "--run-option single is for one rank, and %d were started; use mpi or ps", ranks);
    if (options->run_option != RUN_PS)
        return ranks;
    if (ranks <= options->servers)
        return error_set(e, ERR_ARG, "%d rank%s with --servers %d leaves zero ranks as workers; start at least %d "
                         "ranks (mpirun -n %d)", ranks, ranks == 1 ? "" : "s", options->servers, options->servers + 1,
                         options->servers + 1);
    return ranks - options->servers;
}

static int same(struct world *w, uint64_t value, const char *what, struct error *e)
{
    struct error found = { OK, 0, "" };

    if (world_same(w, "compare its options", value, what, &found) < 0)
        return error_set(e, found.code, "%s%s", found.message,
                         found.code == ERR_ARG ? "; start all ranks with the same program and options" : "");
    return OK;
}

int strategy_start(struct strategy **out, struct world *w, const struct strategy_options *options, struct optimizer *o,
                   uint64_t fingerprint, struct error *e)
{
    struct strategy common;
    uint64_t cuts[4];
    int rc;

    memset(&common, 0, sizeof common);
    common.world = w;
    common.optimizer = o;
    common.network = optimizer_network(o);
    common.options = *options;
    common.global_step = options->first_step;
    common.workers = strategy_workers(options, world_size(w), e);
    if (common.workers < 0)
        return common.workers;
    common.worker = world_rank(w) < common.workers ? world_rank(w) : -1;
    common.more = options->first_step < options->max_steps;
    cuts[0] = options->bucket_bytes;
    cuts[1] = (uint64_t)options->run_option << 32 | (uint64_t)options->transport;
    cuts[2] = (uint64_t)options->servers << 1 | (uint64_t)options->synchronous;
    cuts[3] = (uint64_t)options->first_step;
    if ((rc = same(w, exchange_table_hash(common.network), "the model's table of variables", e)) < 0 ||
        (rc = same(w, exchange_hash(cuts, sizeof cuts, EXCHANGE_HASH_SEED), "the strategy's options", e)) < 0 ||
        (rc = same(w, fingerprint, "the training options", e)) < 0)
        return rc;
    switch (options->run_option) {
    case RUN_MPI:
        return allreduce_new(out, &common, e);
    case RUN_PS:
        return parameter_server_new(out, &common, e);
    case RUN_SINGLE:
        break;
    }
    return single_new(out, &common, e);
}

void strategy_free(struct strategy *s)
{
    if (s)
        s->operations->free(s);
}
