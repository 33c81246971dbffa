/*
 * words.h - ranks that are threads train a small model with two tables, one of which has a row that no batch uses, by
 * any strategy.
 */
#ifndef TESTS_TRAINER_WORDS_H
#define TESTS_TRAINER_WORDS_H

#include "base/random.h"
#include "model/network.h"
#include "model/network_builder.h"
#include "tests/check.h"
#include "tests/trainer/kinds.h"
#include "tests/trainer/threads.h"
#include "trainer/collective/exchange.h"
#include "trainer/collective/traffic.h"
#include "trainer/strategies/strategy.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 41, WORDS_FEW = 13, WORDS_LENGTH = 4, WORDS_GLOBAL = 16, WORDS_RANKS_MAX = 12, WORDS_NEVER = -1 };
enum { WORDS_UNUSED = WORDS - 1 };

static const struct kernel_options words_plain = { INITIAL_NORMAL, 0.5, 0 };

/* Dense variables before, between and after the tables. */
static int words_build(struct network_builder *b, struct error *e)
{
    const int in = network_builder_images(b);
    int x = network_builder_embedding(b, in, "table", WORDS, 3, &words_plain), y;

    (void)e;
    x = network_builder_convolution(b, x, "kernel", 5, window_same(3, 1), &words_plain);
    y = network_builder_embedding(b, in, "few", WORDS_FEW, 5, &words_plain);
    x = network_builder_add(b, x, y);
    network_builder_cross_entropy(b, network_builder_dense(b, x, "finish", 3, &words_plain));
    return OK;
}

static const struct model words_model = {
    .name = "words",
    .height = 1,
    .width = WORDS_LENGTH,
    .channels = 1,
    .classes = 3,
    .integers = 1,
    .build = words_build,
};

struct words_scene {
    const struct model *model;
    const char *strategy, *reduce;
    enum optimizer_kind optimizer;
    const char *partitions; /* NULL: the default */
    const char *sparse;     /* --sparse-exchange; NULL: the default */
    int workers, servers, micro_shards;
    int64_t steps;
    int async;
    int leave_early;       /* without a batch, so without fetching anything */
    int leave_at, save_at; /* worker 1 leaves this step; worker 0 saves after so many; WORDS_NEVER */
    size_t bucket_bytes;
    double clip_norm;
    int foresees_end;  /* workers ask for the rows of the step after the last one, too */
    const char *hosts; /* a letter for each rank: its host; NULL: all are on one */
};

struct words_actor {
    const struct words_scene *scene;
    struct thread_post *post;
    int rank, rc;
    pthread_t thread;
    struct world *world;
    struct network *network;
    struct optimizer *optimizer;
    struct micro_shards *shards;
    struct strategy *strategy;
    struct error error;
    int64_t last_step;
    struct traffic traffic;
    int32_t tokens[2][WORDS_GLOBAL * WORDS_LENGTH], labels[2][WORDS_GLOBAL]; /* of even and odd steps */
    int64_t samples[2][WORDS_GLOBAL];
};

static inline struct strategy_options words_options(const struct words_scene *s)
{
    const struct kind_setting settings[] = {
        { "servers", NULL, s->servers },
        { "partitions", s->partitions, 0 },
        { "sparse-reduce", s->reduce, 0 },
        { "transport", s->hosts ? "mpi" : "auto", 0 },
        { "async", NULL, s->async },
        { "sparse-exchange", s->sparse ? s->sparse : "dense", 0 },
        { .name = NULL },
    };
    struct strategy_options o = { .kind = kind_of(s->strategy),
                                  .synchronous = 1,
                                  .batch_size = WORDS_GLOBAL,
                                  .max_steps = s->steps,
                                  .bucket_bytes = s->bucket_bytes,
                                  .check_every = 2,
                                  .micro_shards = s->micro_shards };

    kind_set(&o, settings);
    return o;
}

