#include "trainer/collective/micro_shards.h"

#include "trainer/collective/node_training.h"
#include "trainer/collective/row_sum.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096 }; /* elements that a thread completes at once */

/* a thread that computes some of the parts; the first one's network is the caller's */
struct sharer {
    struct micro_shards *all;
    int number;
    struct network *network;
    struct node_training *training;
    int first, parts;       /* of the batch */
    int node, node_count;   /* its nodes among those of all sharers */
    size_t added_from;      /* its blocks hold the whole sums from here on */
    atomic_size_t low, sum; /* elements from here on: are final in its own vectors; are added as added_from says */
    struct score score;
    int whole; /* 0: it left the step */
    int rc;
    struct error error;
};

/* a table whose gradient comes as rows */
struct table {
    size_t variable;
    struct row_sum *sums; /* (node_count) */
};

struct micro_shards {
    struct network *network;
    struct tree_node nodes[REDUCTION_TREE_NODES_MAX];
    int node_count, parts;
    real *const *vectors; /* (node_count); NULL: there is only one node */
    struct phase_clock *clock;
    struct node_training *alone; /* NULL: with threads */
    /* With threads: */
    struct team *team; /* NULL: without */
    struct sharer *sharers;
    int sharer_count;
    int part_count;                          /* nodes of all sharers */
    int begin[REDUCTION_TREE_NODES_MAX + 1]; /* node k is the sum of parts begin[k] to begin[k + 1] */
    struct tree_node *part_nodes;            /* (part_count) within the node that they are a part of */
    real **part_vectors;                     /* (part_count) the first is where the first node's sum goes */
    size_t total;
    struct table *tables;
    size_t table_count, hold;  /* hold: elements below are not told to the sink before the end: tables are there */
    struct row_gradient *rows; /* (part_count, for each sharer) */
    atomic_int left;           /* 1: a thread has left the current step, so the others may, too */
    const struct batch *batch;
    uint64_t seed;
    const struct gradient_sink *sink;
    size_t told; /* to the sink */
    real *own;   /* the caller's exchange vector */
};

int micro_shards_new(struct micro_shards **out, struct network *n, const struct tree_node *nodes, int count,
                     struct error *e)
{
    struct micro_shards *m = calloc(1, sizeof *m);
    int rc;

    if (!m)
        return error_memory(e, NULL, "for micro-shards");
    m->network = n;
    m->node_count = count;
    for (int k = 0; k < count; k++) {
        m->nodes[k] = nodes[k];
        m->parts += nodes[k].count;
    }
    if ((rc = node_training_new(&m->alone, n, nodes, count, e)) < 0) {
        micro_shards_free(m);
        return rc;
    }
    *out = m;
    return OK;
}

/* ---- threads: start and end -------------------------------------------------------------------------------------- */

/* The sharer's nodes of node k, which begins with part `at` of the batch: into out, or NULL to count. */
static int nodes_within(const struct micro_shards *m, const struct sharer *s, int k, int at, struct tree_node *out)
{
    const int count = m->nodes[k].count;
    const int from = s->first > at ? s->first - at : 0, end = s->first + s->parts - at;

    return reduction_tree_nodes(count, from < count ? from : count, end > 0 ? end < count ? end : count : 0, out);
}

/* Cuts the batch's nodes among the sharers: counts their nodes, or with memory for them fills it. */
static void share_parts(struct micro_shards *m)
{
    int used = 0;

    for (int w = 0; w < m->sharer_count; w++) {
        struct sharer *s = &m->sharers[w];

        s->all = m;
        s->number = w;
        s->first = reduction_tree_first(m->parts, m->sharer_count, w);
        s->parts = reduction_tree_first(m->parts, m->sharer_count, w + 1) - s->first;
        s->node = used;
        for (int k = 0, at = 0; k < m->node_count; at += m->nodes[k++].count) {
            const int more = nodes_within(m, s, k, at, m->part_nodes ? m->part_nodes + used : NULL);

            used += more;
            m->begin[k + 1] = more ? used : m->begin[k + 1];
        }
        s->node_count = used - s->node;
    }
    m->part_count = used;
}

