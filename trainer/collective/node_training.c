#include "trainer/collective/node_training.h"

#include "trainer/collective/row_sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEVELS_MAX = 31 };

/* a table whose gradient comes as rows */
struct table {
    size_t variable;
    struct row_sum *parts; /* (most_parts) of the current node, each micro-shard's; not of nodes of a single one */
    struct row_sum *nodes; /* (node_count, or 1) */
};

struct node_training {
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
    /* Rows: */
    struct table *tables;
    size_t table_count;
    int most_parts;            /* of a node */
    int node, part;            /* that are trained now */
    struct tree_node *singles; /* (most_parts) the parts of a node: each a leaf */
    struct row_gradient *list; /* (most_parts) */
};

int node_training_new(struct node_training **out, struct network *n, const struct tree_node *nodes, int count,
                      struct error *e)
{
    struct node_training *m = calloc(1, sizeof *m);
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
        m->most_parts = most;
        missing = most > 1 && !(m->work = reals_new(network_exchange_count(n)));
        for (int level = 0; (most - 1) >> level; level++)
            missing |= !(m->sums[level] = reals_new(network_exchange_count(n)));
    }
    if (missing) {
        node_training_free(m);
        return error_memory(e, NULL, "for the sums of %d micro-shards", most);
    }
    *out = m;
    return OK;
}

/* Without micro-shards the batch is a node. */
static int nodes_of(const struct node_training *m)
{
    return m->node_count ? m->node_count : 1;
}

static void release_table(const struct node_training *m, struct table *t)
{
    for (int k = 0; t->parts && k < m->most_parts; k++)
        row_sum_release(&t->parts[k]);
    for (int k = 0; t->nodes && k < nodes_of(m); k++)
        row_sum_release(&t->nodes[k]);
    free(t->parts);
    free(t->nodes);
}

void node_training_free(struct node_training *m)
{
    if (!m)
        return;
    for (int level = 0; level < LEVELS_MAX; level++)
        free(m->sums[level]);
    for (size_t t = 0; t < m->table_count; t++)
        release_table(m, &m->tables[t]);
    free(m->tables);
    free(m->singles);
    free(m->list);
    free(m->work);
    free(m);
}

static int make_table(const struct node_training *m, struct table *t, size_t variable, struct error *e)
{
    size_t count;
    const struct variable *v = &network_variables(m->network, &count)[variable];
    const size_t rows = v->count / v->row_width, most = network_rows_most(m->network, variable);
    int rc = OK;

    t->variable = variable;
    t->parts = calloc((size_t)m->most_parts, sizeof *t->parts);
    t->nodes = calloc((size_t)nodes_of(m), sizeof *t->nodes);
    if (!t->parts || !t->nodes)
        return error_memory(e, NULL, "for the rows of %s", v->name);
    for (int k = 0; k < m->most_parts && m->most_parts > 1 && rc == OK; k++)
        rc = row_sum_init(&t->parts[k], variable, v->row_width, most, 0, e);
    for (int k = 0; k < nodes_of(m) && rc == OK; k++) {
        const size_t parts = m->node_count ? (size_t)m->nodes[k].count : 1;

        rc = row_sum_init(&t->nodes[k], variable, v->row_width, most < rows / parts ? most * parts : rows, parts, e);
    }
    return rc;
}

int node_training_use_rows(struct node_training *m, struct error *e)
{
    size_t count, tables = 0;
    const struct variable *v = network_variables(m->network, &count);
    int rc = OK;

    for (size_t i = 0; i < count; i++)
        tables += v[i].row_width > 0;
    if (m->tables || !tables)
        return OK;
    m->tables = calloc(tables, sizeof *m->tables);
    m->singles = calloc((size_t)m->most_parts, sizeof *m->singles);
    m->list = calloc((size_t)m->most_parts, sizeof *m->list);
    if (!m->tables || !m->singles || !m->list)
        return error_memory(e, NULL, "for the rows of %zu tables", tables);
    for (int k = 0; k < m->most_parts; k++)
        m->singles[k] = (struct tree_node){ k, 1 };
    for (size_t i = 0; i < count && rc == OK; i++)
        if (v[i].row_width)
            rc = make_table(m, &m->tables[m->table_count++], i, e);
    return rc;
}

