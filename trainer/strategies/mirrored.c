/*
 * mirrored.c - workers that are threads of one rank: each has its own network and computes the gradients of its part of
 * the batch. When all have done so, they add all threads' exchange vectors. Nothing is sent. Source: strategies,
 * sections 7.1 and 7.2.
 *
 *   --weights copied   every thread has weights and an optimizer of its own; it adds all vectors, block by block, and
 *                      updates its weights by a block while that is in its cache: no thread waits for another's sum
 *   --weights shared   all read one set of weights; there is one optimizer, which each thread makes update the slice
 *                      that it has just added, in place in the first thread's vector
 *
 * Where an update of some elements reads the sum of others, the slices are added first, and all wait until they are.
 *
 * Either way the bits are those of as many ranks with mpi: each element is added as reduction.h says, and the optimizer
 * is the same function. Replicas are compared as there: every check_every steps, and at the end.
 */
#include "trainer/strategies/strategy.h"

#include "trainer/collective/team.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mirrored_options {
    const char *weights; /* copied, shared */
};

_Static_assert(sizeof(struct mirrored_options) <= STRATEGY_OWN_SIZE, "they have room");

/* Elements added at once: few enough for the second cache, and enough for processors that read ahead. */
enum { BLOCK = 1 << 17 };

/* what a thread has; the first one's is the rank's own */
struct replica {
    struct network *network;
    struct optimizer *optimizer; /* NULL: shared weights, of the first one */
    struct micro_shards *shards;
    int first, count;   /* its part of the batch */
    struct score score; /* of that */
    int whole;          /* 0: it left the step */
    real *sum;          /* (BLOCK) copied weights: of all vectors */
    const real **parts; /* (reduction.count) where that block begins in each */
    uint64_t hash;
    size_t copies; /* of variables, made at the start */
    int rc;
    struct error error;
};

struct mirrored {
    struct strategy base;
    struct team *team;
    struct replica *replicas; /* (workers) */
    real **vectors;           /* (reduction.count) their exchange vectors; the first one can become the sum */
    size_t total;
    int shared;
    atomic_int left; /* 1: a thread has left the current step, so the others may, too */
    const struct batch *batch;
    uint64_t seed;
};

