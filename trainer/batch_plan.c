#include "trainer/batch_plan.h"

#include <stdio.h>

enum { BATCH_TOGETHER_MAX = 1 << 26 }; /* images */

static int plan_equal(struct batch_plan *p, const struct batch_sizes *s, int workers, struct error *e)
{
    if (s->global_batch % workers)
        return error_set(e, ERR_ARG,
                         "--global-batch %d: not a multiple of the %d workers; with --micro-shards it need not be",
                         s->global_batch, workers);
    p->unit = p->most = s->global_batch ? s->global_batch / workers : s->batch_size;
    p->together = (int64_t)p->most * workers;
    if (p->most % p->threads)
        return error_set(e, ERR_ARG,
                         "--threads %d: a worker's batch of %d cannot be cut into %d equal parts; use a multiple of %d "
                         "as --batch-size, or --micro-shards, which threads need not have equally many of",
                         p->threads, p->most, p->threads, p->threads);
    p->unit = p->most / p->threads;
    if (p->threads > 1) {
        p->node_count = 1;
        p->nodes[0] = (struct tree_node){ 0, p->threads };
    }
    return OK;
}

/* Images of a micro-shard. */
static int unit_of(const struct batch_sizes *s, int workers, struct error *e)
{
    const int shards = s->micro_shards;

    if (s->global_batch) {
        if (s->global_batch % shards)
            return error_set(e, ERR_ARG,
                             "--global-batch %d: cannot be cut into %d equal micro-shards; use a multiple of %d",
                             s->global_batch, shards, shards);
        if (shards < workers)
            return error_set(e, ERR_ARG, "--micro-shards %d: too few for %d workers, each of which needs one", shards,
                             workers);
        return s->global_batch / shards;
    }
    if (shards % workers)
        return error_set(e, ERR_ARG,
                         "--micro-shards %d: not a multiple of the %d workers; with --global-batch instead of "
                         "--batch-size it need not be",
                         shards, workers);
    if (s->batch_size % (shards / workers))
        return error_set(e, ERR_ARG,
                         "--micro-shards %d: a worker's batch of %d images cannot be cut into %d equal parts", shards,
                         s->batch_size, shards / workers);
    return s->batch_size / (shards / workers);
}

static int plan_shards(struct batch_plan *p, const struct batch_sizes *s, int workers, int worker, struct error *e)
{
    const int shards = s->micro_shards, unit = unit_of(s, workers, e);
    int from, to;

    if (unit < 0)
        return unit;
    p->unit = unit;
    p->together = (int64_t)unit * shards;
    p->most = (shards + workers - 1) / workers * unit;
    if (p->most / unit < p->threads)
        return error_set(e, ERR_ARG, "--threads %d: each needs a micro-shard, but a worker has at most %d of %d",
                         p->threads, p->most / unit, shards);
    if (worker < 0)
        return OK;
    from = reduction_tree_first(shards, workers, worker);
    to = reduction_tree_first(shards, workers, worker + 1);
    p->first = (int64_t)from * unit;
    p->count = (to - from) * unit;
    p->node_count = 1;
    p->nodes[0] = (struct tree_node){ 0, to - from };
    if (s->synchronous)
        p->node_count = reduction_tree_nodes(shards, from, to, p->nodes);
    return OK;
}

int batch_sizes_aggregate(struct batch_sizes *s, int aggregate, int workers, struct error *e)
{
    if (aggregate && aggregate != workers && s->global_batch)
        return error_set(e, ERR_ARG,
                         "--replicas-to-aggregate %d: an update of %d worker%s has so many batches, not one of "
                         "--global-batch; use --batch-size",
                         aggregate, workers, workers == 1 ? "" : "s");
    if (aggregate <= workers)
        return OK;
    if (s->micro_shards)
        return error_set(e, ERR_ARG,
                         "--replicas-to-aggregate %d: the %d batches of a step are its micro-shards; leave out "
                         "--micro-shards",
                         aggregate, aggregate);
    if ((int64_t)aggregate * s->batch_size > BATCH_TOGETHER_MAX)
        return error_set(e, ERR_ARG, "--replicas-to-aggregate %d: too many batches of %d images", aggregate,
                         s->batch_size);
    s->micro_shards = aggregate;
    s->global_batch = aggregate * s->batch_size;
    return OK;
}

int batch_plan_make(struct batch_plan *out, const struct batch_sizes *sizes, int workers, int worker, struct error *e)
{
    struct batch_plan p = { .threads = sizes->threads > 1 ? sizes->threads : 1 };
    int rc = sizes->micro_shards ? plan_shards(&p, sizes, workers, worker, e) : plan_equal(&p, sizes, workers, e);

    if (rc < 0)
        return rc;
    if (!sizes->micro_shards && worker >= 0)
        p.count = p.most;
    *out = p;
    return OK;
}

void batch_plan_text(const struct batch_plan *p, int micro_shards, int workers, int together, char *text, size_t size)
{
    const int least = micro_shards / workers * p->unit;
    char each[40], cut[40] = "", shared[40] = "";

    text[0] = '\0';
    snprintf(each, sizeof each, "%d", p->most);
    if (micro_shards && least < p->most)
        snprintf(each, sizeof each, "%d to %d", least, p->most);
    if (micro_shards > workers)
        snprintf(cut, sizeof cut, ", %d micro-shards", micro_shards);
    if (p->threads > 1)
        snprintf(shared, sizeof shared, ", %d threads%s", p->threads, together > 1 ? " each" : "");
    if (together > 1 || cut[0] || shared[0])
        snprintf(text, size, " (%d x %s%s%s)", together, each, cut, shared);
}