/* The part of this worker of the step's samples; most tokens are small ones, and none is WORDS_UNUSED. */
static inline struct batch words_batch(struct words_actor *a, int64_t step)
{
    const struct words_scene *s = a->scene;
    const int n = s->workers, w = a->rank, shards = s->micro_shards;
    const int first = shards ? reduction_tree_first(shards, n, w) * (WORDS_GLOBAL / shards) : w * WORDS_GLOBAL / n;
    const int end = shards ? reduction_tree_first(shards, n, w + 1) * (WORDS_GLOBAL / shards)
                           : (w + 1) * WORDS_GLOBAL / n;
    int32_t *const tokens = a->tokens[step % 2], *const labels = a->labels[step % 2];
    struct batch b = { .step = step, .count = WORDS_GLOBAL, .samples = a->samples[step % 2], .field_count = 2 };
    struct random r;

    for (int i = 0; i < WORDS_GLOBAL; i++) {
        random_init(&r, 3, RANDOM_TEST, (uint64_t)step, (uint64_t)i);
        a->samples[step % 2][i] = step * WORDS_GLOBAL + i;
        labels[i] = (int32_t)random_below(&r, 3);
        for (int k = 0; k < WORDS_LENGTH; k++) {
            const uint64_t most = 1 + random_below(&r, WORDS_UNUSED);

            tokens[i * WORDS_LENGTH + k] = (int32_t)random_below(&r, most);
        }
    }
    b.fields[FIELD_INPUT] = (struct field){ tokens, ELEMENT_INT32, 4, { WORDS_GLOBAL, 1, WORDS_LENGTH, 1 } };
    b.fields[FIELD_LABELS] = (struct field){ labels, ELEMENT_INT32, 1, { WORDS_GLOBAL } };
    return batch_part(&b, first, end - first);
}

static inline int words_step(struct words_actor *a, struct tally *tally)
{
    struct strategy *s = a->strategy;
    const int64_t step = s->global_step;
    const struct batch batch = words_batch(a, step), next = words_batch(a, step + 1);
    const int leaves = a->rank == 1 && step == a->scene->leave_at, early = leaves && a->scene->leave_early;
    struct score score = { 0 };
    int rc;

    if ((rc = s->operations->step_begin(s, step, &a->error)) < 0 ||
        (s->operations->fetch && !early && (rc = s->operations->fetch(s, &batch, &a->error)) < 0))
        return rc;
    if (!early)
        micro_shards_train(a->shards, &batch, 1, NULL, &score);
    *tally = (struct tally){ .score = score };
    if (leaves)
        tally->flags = TALLY_LEFT | TALLY_TERM;
    /* Some know their next batch by then, and others do not. */
    if (s->operations->foresee && (step + a->rank) % 3 && (step + 1 < a->scene->steps || a->scene->foresees_end))
        s->operations->foresee(s, &next);
    return s->operations->step_end(s, tally, &a->error);
}

static inline int words_train(struct words_actor *a)
{
    struct strategy *s = a->strategy;
    int rc = OK;

    for (int more = s->more; more && rc == OK;) {
        struct tally tally;

        if ((rc = words_step(a, &tally)) < 0)
            return rc;
        more = tally.more;
        if (a->rank == 0 && tally.global_step == a->scene->save_at)
            rc = s->operations->collect(s, 0, &a->last_step, &a->error);
    }
    if (rc == OK && a->rank == 0)
        rc = s->operations->collect(s, 1, &a->last_step, &a->error);
    return rc < 0 ? rc : s->operations->finish(s, &a->error);
}