static const struct mirrored_options *mirrored_own(const struct strategy_options *o)
{
    return (const void *)o->own.bytes;
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

static int left_by_another(void *context)
{
    return atomic_load((atomic_int *)context);
}

/* Tells the rank's clock what its first thread does. */
static void mirrored_phase(const struct mirrored *m, int w, enum phase phase)
{
    if (w == 0)
        phase_clock_enter(m->base.options.clock, phase);
}

static void train_part(void *context, int w)
{
    struct mirrored *m = context;
    struct replica *r = &m->replicas[w];
    const struct batch part = batch_part(m->batch, r->first, r->count);

    r->whole = micro_shards_train(r->shards, &part, m->seed, NULL, &r->score);
    if (!r->whole)
        atomic_store(&m->left, 1);
    mirrored_phase(m, w, PHASE_WAITING);
}

/* Called in the first thread, which alone can be asked to leave, while it waits for the others. */
static void look(void *context)
{
    struct mirrored *m = context;

    if (network_asked_to_leave(m->base.network))
        atomic_store(&m->left, 1);
}

/* Equal parts, or those that whole micro-shards are. */
static void share_batch(struct mirrored *m, int count)
{
    const int parts = m->base.reduction.micro_shards ? m->base.reduction.micro_shards : m->base.workers;
    const int size = count / parts;

    for (int w = 0; w < m->base.workers; w++) {
        struct replica *r = &m->replicas[w];

        r->first = reduction_tree_first(parts, m->base.workers, w) * size;
        r->count = reduction_tree_first(parts, m->base.workers, w + 1) * size - r->first;
    }
}

static int mirrored_train(struct strategy *s, struct micro_shards *shards, const struct batch *batch, uint64_t seed,
                          struct score *score)
{
    struct mirrored *m = (struct mirrored *)s;
    int whole = 1;

    m->replicas[0].shards = shards;
    share_batch(m, batch->count);
    m->batch = batch;
    m->seed = seed;
    atomic_store(&m->left, 0);
    team_run(m->team, train_part, look, m);
    *score = (struct score){ 0 };
    for (int w = 0; w < s->workers; w++) {
        score_add(score, &m->replicas[w].score);
        whole &= m->replicas[w].whole;
    }
    return whole;
}

static int mirrored_step_begin(struct strategy *s, int64_t step, struct error *e)
{
    (void)s;
    (void)step;
    (void)e;
    return OK;
}

static void mirrored_ready(struct strategy *s, size_t low)
{
    (void)s;
    (void)low;
}

static void hash_replica(void *context, int w)
{
    struct mirrored *m = context;

    m->replicas[w].hash = exchange_replica_hash(m->replicas[w].network);
}

/* when: "before step 12", "after the last step" */
static int compare_threads(struct mirrored *m, const char *when, struct error *e)
{
    char threads[120] = "";
    size_t used = 0;

    team_run(m->team, hash_replica, NULL, m);
    for (int w = 1; w < m->base.workers && used + 12 < sizeof threads; w++)
        if (m->replicas[w].hash != m->replicas[0].hash)
            used += (size_t)snprintf(threads + used, sizeof threads - used, "%s%d", used ? ", " : "", w);
    if (!used)
        return OK;
    return error_set(e, ERR_CORRUPT, "replicas differ %s: the weights of thread %s are not those of thread 0", when,
                     threads);
}

/* An update of any slice reads more of the sum than that: its norm, or whole rows of a table. */
static int needs_whole_sum(const struct mirrored *m)
{
    return optimizer_options_of(m->base.optimizer)->clip_norm > 0 || !optimizer_cuts_rows(m->base.optimizer);
}

/* Adds slice w of everything but the weight, which is already there for shared weights to be updated with. */
static void add_slice(void *context, int w)
{
    struct mirrored *m = context;
    const struct strategy *s = &m->base;
    real *sum = m->vectors[0];
    const struct extent x = slice_extent((struct extent){ 0, m->total - 1 }, s->workers, w);

    mirrored_phase(m, w, PHASE_REDUCING);
    reduction_sum(&s->reduction, sum, (const real *const *)m->vectors, x.from, x.to);
    if (m->shared && !needs_whole_sum(m)) {
        mirrored_phase(m, w, PHASE_UPDATING);
        optimizer_apply(s->optimizer, s->global_step, sum, x.from, x.to);
    }
    mirrored_phase(m, w, PHASE_WAITING);
}

static void apply_slice(void *context, int w)
{
    struct mirrored *m = context;
    const struct strategy *s = &m->base;
    const struct extent x = slice_extent((struct extent){ 0, m->total - 1 }, s->workers, w);

    mirrored_phase(m, w, PHASE_UPDATING);
    optimizer_apply(s->optimizer, s->global_step, m->vectors[0], x.from, x.to);
    mirrored_phase(m, w, PHASE_WAITING);
}

static void apply_sum(void *context, int w)
{
    struct mirrored *m = context;
    struct optimizer *o = m->replicas[w].optimizer;
    const real *sum = m->vectors[0];

    mirrored_phase(m, w, PHASE_UPDATING);
    optimizer_measure(o, m->base.global_step, sum);
    optimizer_apply(o, m->base.global_step, sum, 0, m->total);
    mirrored_phase(m, w, PHASE_WAITING);
}

/* Makes thread w's own update of everything, adding as it goes. */
static void add_and_apply(void *context, int w)
{
    struct mirrored *m = context;
    struct replica *r = &m->replicas[w];
    const struct reduction *all = &m->base.reduction;
    const size_t end = m->total - 1;

    mirrored_phase(m, w, PHASE_UPDATING);
    for (size_t from = 0, count; from < end; from += count) {
        count = end - from < BLOCK ? end - from : BLOCK;
        for (int v = 0; v < all->count; v++)
            r->parts[v] = m->vectors[v] + from;
        reduction_sum(all, r->sum, r->parts, 0, count);
        optimizer_apply_to(r->optimizer, m->base.global_step, r->sum, m->vectors[0][end], from, from + count, NULL);
    }
    mirrored_phase(m, w, PHASE_WAITING);
}

/* Makes the update from all threads' exchange vectors. */
static void update(struct mirrored *m)
{
    struct strategy *s = &m->base;

    reduction_sum(&s->reduction, m->vectors[0], (const real *const *)m->vectors, m->total - 1, m->total);
    strategy_changes(s);
    if (!m->shared && !needs_whole_sum(m)) {
        team_run(m->team, add_and_apply, NULL, m);
        return;
    }
    team_run(m->team, add_slice, NULL, m);
    if (!m->shared) {
        team_run(m->team, apply_sum, NULL, m);
    } else if (needs_whole_sum(m)) {
        mirrored_phase(m, 0, PHASE_UPDATING);
        optimizer_measure(s->optimizer, s->global_step, m->vectors[0]);
        team_run(m->team, apply_slice, NULL, m);
    }
}

static int mirrored_step_end(struct strategy *s, struct tally *tally, struct error *e)
{
    struct mirrored *m = (struct mirrored *)s;
    const struct tally_part all = { .score = tally->score, .flags = tally->flags };
    char when[40];
    int rc;

    snprintf(when, sizeof when, "before step %lld", (long long)s->global_step);
    if (!m->shared && s->options.check_every > 0 && s->global_step % s->options.check_every == 0 &&
        (rc = compare_threads(m, when, e)) < 0)
        return rc;
    *tally = tally_sum(&all, 1, s->global_step, s->options.max_steps);
    if (tally->flags & TALLY_LEFT)
        return OK;
    update(m);
    s->global_step = tally->global_step;
    return OK;
}

static int mirrored_collect(struct strategy *s, int last, int64_t *step, struct error *e)
{
    (void)last;
    (void)e;
    *step = s->global_step; /* the first thread's state is the rank's */
    return OK;
}

static int mirrored_finish(struct strategy *s, struct error *e)
{
    struct mirrored *m = (struct mirrored *)s;

    return m->shared ? OK : compare_threads(m, "after the last step", e);
}

static void mirrored_report(const struct strategy *s, struct strategy_report *r)
{
    const struct mirrored *m = (const struct mirrored *)s;

    *r = (struct strategy_report){ .transport = "threads", .gradient_norm = optimizer_gradient_norm(s->optimizer) };
    for (int w = 0; w < s->workers; w++)
        r->copies += (int64_t)m->replicas[w].copies;
}

/* ---- start and end ----------------------------------------------------------------------------------------------- */

/* What thread w computes with. Its exchange vectors are those of its nodes, the last of which is its network's. */
static int make_shards(struct mirrored *m, int w)
{
    const struct reduction *all = &m->base.reduction;
    struct replica *r = &m->replicas[w];
    const int count = all->micro_shards ? reduction_vectors(all, w) : 0;
    struct tree_node nodes[REDUCTION_TREE_NODES_MAX];

    for (int k = 0; k < count; k++)
        nodes[k] = all->nodes[all->first[w] + k];
    r->rc = micro_shards_new(&r->shards, r->network, nodes, count, &r->error);
    if (r->rc == OK)
        micro_shards_set_vectors(r->shards, m->vectors + all->first[w]);
    return r->rc;
}

/* In the thread that will use it: oneDNN keeps memory for what a thread has made. */
static void make_replica(void *context, int w)
{
    struct mirrored *m = context;
    struct strategy *s = &m->base;
    struct replica *r = &m->replicas[w];

    r->sum = m->shared ? NULL : reals_new(BLOCK);
    r->parts = calloc((size_t)s->reduction.count, sizeof *r->parts);
    if ((!m->shared && !r->sum) || !r->parts)
        r->rc = error_memory(&r->error, NULL, "for the sums of thread %d", w);
    if (w == 0 || r->rc < 0)
        return;
    r->rc = network_new(&r->network, network_model(s->network), s->options.unit, &r->error);
    if (r->rc == OK)
        m->vectors[s->reduction.first[w + 1] - 1] = network_exchange(r->network);
    if (r->rc < 0 || make_shards(m, w) < 0)
        return;
    network_set_leave(r->network, left_by_another, &m->left);
    if (m->shared) {
        network_share(r->network, s->network);
        return;
    }
    r->rc = optimizer_new(&r->optimizer, r->network, optimizer_options_of(s->optimizer), &r->error);
    if (r->rc == OK)
        r->copies = optimizer_copy(r->optimizer, s->optimizer);
}

static void free_replica(void *context, int w)
{
    struct mirrored *m = context;
    struct replica *r = &m->replicas[w];

    free(r->sum);
    free(r->parts);
    if (w == 0)
        return;
    optimizer_free(r->optimizer);
    micro_shards_free(r->shards);
    network_free(r->network);
}

static void mirrored_release(struct strategy *s)
{
    struct mirrored *m = (struct mirrored *)s;

    if (m->team)
        team_run(m->team, free_replica, NULL, m);
    team_free(m->team);
    for (int w = 0; m->vectors && w < s->workers; w++)
        for (int v = s->reduction.first[w]; v < s->reduction.first[w + 1] - 1; v++)
            free(m->vectors[v]);
    free(m->vectors);
    free(m->replicas);
    free(m);
}

static const struct strategy_operations operations = {
    .train = mirrored_train,
    .step_begin = mirrored_step_begin,
    .ready = mirrored_ready,
    .step_end = mirrored_step_end,
    .collect = mirrored_collect,
    .finish = mirrored_finish,
    .report = mirrored_report,
    .free = mirrored_release,
};

static int make_replicas(struct mirrored *m, struct error *e)
{
    int rc = team_new(&m->team, m->base.workers, e);

    if (rc < 0)
        return rc;
    team_run(m->team, make_replica, NULL, m);
    for (int w = 0; w < m->base.workers && rc == OK; w++)
        if (m->replicas[w].rc < 0)
            rc = error_copy(e, &m->replicas[w].error);
    return rc;
}

/* Those of nodes whose sum is not in a network's own vector. 0: no memory. */
static int make_vectors(struct mirrored *m)
{
    const struct reduction *all = &m->base.reduction;

    for (int w = 0; w < all->workers; w++)
        for (int v = all->first[w]; v < all->first[w + 1] - 1; v++)
            if (!(m->vectors[v] = reals_new(m->total)))
                return 0;
    return 1;
}

static int mirrored_start(struct strategy **out, const struct strategy *common, struct error *e)
{
    struct mirrored *m = calloc(1, sizeof *m);
    int rc = OK;

    if (m) {
        m->base = *common;
        m->base.operations = &operations;
        m->base.holds_state = 1;
        m->total = network_exchange_count(common->network);
        m->shared = !strcmp(mirrored_own(&common->options)->weights, "shared");
        m->replicas = calloc((size_t)common->workers, sizeof *m->replicas);
        m->vectors = calloc((size_t)common->reduction.count, sizeof *m->vectors);
    }
    if (!m || !m->replicas || !m->vectors || !make_vectors(m))
        rc = error_memory(e, NULL, "for %d replicas", common->workers);
    if (rc == OK) {
        m->replicas[0] = (struct replica){ .network = common->network, .optimizer = common->optimizer };
        m->vectors[m->base.reduction.first[1] - 1] = network_exchange(common->network);
        m->base.vectors = m->vectors;
        rc = make_replicas(m, e);
    }
    if (rc < 0) {
        if (m)
            mirrored_release(&m->base);
        return rc;
    }
    *out = &m->base;
    return OK;
}

static size_t mirrored_rows(struct option *rows, void *own)
{
    struct mirrored_options *o = own;

    o->weights = "copied";
    rows[0] = (struct option){ OPTION_CHOICE,
                               .name = "weights",
                               .value = &o->weights,
                               .argument = "HOW",
                               .choices = "copied|shared",
                               .help = "Give each thread of --run-option mirrored a copy of the weights and an "
                                       "optimizer (copied, the default), or let all threads read one set of weights "
                                       "(shared). The results are the same, bit for bit." };
    return 1;
}

static int mirrored_workers(const struct strategy_options *o, int ranks, struct error *e)
{
    if (ranks > 1)
        return error_set(e, ERR_ARG,
                         "--run-option mirrored trains in threads of one rank, but %d ranks were started; use mpi or "
                         "ps, or start it without mpirun",
                         ranks);
    if (o->threads == 0)
        return error_set(e, ERR_ARG, "--run-option mirrored needs --threads N, the number of workers");
    return o->threads;
}

static void mirrored_describe(const struct strategy_options *o, int ranks, char *text, size_t size)
{
    const struct mirrored_options *own = mirrored_own(o);

    (void)ranks;
    snprintf(text, size, "%d thread%s, %s weights", o->threads, o->threads == 1 ? "" : "s", own->weights);
}

const struct strategy_kind strategy_mirrored = {
    .name = "mirrored",
    .help = "in threads of one rank, started without mpirun, that share or copy the weights",
    .threads = 1,
    .options = mirrored_rows,
    .workers = mirrored_workers,
    .describe = mirrored_describe,
    .start = mirrored_start,
};