/* In the thread that will use it: oneDNN keeps memory for what a thread has made. */
static void make_sharer(void *context, int w)
{
    struct micro_shards *m = context;
    struct sharer *s = w < m->sharer_count ? &m->sharers[w] : NULL;

    if (!s)
        return;
    if (w == 0) {
        s->network = m->network;
    } else {
        s->rc = network_new(&s->network, network_model(m->network), network_max_batch(m->network), &s->error);
        if (s->rc < 0)
            return;
        network_share(s->network, m->network);
        m->part_vectors[s->node + s->node_count - 1] = network_exchange(s->network);
    }
    for (int k = s->node + (w == 0); k < s->node + s->node_count; k++)
        if (!m->part_vectors[k] && !(m->part_vectors[k] = reals_new(m->total))) {
            s->rc = error_memory(&s->error, NULL, "for the sums of %d micro-shards", s->parts);
            return;
        }
    s->rc = node_training_new(&s->training, s->network, m->part_nodes + s->node, s->node_count, &s->error);
    if (s->rc == OK)
        node_training_set_vectors(s->training, m->part_vectors + s->node);
}

static void free_sharer(void *context, int w)
{
    struct micro_shards *m = context;
    struct sharer *s = w < m->sharer_count ? &m->sharers[w] : NULL;

    if (!s)
        return;
    node_training_free(s->training);
    if (w > 0 && m->part_vectors && s->network) /* the network's own */
        m->part_vectors[s->node + s->node_count - 1] = NULL;
    for (int k = s->node + (w == 0); m->part_vectors && k < s->node + s->node_count; k++)
        free(m->part_vectors[k]);
    if (w > 0)
        network_free(s->network);
}

int micro_shards_use_threads(struct micro_shards *m, struct team *team, int threads, struct error *e)
{
    node_training_free(m->alone);
    m->alone = NULL;
    m->team = team;
    m->total = network_exchange_count(m->network);
    m->sharers = calloc((size_t)threads, sizeof *m->sharers);
    if (!m->sharers)
        return error_memory(e, NULL, "for %d threads", threads);
    m->sharer_count = threads < m->parts ? threads : m->parts;
    share_parts(m);
    m->part_nodes = calloc((size_t)m->part_count, sizeof *m->part_nodes);
    m->part_vectors = calloc((size_t)m->part_count, sizeof *m->part_vectors);
    if (!m->part_nodes || !m->part_vectors)
        return error_memory(e, NULL, "for the sums of %d threads", threads);
    share_parts(m);
    team_run(team, make_sharer, NULL, m);
    for (int w = 0; w < m->sharer_count; w++)
        if (m->sharers[w].rc < 0)
            return error_copy(e, &m->sharers[w].error);
    return OK;
}

static void release_tables(struct micro_shards *m)
{
    for (size_t t = 0; t < m->table_count; t++) {
        for (int k = 0; m->tables[t].sums && k < m->node_count; k++)
            row_sum_release(&m->tables[t].sums[k]);
        free(m->tables[t].sums);
    }
    free(m->tables);
    free(m->rows);
}

void micro_shards_free(struct micro_shards *m)
{
    if (!m)
        return;
    node_training_free(m->alone);
    if (m->team)
        team_run(m->team, free_sharer, NULL, m);
    release_tables(m);
    free(m->part_nodes);
    free(m->part_vectors);
    free(m->sharers);
    free(m);
}

void micro_shards_set_vectors(struct micro_shards *m, real *const *vectors)
{
    m->vectors = vectors;
    if (m->alone)
        node_training_set_vectors(m->alone, vectors);
}