const struct row_gradient *node_training_rows(const struct node_training *m, int node, size_t variable)
{
    for (size_t t = 0; t < m->table_count; t++)
        if (m->tables[t].variable == variable)
            return &m->tables[t].nodes[node].sum;
    return NULL;
}

void node_training_set_vectors(struct node_training *m, real *const *vectors)
{
    m->vectors = vectors;
}

void node_training_set_clock(struct node_training *m, struct phase_clock *clock)
{
    m->clock = clock;
}

static void add_sum(real *sum, const real *node, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        sum[i] += node[i];
}

/* Part s of its node is in `work`: adds it, which makes each tree that it completes a sum. */
static void keep_part(struct node_training *m, int s)
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
    struct node_training *m = context;

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
    struct node_training *m = context;

    (void)low;
    phase_clock_enter(m->clock, PHASE_BACKWARD);
}

static void tell_dense(void *context, size_t low)
{
    struct node_training *m = context;

    phase_clock_enter(m->clock, PHASE_BACKWARD);
    if (m->sink)
        m->sink->dense(m->sink->context, low);
}

/* Keeps a part's rows. Those of a node's last part make them the node's sum. */
static void take_rows(void *context, const struct row_gradient *g)
{
    struct node_training *m = context;
    const struct table *t = m->tables;

    while (t->variable != g->variable)
        t++;
    if (m->count == 1) {
        row_sum_copy(&t->nodes[m->node], g);
        return;
    }
    row_sum_copy(&t->parts[m->part], g);
    if (m->part < m->count - 1)
        return;
    for (int k = 0; k < m->count; k++)
        m->list[k] = t->parts[k].sum;
    row_sum_add(&t->nodes[m->node], m->list, m->singles, m->count);
}

/* Larger ones would not be exact, and say that the training diverges. */
static double rounded_loss(double loss)
{
    return fabs(loss) < 0x1p20 ? ldexp(nearbyint(ldexp(loss, 32)), -32) : loss;
}

/* Trains the parts of a node, the first of which is part `first` of the batch, into `sum`. */
static int train_node(struct node_training *m, int first, int size, const struct batch *batch, uint64_t seed,
                      struct score *score)
{
    const struct gradient_sink earlier = { begin_backward, m->tables ? take_rows : NULL, m };
    const struct gradient_sink last = { add_last, m->tables ? take_rows : NULL, m };
    int done = 1;

    m->added_from = network_exchange_count(m->network);
    for (int s = 0; done && s < m->count; s++) {
        const struct batch part = batch_part(batch, (first + s) * size, size);
        const int is_last = s == m->count - 1;
        struct score of_part;

        m->part = s;
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

int node_training_run(struct node_training *m, const struct batch *batch, uint64_t seed,
                      const struct gradient_sink *sink, struct score *score)
{
    const struct gradient_sink alone = { tell_dense, m->tables ? take_rows : NULL, m };
    real *const own = network_exchange(m->network);
    int done = 1, first = 0;

    if (m->parts == 1) {
        m->sink = sink;
        m->node = m->part = 0;
        m->count = 1;
        phase_clock_enter(m->clock, PHASE_FORWARD);
        done = network_train(m->network, batch, seed, &alone, score);
        if (m->node_count)
            score->loss = rounded_loss(score->loss);
        return done;
    }
    *score = (struct score){ 0 };
    for (int k = 0; done && k < m->node_count; k++) {
        const int is_last = k == m->node_count - 1;

        m->node = k;
        m->sink = is_last ? sink : NULL;
        m->sum = is_last ? own : m->vectors[k];
        m->count = m->nodes[k].count;
        done = train_node(m, first, batch->count / m->parts, batch, seed, score);
        first += m->count;
    }
    network_set_exchange(m->network, own);
    return done;
}
