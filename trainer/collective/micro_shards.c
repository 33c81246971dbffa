#include "trainer/collective/micro_shards.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEVELS_MAX = 31 };

struct micro_shards {
    struct network *network;
    struct tree_node nodes[REDUCTION_TREE_NODES_MAX];
    int node_count, parts;  /* parts: of all nodes */
    real *const *vectors;   /* (node_count); NULL: there is only one node */
    real *work;             /* an exchange vector, of the current part. NULL: there is only one part in each node */
    real *sums[LEVELS_MAX]; /* [k]: the sum of 2^k parts, where bit k of the number of the node's parts done is set */
    /* While a node's last part is trained: */
    const struct gradient_sink *sink; /* NULL, except in the last node */
    int count;                        /* parts of the node */
    real *sum;
    size_t added_from; /* elements from here on hold the sums of all parts */
    struct phase_clock *clock;
};

int micro_shards_new(struct micro_shards **out, struct network *n, const struct tree_node *nodes, int count,
                     struct error *e)
{
    struct micro_shards *m = calloc(1, sizeof *m);
    int missing = !m, most = 1;

    if (m) {
        m->network = n;
        m->node_count = count;
        if (count)
            memcpy(m->nodes, nodes, (size_t)count * sizeof *nodes);
        for (int k = 0; k < count; k++) {
            m->parts += nodes[k].count;
            most = nodes[k].count > most ? nodes[k].count : most;
        }
        m->parts = count ? m->parts : 1;
        missing = most > 1 && !(m->work = reals_new(network_exchange_count(n)));
        for (int level = 0; (most - 1) >> level; level++)
            missing |= !(m->sums[level] = reals_new(network_exchange_count(n)));
    }
    if (missing) {
        micro_shards_free(m);
        return error_memory(e, NULL, "for the sums of %d micro-shards", most);
    }
    *out = m;
    return OK;
}

void micro_shards_free(struct micro_shards *m)
{
    if (!m)
        return;
    for (int level = 0; level < LEVELS_MAX; level++)
        free(m->sums[level]);
    free(m->work);
    free(m);
}

void micro_shards_set_vectors(struct micro_shards *m, real *const *vectors)
{
    m->vectors = vectors;
}

void micro_shards_set_clock(struct micro_shards *m, struct phase_clock *clock)
{
    m->clock = clock;
}

static void add_sum(real *sum, const real *node, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        sum[i] += node[i];
}

/* Part s of its node is in `work`: adds it, which makes each tree that it completes a sum. */
static void keep_part(struct micro_shards *m, int s)
{
    int level = 0;
    real *node;

    phase_clock_enter(m->clock, PHASE_REDUCING);
    for (; s >> level & 1; level++)
        add_sum(m->work, m->sums[level], 0, network_exchange_count(m->network));
    node = m->sums[level];
    m->sums[level] = m->work;
    m->work = node;
}

/* Adds all existing sums to the elements that the last part's backward pass has finished. */
static void add_last(void *context, size_t low)
{
    struct micro_shards *m = context;

    phase_clock_enter(m->clock, PHASE_REDUCING);
    for (int level = 0; (m->count - 1) >> level; level++)
        if ((m->count - 1) >> level & 1)
            add_sum(m->sum, m->sums[level], low, m->added_from);
    m->added_from = low;
    phase_clock_enter(m->clock, PHASE_BACKWARD);
    if (m->sink)
        m->sink->dense(m->sink->context, low);
}

/* What a network tells first is that its forward pass is over. */
static void begin_backward(void *context, size_t low)
{
    struct micro_shards *m = context;

    (void)low;
    phase_clock_enter(m->clock, PHASE_BACKWARD);
}

static void tell_dense(void *context, size_t low)
{
    struct micro_shards *m = context;

    phase_clock_enter(m->clock, PHASE_BACKWARD);
    if (m->sink)
        m->sink->dense(m->sink->context, low);
}

static void tell_rows(void *context, const struct row_gradient *g)
{
    const struct micro_shards *m = context;

    m->sink->rows(m->sink->context, g);
}

/* Larger ones would not be exact, and say that the training diverges. */
static double rounded_loss(double loss)
{
    return fabs(loss) < 0x1p20 ? ldexp(nearbyint(ldexp(loss, 32)), -32) : loss;
}

/* Trains the parts of a node, the first of which is part `first` of the batch, into `sum`. */
static int train_node(struct micro_shards *m, int first, int size, const struct batch *batch, uint64_t seed,
                      struct score *score)
{
    const struct gradient_sink earlier = { .dense = begin_backward, .context = m };
    const struct gradient_sink last = { .dense = add_last, .context = m };
    int done = 1;

    m->added_from = network_exchange_count(m->network);
    for (int s = 0; done && s < m->count; s++) {
        const struct batch part = batch_part(batch, (first + s) * size, size);
        const int is_last = s == m->count - 1;
        struct score of_part;

        phase_clock_enter(m->clock, PHASE_FORWARD);
        network_set_exchange(m->network, is_last ? m->sum : m->work);
        done = network_train(m->network, &part, seed, is_last ? &last : &earlier, &of_part);
        of_part.loss = rounded_loss(of_part.loss);
        score_add(score, &of_part);
        if (!is_last)
            keep_part(m, s);
    }
    return done;
}

int micro_shards_train(struct micro_shards *m, const struct batch *batch, uint64_t seed,
                       const struct gradient_sink *sink, struct score *score)
{
    const struct gradient_sink alone = { tell_dense, sink && sink->rows ? tell_rows : NULL, m };
    real *const own = network_exchange(m->network);
    int done = 1, first = 0;

    if (m->parts == 1) {
        m->sink = sink;
        phase_clock_enter(m->clock, PHASE_FORWARD);
        done = network_train(m->network, batch, seed, &alone, score);
        if (m->node_count)
            score->loss = rounded_loss(score->loss);
        return done;
    }
    *score = (struct score){ 0 };
    for (int k = 0; done && k < m->node_count; k++) {
        const int is_last = k == m->node_count - 1;

        m->sink = is_last ? sink : NULL;
        m->sum = is_last ? own : m->vectors[k];
        m->count = m->nodes[k].count;
        done = train_node(m, first, batch->count / m->parts, batch, seed, score);
        first += m->count;
    }
    network_set_exchange(m->network, own);
    return done;
}
