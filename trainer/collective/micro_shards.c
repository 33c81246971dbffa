#include "trainer/collective/micro_shards.h"

#include "trainer/collective/exchange.h"

#include <stdlib.h>

enum { LEVELS_MAX = 31 };

struct micro_shards {
    struct network *network;
    int count;
    real *work;              /* an exchange vector, of the current part. NULL: there is only one part */
    real *nodes[LEVELS_MAX]; /* [k]: the sum of 2^k parts, where bit k of the number of parts done is set */
    /* While the last part is trained: */
    const struct gradient_sink *sink;
    real *sum;
    size_t added_from; /* elements from here on hold the sums of all parts */
};

int micro_shards_new(struct micro_shards **out, struct network *n, int count, struct error *e)
{
    struct micro_shards *m = calloc(1, sizeof *m);
    int missing = !m;

    if (m) {
        m->network = n;
        m->count = count;
        missing = count > 1 && !(m->work = reals_new(network_exchange_count(n)));
        for (int level = 0; (count - 1) >> level; level++)
            missing |= !(m->nodes[level] = reals_new(network_exchange_count(n)));
    }
    if (missing) {
        micro_shards_free(m);
        return error_memory(e, NULL, "for the sums of %d micro-shards", count);
    }
    *out = m;
    return OK;
}

void micro_shards_free(struct micro_shards *m)
{
    if (!m)
        return;
    for (int level = 0; level < LEVELS_MAX; level++)
        free(m->nodes[level]);
    free(m->work);
    free(m);
}

static void add(real *sum, const real *node, size_t from, size_t to)
{
    const real *parts[] = { sum, node };

    exchange_sum(sum, parts, 2, ASSOCIATION_TREE, from, to);
}

/* Part s is in `work`: adds it, which makes each tree that it completes a node. */
static void keep_part(struct micro_shards *m, int s)
{
    int level = 0;
    real *node;

    for (; s >> level & 1; level++)
        add(m->work, m->nodes[level], 0, network_exchange_count(m->network));
    node = m->nodes[level];
    m->nodes[level] = m->work;
    m->work = node;
}

/* Adds all existing nodes to the elements that the last part's backward pass has finished. */
static void add_last(void *context, size_t low)
{
    struct micro_shards *m = context;

    for (int level = 0; (m->count - 1) >> level; level++)
        if ((m->count - 1) >> level & 1)
            add(m->sum, m->nodes[level], low, m->added_from);
    m->added_from = low;
    if (m->sink)
        m->sink->dense(m->sink->context, low);
}

int micro_shards_train(struct micro_shards *m, const struct batch *batch, uint64_t seed,
                       const struct gradient_sink *sink, struct score *score)
{
    const struct gradient_sink last = { .dense = add_last, .context = m };
    const int count = batch->count / m->count;
    int done = 1;

    if (m->count == 1)
        return network_train(m->network, batch, seed, sink, score);
    m->sink = sink;
    m->sum = network_exchange(m->network);
    m->added_from = network_exchange_count(m->network);
    *score = (struct score){ 0 };
    for (int s = 0; done && s < m->count; s++) {
        const struct batch part = batch_part(batch, s * count, count);
        const int is_last = s == m->count - 1;
        struct score of_part;

        network_set_exchange(m->network, is_last ? m->sum : m->work);
        done = network_train(m->network, &part, seed, is_last ? &last : NULL, &of_part);
        score_add(score, &of_part);
        if (!is_last)
            keep_part(m, s);
    }
    network_set_exchange(m->network, m->sum);
    return done;
}