void micro_shards_set_clock(struct micro_shards *m, struct phase_clock *clock)
{
    m->clock = clock;
    node_training_set_clock(m->alone ? m->alone : m->sharers[0].training, clock);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static int make_shared_table(struct micro_shards *m, struct table *t, size_t variable, struct error *e)
{
    size_t count;
    const struct variable *v = &network_variables(m->network, &count)[variable];
    const size_t rows = v->count / v->row_width, most = network_rows_most(m->network, variable);
    const size_t end = network_exchange_place(m->network, v) + v->count;
    int rc = OK;

    t->variable = variable;
    if (!(t->sums = calloc((size_t)m->node_count, sizeof *t->sums)))
        return error_memory(e, NULL, "for the rows of %s", v->name);
    for (int k = 0; k < m->node_count && rc == OK; k++) {
        const size_t parts = (size_t)m->nodes[k].count;

        rc = row_sum_init(&t->sums[k], variable, v->row_width, most < rows / parts ? most * parts : rows,
                          (size_t)m->part_count, e);
    }
    m->hold = end > m->hold ? end : m->hold;
    return rc;
}

int micro_shards_use_rows(struct micro_shards *m, struct error *e)
{
    size_t count, tables = 0;
    const struct variable *v = network_variables(m->network, &count);
    int rc = OK;

    if (m->alone)
        return node_training_use_rows(m->alone, e);
    for (size_t i = 0; i < count; i++)
        tables += v[i].row_width > 0;
    if (m->tables || !tables)
        return OK;
    m->tables = calloc(tables, sizeof *m->tables);
    m->rows = calloc((size_t)m->part_count * (size_t)m->sharer_count, sizeof *m->rows);
    if (!m->tables || !m->rows)
        return error_memory(e, NULL, "for the rows of %zu tables", tables);
    for (int w = 0; w < m->sharer_count && rc == OK; w++)
        rc = node_training_use_rows(m->sharers[w].training, e);
    for (size_t i = 0; i < count && rc == OK; i++)
        if (v[i].row_width)
            rc = make_shared_table(m, &m->tables[m->table_count++], i, e);
    return rc;
}

const struct row_gradient *micro_shards_rows(const struct micro_shards *m, int node, size_t variable)
{
    if (m->alone)
        return node_training_rows(m->alone, node, variable);
    for (size_t t = 0; t < m->table_count; t++)
        if (m->tables[t].variable == variable)
            return &m->tables[t].sums[node].sum;
    return NULL;
}

/* Adds the rows that the sharers have of a table. list: (part_count). */
static void add_table(const struct micro_shards *m, struct table *t, struct row_gradient *list)
{
    for (int w = 0; w < m->sharer_count; w++)
        for (int k = 0; k < m->sharers[w].node_count; k++)
            list[m->sharers[w].node + k] = *node_training_rows(m->sharers[w].training, k, t->variable);
    for (int k = 0; k < m->node_count; k++)
        row_sum_add(&t->sums[k], list + m->begin[k], m->part_nodes + m->begin[k], m->begin[k + 1] - m->begin[k]);
}

/* ---- a step in threads ------------------------------------------------------------------------------------------- */

/* Where the sum of node k goes. */
static real *target(const struct micro_shards *m, int k)
{
    return k == m->node_count - 1 ? m->own : m->vectors[k];
}

/* Completes the sharer's blocks of the elements from `low` on. */
static void add_blocks(struct sharer *s, size_t low)
{
    const struct micro_shards *m = s->all;
    const size_t stride = (size_t)BLOCK * (size_t)m->sharer_count;

    for (size_t block = low / stride * stride + (size_t)s->number * BLOCK; block < s->added_from; block += stride) {
        const size_t from = block > low ? block : low;
        const size_t to = block + BLOCK < s->added_from ? block + BLOCK : s->added_from;

        for (int k = 0; k < m->node_count && from < to; k++)
            reduction_tree_sum(target(m, k), (const real *const *)m->part_vectors + m->begin[k],
                               m->part_nodes + m->begin[k], m->begin[k + 1] - m->begin[k], from, to);
    }
    s->added_from = low;
}

/* What all sharers have at least done. */
static size_t highest(const struct micro_shards *m, int sums)
{
    size_t high = 0;

    for (int w = 0; w < m->sharer_count; w++) {
        const struct sharer *s = &m->sharers[w];
        const size_t at = atomic_load_explicit(sums ? &s->sum : &s->low, memory_order_acquire);

        high = at > high ? at : high;
    }
    return high;
}

static void tell(struct micro_shards *m, size_t low)
{
    if (low >= m->told)
        return;
    m->told = low;
    if (m->sink)
        m->sink->dense(m->sink->context, low);
}

/* In each thread, in the backward pass of its last part: completes what all threads have come past. */
static void look_back(void *context, size_t low)
{
    struct sharer *s = context;
    struct micro_shards *m = s->all;
    size_t passed;

    atomic_store_explicit(&s->low, low, memory_order_release);
    if ((passed = highest(m, 0)) < s->added_from) {
        if (s->number == 0)
            phase_clock_enter(m->clock, PHASE_REDUCING);
        add_blocks(s, passed);
        atomic_store_explicit(&s->sum, passed, memory_order_release);
        if (s->number == 0)
            phase_clock_enter(m->clock, PHASE_BACKWARD);
    }
    if (s->number == 0) {
        const size_t done = highest(m, 1);

        tell(m, done > m->hold ? done : m->hold);
    }
}

static void train_share(void *context, int w)
{
    struct micro_shards *m = context;
    struct sharer *s = w < m->sharer_count ? &m->sharers[w] : NULL;
    const struct gradient_sink sink = { .dense = look_back, .context = s };
    struct batch share;
    int size;

    if (!s)
        return;
    size = m->batch->count / m->parts;
    share = batch_part(m->batch, s->first * size, s->parts * size);
    s->whole = node_training_run(s->training, &share, m->seed, &sink, &s->score);
    if (!s->whole)
        atomic_store(&m->left, 1);
    if (w == 0)
        phase_clock_enter(m->clock, PHASE_WAITING);
}

/* What is left to add once all are done. */
static void complete(void *context, int w)
{
    struct micro_shards *m = context;

    if (w >= m->sharer_count)
        return;
    if (w == 0)
        phase_clock_enter(m->clock, PHASE_REDUCING);
    add_blocks(&m->sharers[w], 0);
    for (size_t t = (size_t)w; t < m->table_count; t += (size_t)m->sharer_count)
        add_table(m, &m->tables[t], m->rows + (size_t)w * (size_t)m->part_count);
}

static int left_by_another(void *context)
{
    return atomic_load((atomic_int *)context);
}

/* Called in the first thread, which alone can be asked to leave, while it waits for the others. */
static void look(void *context)
{
    struct micro_shards *m = context;

    if (network_asked_to_leave(m->network))
        atomic_store(&m->left, 1);
}

static int train_in_threads(struct micro_shards *m, struct score *score)
{
    struct sharer *first = &m->sharers[0];
    int whole = 1;

    m->own = network_exchange(m->network);
    m->part_vectors[0] = target(m, 0);
    network_set_exchange(m->network, m->part_vectors[first->node_count - 1]);
    m->told = m->total;
    atomic_store(&m->left, 0);
    for (int w = 0; w < m->sharer_count; w++) {
        struct sharer *s = &m->sharers[w];

        s->added_from = m->total;
        atomic_store(&s->low, m->total);
        atomic_store(&s->sum, m->total);
        if (w > 0)
            network_set_leave(s->network, left_by_another, &m->left);
    }
    team_run(m->team, train_share, look, m);
    network_set_exchange(m->network, m->own);
    *score = (struct score){ 0 };
    for (int w = 0; w < m->sharer_count; w++) {
        score_add(score, &m->sharers[w].score);
        whole &= m->sharers[w].whole;
    }
    if (!whole)
        return 0;
    team_run(m->team, complete, NULL, m);
    tell(m, 0);
    return 1;
}

int micro_shards_train(struct micro_shards *m, const struct batch *batch, uint64_t seed,
                       const struct gradient_sink *sink, struct score *score)
{
    if (m->alone)
        return node_training_run(m->alone, batch, seed, sink, score);
    m->batch = batch;
    m->seed = seed;
    m->sink = sink;
    return train_in_threads(m, score);
}
