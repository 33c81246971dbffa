/* A batch in parts: the bits of the parts' vectors added by hand in the tree, and what the sink is told. */
#include "trainer/collective/micro_shards.h"

#include "base/random.h"
#include "tests/check.h"
#include "tests/model/images_batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGE = 28 * 28, BATCH = 24 };

struct scene {
    struct network *network;
    struct batch batch;
    size_t total;
    real images[BATCH * IMAGE];
    int32_t labels[BATCH];
    float weights[BATCH];
    int64_t samples[BATCH];
};

static struct network *new_network(int max_batch)
{
    struct network *n = NULL;
    struct error e = { 0 };

    if (network_new(&n, model_find("lenet"), max_batch, &e) < 0)
        fail_msg("%s", e.message);
    network_initialize(n, 3);
    return n;
}

static struct scene *new_scene(int parts)
{
    struct scene *s = calloc(1, sizeof *s);
    struct random r;

    assert_non_null(s);
    s->network = new_network(BATCH / parts);
    s->total = network_exchange_count(s->network);
    random_init(&r, 1, RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < BATCH * IMAGE; i++)
        s->images[i] = (real)random_uniform(&r);
    for (int i = 0; i < BATCH; i++) {
        s->labels[i] = (int32_t)random_below(&r, 10);
        s->weights[i] = (float)(1 + i % 3);
        s->samples[i] = 1000 + 7 * i;
    }
    s->batch = images_batch(model_find("lenet"), s->images, s->labels, s->samples, BATCH);
    s->batch.fields[FIELD_WEIGHTS] = (struct field){ s->weights, ELEMENT_FLOAT32, 1, { BATCH } };
    s->batch.field_count = 3;
    s->batch.step = 5;
    return s;
}

static void free_scene(struct scene *s)
{
    network_free(s->network);
    free(s);
}

/* The vector of parts [first, first + count): of one, or of the largest whole tree on the left + the rest. */
static real *by_hand(struct scene *s, int parts, int first, int count, struct score *score)
{
    const int size = BATCH / parts;
    real *sum = calloc(s->total, sizeof *sum);

    assert_non_null(sum);
    if (count == 1) {
        struct batch part = images_batch(model_find("lenet"), s->images + (size_t)first * (size_t)size * IMAGE,
                                         s->labels + first * size, s->samples + first * size, size);
        struct score of_part;

        part.fields[FIELD_WEIGHTS] = (struct field){ s->weights + first * size, ELEMENT_FLOAT32, 1, { size } };
        part.field_count = 3;
        assert_true(network_train(s->network, at_step(&part, 5), 9, NULL, &of_part));
        memcpy(sum, network_exchange(s->network), s->total * sizeof *sum);
        of_part.loss = nearbyint(of_part.loss * 0x1p32) * 0x1p-32; /* as the header says */
        score_add(score, &of_part);
    } else {
        int left = 1;

        while (2 * left < count)
            left *= 2;
        real *a = by_hand(s, parts, first, left, score), *b = by_hand(s, parts, first + left, count - left, score);
        for (size_t i = 0; i < s->total; i++)
            sum[i] = a[i] + b[i];
        free(a);
        free(b);
    }
    return sum;
}

struct told {
    const real *vector;
    real *seen;
    size_t low, calls;
};

static void tell(void *context, size_t low)
{
    struct told *t = context;

    assert_true(low < t->low);
    memcpy(t->seen + low, t->vector + low, (t->low - low) * sizeof *t->seen);
    t->low = low;
    t->calls++;
}

/* What trains the nodes' parts, in so many threads of a team; 0: without one. */
static struct micro_shards *new_shards(struct scene *s, const struct tree_node *nodes, int count, struct team *team,
                                       int threads)
{
    struct micro_shards *m = NULL;
    struct error e = { 0 };

    if (micro_shards_new(&m, s->network, nodes, count, &e) < 0 ||
        (threads && micro_shards_use_threads(m, team, threads, &e) < 0))
        fail_msg("%s", e.message);
    return m;
}

static struct team *new_team(int threads)
{
    struct team *team = NULL;

    if (threads)
        assert_int_equal(team_new(&team, threads, NULL), OK);
    return team;
}

static void check(int parts, int threads)
{
    struct scene *s = new_scene(parts);
    struct score wanted_score = { 0 }, score;
    real *wanted = by_hand(s, parts, 0, parts, &wanted_score), *vector = calloc(s->total, sizeof *vector);
    struct told t = { vector, calloc(s->total, sizeof *t.seen), s->total, 0 };
    const struct gradient_sink sink = { .dense = tell, .context = &t };
    struct team *team = new_team(threads);
    struct micro_shards *m;

    assert_true(vector && t.seen);
    network_set_exchange(s->network, vector);
    m = new_shards(s, &(struct tree_node){ 0, parts }, 1, team, threads);
    for (int again = 0; again < 2; again++) { /* a step leaves nothing behind for the next one */
        t.low = s->total;
        assert_true(micro_shards_train(m, &s->batch, 9, &sink, &score));
        assert_ptr_equal(network_exchange(s->network), vector);
        assert_memory_equal(vector, wanted, s->total * sizeof *wanted);
        assert_memory_equal(t.seen, wanted, s->total * sizeof *wanted); /* final when it was said to be */
        assert_int_equal(t.low, 0);
        assert_memory_equal(&score, &wanted_score, sizeof score);
    }
    assert_true(threads ? t.calls >= 1 : t.calls > 4);
    assert_true(micro_shards_train(m, &s->batch, 9, NULL, &score));
    assert_memory_equal(vector, wanted, s->total * sizeof *wanted);
    micro_shards_free(m);
    team_free(team);
    free(wanted);
    free(vector);
    free(t.seen);
    free_scene(s);
}

