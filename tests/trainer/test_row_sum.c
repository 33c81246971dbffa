/* Sums of rows: the bits of the same sums as dense vectors, of parts by hand and of a network's micro-shards. */
#include "trainer/collective/row_sum.h"

#include "base/random.h"
#include "model/network.h"
#include "model/network_builder.h"
#include "tests/check.h"
#include "trainer/collective/micro_shards.h"
#include "trainer/collective/reduction.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 40, PARTS_MAX = 16 };

struct part {
    int32_t rows[ROWS];
    real *values, *dense;
};

/* A third of the rows; some have a sum of 0, none is -0. */
static struct row_gradient make_part(struct part *p, size_t width, uint64_t seed)
{
    struct row_gradient g = { 3, 0, width, p->rows, NULL };
    struct random r;

    random_init(&r, seed, RANDOM_TEST, 0, 0);
    p->values = reals_new(ROWS * width);
    p->dense = reals_new(ROWS * width);
    for (int32_t row = 0; row < ROWS; row++) {
        if (random_below(&r, 3))
            continue;
        for (size_t k = 0; k < width; k++)
            p->values[g.count * width + k] = random_below(&r, 5) ? (real)random_normal(&r) : 0;
        memcpy(p->dense + (size_t)row * width, p->values + g.count * width, width * sizeof *p->dense);
        p->rows[g.count++] = row;
    }
    g.values = p->values;
    return g;
}

/* parts are those of `workers` workers of a step of `leaves` micro-shards; 0: one each. */
static void check(int workers, int leaves, size_t width)
{
    struct part parts[PARTS_MAX] = { 0 };
    struct row_gradient list[PARTS_MAX];
    const real *vectors[PARTS_MAX];
    struct reduction all;
    struct row_sum s;
    real *sum = reals_new(ROWS * width), *got = reals_new(ROWS * width);
    int used[ROWS] = { 0 };
    size_t rows = 0;

    assert_int_equal(reduction_init(&all, workers, leaves, NULL), OK);
    assert_true(all.count <= PARTS_MAX);
    for (int k = 0; k < all.count; k++) {
        list[k] = make_part(&parts[k], width, 100 * (uint64_t)workers + (uint64_t)k);
        vectors[k] = parts[k].dense;
        for (size_t i = 0; i < list[k].count; i++)
            used[list[k].rows[i]] = 1;
    }
    reduction_sum(&all, sum, vectors, 0, ROWS * width);
    assert_int_equal(row_sum_init(&s, 3, width, ROWS, (size_t)all.count, NULL), OK);
    for (int again = 0; again < 2; again++) {
        row_sum_add(&s, list, all.nodes, all.count);
        memset(got, 0, ROWS * width * sizeof *got);
        rows = 0;
        for (size_t i = 0; i < s.sum.count; i++) {
            const int32_t row = s.sum.rows[i];

            assert_true(used[row] && (i == 0 || row > s.sum.rows[i - 1]));
            memcpy(got + (size_t)row * width, s.sum.values + i * width, width * sizeof *got);
        }
        for (int row = 0; row < ROWS; row++)
            rows += (size_t)used[row];
        assert_int_equal(s.sum.count, rows);
        assert_memory_equal(got, sum, ROWS * width * sizeof *got);
    }
    row_sum_add(&s, list, NULL, 0);
    assert_int_equal(s.sum.count, 0);
    row_sum_release(&s);
    for (int k = 0; k < all.count; k++) {
        free(parts[k].values);
        free(parts[k].dense);
    }
    reduction_release(&all);
    free(sum);
    free(got);
}

static void as_dense(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 8; workers++) {
        check(workers, 0, 5);
        check(workers, 8, 5);
        check(workers, 11, 1);
    }
    check(3, 16, 700); /* longer than a block */
}

/* ---- a network --------------------------------------------------------------------------------------------------- */

enum { VOCABULARY = 50, WIDTH = 3, WORDS = 4, LEAVES = 12, UNIT = 2, SAMPLES = LEAVES * UNIT };

static int build(struct network_builder *b, struct error *e)
{
    static const struct kernel_options plain = { INITIAL_NORMAL, 0.5, 0 };
    int x = network_builder_embedding(b, network_builder_images(b), "table", VOCABULARY, WIDTH, &plain);

    (void)e;
    network_builder_cross_entropy(b, network_builder_dense(b, x, "finish", 3, &plain));
    return OK;
}

static const struct model words = {
    .name = "words", .height = 1, .width = WORDS, .channels = 1, .classes = 3, .integers = 1, .build = build
};

struct text {
    int32_t tokens[SAMPLES * WORDS], labels[SAMPLES];
    int64_t samples[SAMPLES];
    struct batch batch;
};