static inline int words_make(struct words_actor *a)
{
    const struct words_scene *s = a->scene;
    const struct optimizer_options how = {
        .kind = s->optimizer, .learning_rate = 0.1, .momentum = 0.9, .moving_average = 0.99, .clip_norm = s->clip_norm
    };
    const int worker = a->rank < s->workers;
    const int unit = !worker ? 0 : s->micro_shards ? WORDS_GLOBAL / s->micro_shards : WORDS_GLOBAL;
    struct tree_node nodes[REDUCTION_TREE_NODES_MAX];
    int count = 0, rc;

    if (s->micro_shards && worker)
        count = reduction_tree_nodes(s->micro_shards, reduction_tree_first(s->micro_shards, s->workers, a->rank),
                                     reduction_tree_first(s->micro_shards, s->workers, a->rank + 1), nodes);
    if ((rc = network_new(&a->network, s->model, unit, &a->error)) < 0)
        return rc;
    network_initialize(a->network, 7);
    if ((rc = optimizer_new(&a->optimizer, a->network, &how, &a->error)) < 0)
        return rc;
    return worker ? micro_shards_new(&a->shards, a->network, nodes, count, &a->error) : OK;
}

/* Ranks are threads of one host: says otherwise before a strategy looks. */
static inline void words_move(struct words_actor *a)
{
    struct process *places = (struct process *)(uintptr_t)world_places(a->world);

    for (int r = 0; a->scene->hosts && r < world_size(a->world); r++) {
        places[r].host[0] = a->scene->hosts[r];
        places[r].host[1] = '\0';
    }
}

static inline void *words_live(void *context)
{
    static const volatile int no_signal;
    struct words_actor *a = context;
    const struct strategy_options options = words_options(a->scene);

    a->rc = world_over(&a->world, thread_participant(a->post, a->rank), 60, &a->error);
    if (a->rc == OK) {
        words_move(a);
        a->rc = words_make(a);
    }
    if (a->rc == OK)
        a->rc = strategy_start(&a->strategy, a->world, &options, a->optimizer, 1, &a->error);
    if (a->rc == OK && a->shards)
        a->rc = strategy_attach(a->strategy, a->shards, &a->error);
    if (a->rc == OK)
        a->rc = a->shards ? words_train(a) : a->strategy->operations->serve(a->strategy, &no_signal, &a->error);
    if (a->rc == OK)
        a->rc = traffic_gather(&a->traffic, a->world, a->scene->workers, "count", &a->error);
    return NULL;
}

static inline void words_play(const struct words_scene *s, struct words_actor *actors)
{
    const int ranks = s->workers + s->servers;
    struct thread_post *post = thread_post_new(ranks);

    for (int r = 0; r < ranks; r++) {
        memset(&actors[r], 0, sizeof actors[r]);
        actors[r].scene = s;
        actors[r].post = post;
        actors[r].rank = r;
        assert_int_equal(pthread_create(&actors[r].thread, NULL, words_live, &actors[r]), 0);
    }
    for (int r = 0; r < ranks; r++)
        pthread_join(actors[r].thread, NULL);
    for (int r = 0; r < ranks; r++)
        if (actors[r].rc != OK)
            fail_msg("rank %d of %s: %s", r, s->strategy, actors[r].error.message);
}

/* Continues hash with all arrays of the optimizer: weights and what it keeps beside them. */
static inline uint64_t words_hash(struct optimizer *o, uint64_t hash)
{
    for (int k = 0; k < ARRAY_KINDS; k++) {
        const struct optimizer_array a = optimizer_array(o, (enum optimizer_array_kind)k);

        hash = exchange_hash(a.values, a.count * sizeof *a.values, hash);
    }
    return hash;
}

static inline void words_leave(const struct words_scene *s, struct words_actor *actors)
{
    struct thread_post *post = actors[0].post;

    for (int r = 0; r < s->workers + s->servers; r++) {
        traffic_release(&actors[r].traffic);
        strategy_free(actors[r].strategy);
        micro_shards_free(actors[r].shards);
        world_close(actors[r].world);
        optimizer_free(actors[r].optimizer);
        network_free(actors[r].network);
    }
    thread_post_free(post);
}

#endif