static void parts_are_added(void **state)
{
    (void)state;
    for (int parts = 1; parts <= BATCH; parts++)
        if (BATCH % parts == 0)
            check(parts, 0);
}

/* In threads: the same bits, and what the sink is told is final. */
static void threads_share_parts(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads++)
        for (int parts = 2; parts <= 8; parts += parts < 4 ? 1 : 4)
            check(parts, threads);
}

/* Parts [from, to) of a step of `leaves` are a worker's batch: a vector for each node, all final when said to be. */
static void check_nodes(int leaves, int from, int to, int threads)
{
    struct scene *s = new_scene(to - from);
    struct score wanted_score = { 0 }, score;
    struct tree_node nodes[REDUCTION_TREE_NODES_MAX];
    real *vectors[BATCH], *wanted[BATCH];
    struct told t = { NULL, calloc(s->total, sizeof *t.seen), s->total, 0 };
    const struct gradient_sink sink = { .dense = tell, .context = &t };
    const int count = reduction_tree_nodes(leaves, from, to, nodes);
    struct team *team = new_team(threads);
    struct micro_shards *m;

    for (int k = 0; k < count; k++) {
        vectors[k] = reals_new(s->total);
        wanted[k] = by_hand(s, to - from, nodes[k].first - from, nodes[k].count, &wanted_score);
    }
    t.vector = vectors[count - 1];
    network_set_exchange(s->network, vectors[count - 1]);
    m = new_shards(s, nodes, count, team, threads);
    micro_shards_set_vectors(m, vectors);
    for (int again = 0; again < 2; again++) {
        t.low = s->total;
        assert_true(micro_shards_train(m, &s->batch, 9, &sink, &score));
        assert_ptr_equal(network_exchange(s->network), vectors[count - 1]);
        for (int k = 0; k < count; k++)
            assert_memory_equal(vectors[k], wanted[k], s->total * sizeof *wanted[k]);
        assert_memory_equal(t.seen, wanted[count - 1], s->total * sizeof *t.seen);
        assert_int_equal(t.low, 0);
        assert_memory_equal(&score, &wanted_score, sizeof score);
    }
    micro_shards_free(m);
    team_free(team);
    for (int k = 0; k < count; k++) {
        free(vectors[k]);
        free(wanted[k]);
    }
    free(t.seen);
    free_scene(s);
}

static void nodes_are_handed_on(void **state)
{
    (void)state;
    for (int threads = 0; threads <= 3; threads++) {
        check_nodes(16, 5, 11, threads);  /* 5, 6 to 7, 8 to 9, 10 */
        check_nodes(16, 10, 16, threads); /* 10 to 11, 12 to 15 */
        check_nodes(8, 2, 5, threads);    /* 2 to 3, 4: the last node is one part */
        check_nodes(11, 6, 9, threads);   /* 6 to 7, 8 */
        check_nodes(8, 3, 5, threads);    /* 3, 4: no node of two */
        check_nodes(8, 4, 8, threads);
    }
}

static int leave_now(void *context)
{
    return --*(int *)context < 0;
}

/* A step may be left in any part; the next one is whole. */
static void check_left(int threads)
{
    struct scene *s = new_scene(3);
    struct score score;
    struct team *team = new_team(threads);
    struct micro_shards *m;
    real *wanted = by_hand(s, 3, 0, 3, &score), *before = network_exchange(s->network);
    int patience, left = 0, done = 0;

    m = new_shards(s, &(struct tree_node){ 0, 3 }, 1, team, threads);
    for (int at = 0; !done; at++, left += !done) {
        patience = at;
        network_set_leave(s->network, leave_now, &patience);
        done = micro_shards_train(m, &s->batch, 9, NULL, &score);
        assert_ptr_equal(network_exchange(s->network), before);
    }
    assert_true(left >= (threads > 1 ? 1 : 3)); /* the first of two threads has one part */
    assert_memory_equal(before, wanted, s->total * sizeof *wanted);
    micro_shards_free(m);
    team_free(team);
    free(wanted);
    free_scene(s);
}

static void step_is_left(void **state)
{
    (void)state;
    for (int threads = 0; threads <= 3; threads++)
        check_left(threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_added),
        cmocka_unit_test(threads_share_parts),
        cmocka_unit_test(nodes_are_handed_on),
        cmocka_unit_test(step_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