static void write_text(struct text *t)
{
    struct random r;

    random_init(&r, 7, RANDOM_TEST, 0, 0);
    for (int i = 0; i < SAMPLES * WORDS; i++)
        t->tokens[i] = (int32_t)(random_below(&r, VOCABULARY) * random_below(&r, VOCABULARY) / VOCABULARY);
    for (int i = 0; i < SAMPLES; i++) {
        t->labels[i] = (int32_t)random_below(&r, 3);
        t->samples[i] = i;
    }
    t->batch = (struct batch){ .count = SAMPLES, .field_count = 2, .samples = t->samples };
    t->batch.fields[FIELD_INPUT] = (struct field){ t->tokens, ELEMENT_INT32, 4, { SAMPLES, 1, WORDS, 1 } };
    t->batch.fields[FIELD_LABELS] = (struct field){ t->labels, ELEMENT_INT32, 1, { SAMPLES } };
}

struct reached {
    struct micro_shards *shards;
    int node;
    int told;
};

static void finish(void *context, size_t low)
{
    struct reached *f = context;

    if (low == 0)
        f->told = micro_shards_rows(f->shards, f->node, 0)->count > 0;
}

/* Worker w of n: its nodes with rows are, as vectors, its nodes without. */
static void check_worker(const struct text *t, int w, int n)
{
    const int from = reduction_tree_first(LEAVES, n, w), to = reduction_tree_first(LEAVES, n, w + 1);
    const struct batch batch = batch_part(&t->batch, from * UNIT, (to - from) * UNIT);
    struct tree_node nodes[REDUCTION_TREE_NODES_MAX];
    const int count = reduction_tree_nodes(LEAVES, from, to, nodes);
    struct network *network;
    struct score score[2];
    real *vectors[2][LEAVES];
    size_t total, some = 0;

    assert_int_equal(network_new(&network, &words, UNIT, NULL), OK);
    network_initialize(network, 1);
    total = network_exchange_count(network);
    for (int rows = 0; rows < 2; rows++) {
        struct reached f = { .node = count - 1 };
        const struct gradient_sink sink = { .dense = finish, .context = &f };

        for (int k = 0; k < count; k++)
            vectors[rows][k] = reals_new(total);
        network_set_exchange(network, vectors[rows][count - 1]);
        assert_int_equal(micro_shards_new(&f.shards, network, nodes, count, NULL), OK);
        micro_shards_set_vectors(f.shards, vectors[rows]);
        assert_null(micro_shards_rows(f.shards, 0, 0));
        if (rows)
            assert_int_equal(micro_shards_use_rows(f.shards, NULL), OK);
        for (int again = 0; again <= rows; again++) {
            f.told = 0;
            assert_true(micro_shards_train(f.shards, &batch, 9, rows ? &sink : NULL, &score[rows]));
            assert_int_equal(f.told, rows);
        }
        for (int k = 0; rows && k < count; k++) {
            const struct row_gradient *g = micro_shards_rows(f.shards, k, 0);

            for (size_t i = 0; i < VOCABULARY * WIDTH; i++)
                assert_true(vectors[1][k][i] == 0);
            for (size_t i = 0; i < g->count; i++)
                memcpy(vectors[1][k] + (size_t)g->rows[i] * WIDTH, g->values + i * WIDTH, WIDTH * sizeof(real));
            some += g->count;
        }
        micro_shards_free(f.shards);
    }
    assert_memory_equal(&score[0], &score[1], sizeof *score);
    assert_true(some > 0);
    for (int k = 0; k < count; k++) {
        assert_memory_equal(vectors[0][k], vectors[1][k], total * sizeof(real));
        free(vectors[0][k]);
        free(vectors[1][k]);
    }
    network_free(network);
}

static void of_micro_shards(void **state)
{
    struct text t;

    (void)state;
    write_text(&t);
    for (int n = 1; n <= LEAVES; n++)
        for (int w = 0; w < n; w++)
            check_worker(&t, w, n);
}

/* Without micro-shards the batch's rows are node 0. */
static void of_a_batch(void **state)
{
    struct micro_shards *m;
    struct network *network;
    struct score score;
    struct text t;
    real *dense;

    (void)state;
    write_text(&t);
    assert_int_equal(network_new(&network, &words, SAMPLES, NULL), OK);
    network_initialize(network, 1);
    assert_true(network_train(network, &t.batch, 9, NULL, &score));
    dense = reals_new(VOCABULARY * WIDTH);
    memcpy(dense, network_exchange(network), VOCABULARY * WIDTH * sizeof *dense);
    assert_int_equal(micro_shards_new(&m, network, NULL, 0, NULL), OK);
    assert_int_equal(micro_shards_use_rows(m, NULL), OK);
    assert_true(micro_shards_train(m, &t.batch, 9, NULL, &score));
    for (size_t i = 0; i < micro_shards_rows(m, 0, 0)->count; i++) {
        const struct row_gradient *g = micro_shards_rows(m, 0, 0);
        real *row = dense + (size_t)g->rows[i] * WIDTH;

        assert_memory_equal(row, g->values + i * WIDTH, WIDTH * sizeof *row);
        memset(row, 0, WIDTH * sizeof *row);
    }
    for (size_t i = 0; i < VOCABULARY * WIDTH; i++)
        assert_true(dense[i] == 0);
    assert_null(micro_shards_rows(m, 0, 1)); /* no table */
    micro_shards_free(m);
    network_free(network);
    free(dense);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_dense),
        cmocka_unit_test(of_micro_shards),
        cmocka_unit_test(of_a_batch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
