/* Rules for the gradients of a row, by hand: two workers, three rows, an overlap and a repeat. */
#include "trainer/server/table_server.h"

#include "model/network.h"
#include "model/network_builder.h"
#include "tests/check.h"

#include <string.h>

enum { ROWS = 4, WIDTH = 2, WORKERS = 2 };

static int build(struct network_builder *b, struct error *e)
{
    const struct kernel_options plain = { INITIAL_CONSTANT, 0, 0 };

    (void)e;
    network_builder_cross_entropy(
        b, network_builder_embedding(b, network_builder_images(b), "table", ROWS, WIDTH, &plain));
    return OK;
}

static const struct model model_rows = {
    .name = "rows", .height = 1, .width = 1, .channels = 1, .classes = WIDTH, .integers = 1, .build = build
};

struct stage {
    struct network *network;
    struct optimizer *optimizer;
    struct table_parts parts;
    struct reduction reduction;
    struct table_update *update;
};

static void stage_open(struct stage *s, enum optimizer_kind kind, enum sparse_reduce rule)
{
    const struct optimizer_options options = { .kind = kind, .learning_rate = 1, .momentum = 0.5 };

    assert_int_equal(network_new(&s->network, &model_rows, 0, NULL), OK);
    for (size_t i = 0; i < ROWS * WIDTH; i++)
        network_parameters(s->network)[i] = (real)(10 + i);
    assert_int_equal(optimizer_new(&s->optimizer, s->network, &options, NULL), OK);
    assert_int_equal(table_parts_make(&s->parts, s->network, 1, 1, NULL), OK);
    assert_int_equal(reduction_init(&s->reduction, WORKERS, 0, NULL), OK);
    assert_int_equal(table_update_new(&s->update, s->optimizer, &s->parts, &s->reduction, rule, ROWS, NULL), OK);
}

static void stage_close(struct stage *s)
{
    table_update_free(s->update);
    reduction_release(&s->reduction);
    table_parts_release(&s->parts);
    optimizer_free(s->optimizer);
    network_free(s->network);
}

/*
 * Batches of 2 samples. Worker 0 looks up rows 0, 1, 1: the repeat is added first, so row 1 comes once. Worker 1 looks up
 * rows 1 and 2. Row 3 is in no batch. The sums over the samples, and the workers' means g:
 *            worker 0         g             worker 1         g
 *   row 0    (8, -4)          (4, -2)
 *   row 1    (1, 3)+(3, 1)    (2, 2)        (12, 0)          (6, 0)
 *   row 2                                   (-2, 16)         (-1, 8)
 */
static const int32_t rows_0[] = { 0, 1 }, rows_1[] = { 1, 2 };
static const real values_0[] = { 8, -4, 4, 4 }, values_1[] = { 12, 0, -2, 16 }, weights[] = { 2, 2 };
static const struct row_gradient gradients[] = { { 0, 2, WIDTH, rows_0, values_0 }, { 0, 2, WIDTH, rows_1, values_1 } };

static void test_rules(void **state)
{
    static const struct {
        enum sparse_reduce rule;
        real applied[ROWS * WIDTH];
    } rows[] = {
        { SPARSE_SUM, { 4, -2, 8, 2, -1, 8, 0, 0 } },
        { SPARSE_MEAN, { 2, -1, 4, 1, -0.5, 4, 0, 0 } },
        { SPARSE_MEAN_TOUCHING, { 4, -2, 4, 1, -1, 8, 0, 0 } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct stage s;

        stage_open(&s, OPTIMIZER_SGD, rows[i].rule);
        table_update_add(s.update, gradients, weights);
        table_update_apply(s.update, 0);
        for (size_t k = 0; k < ROWS * WIDTH; k++) /* w - 1 g */
            assert_true(network_parameters(s.network)[k] == (real)(10 + k) - rows[i].applied[k]);
        stage_close(&s);
    }
}

/* The fourth rule, of Parallax's local aggregation: the mean over hosts of the means of each one's workers. With as many
 * workers on each host, here both on one or one on each, it is the mean over workers. */
static void test_mean_of_means(void **state)
{
    static const real g[WORKERS][ROWS * WIDTH] = { { 4, -2, 2, 2 }, { 0, 0, 6, 0, -1, 8 } };

    (void)state;
    for (int hosts = 1; hosts <= WORKERS; hosts++) {
        const int workers = WORKERS / hosts;
        struct stage s;

        stage_open(&s, OPTIMIZER_SGD, SPARSE_MEAN);
        table_update_add(s.update, gradients, weights);
        table_update_apply(s.update, 0);
        for (size_t k = 0; k < ROWS * WIDTH; k++) {
            real mean = 0;

            for (int host = 0; host < hosts; host++) {
                real sum = 0;

                for (int w = host * workers; w < (host + 1) * workers; w++)
                    sum += g[w][k];
                mean += sum / (real)workers / (real)hosts;
            }
            assert_true(network_parameters(s.network)[k] == (real)(10 + k) - mean);
        }
        stage_close(&s);
    }
}

/* A worker that sends several vectors touches a row once. */
static void test_several_vectors(void **state)
{
    static const int32_t row[] = { 0 };
    static const real some[] = { 8, 4 }, each[] = { 2, 2, 1 };
    struct row_gradient vectors[3];
    struct stage s;

    (void)state;
    stage_open(&s, OPTIMIZER_SGD, SPARSE_MEAN_TOUCHING);
    table_update_free(s.update);
    reduction_release(&s.reduction);
    assert_int_equal(reduction_init(&s.reduction, WORKERS, 5, NULL), OK);
    assert_int_equal(s.reduction.count, 3); /* leaves 0 and 1; 2 and 3; 4 */
    assert_int_equal(table_update_new(&s.update, s.optimizer, &s.parts, &s.reduction, SPARSE_MEAN_TOUCHING, ROWS, NULL),
                     OK);
    for (int v = 0; v < 3; v++)
        vectors[v] = (struct row_gradient){ 0, v > 0, WIDTH, row, some };
    table_update_add(s.update, vectors, each);
    table_update_apply(s.update, 0);
    /* 16 and 8 over 5 samples, by one of two workers */
    assert_true(network_parameters(s.network)[0] == 10 - (real)32 * (real)0.2);
    assert_true(network_parameters(s.network)[1] == 11 - (real)16 * (real)0.2);
    stage_close(&s);
}

/* Row 3: unchanged bits, of all but adam. Momentum has been there before, so that it would move. */
static void test_untouched(void **state)
{
    (void)state;
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        static const int32_t all_rows[] = { 3 };
        static const real all_values[] = { 1, 2 };
        static const struct row_gradient before[] = { { 0, 1, WIDTH, all_rows, all_values },
                                                      { 0, 0, WIDTH, all_rows, all_values } };
        real kept[WIDTH], *row;
        struct stage s;

        stage_open(&s, (enum optimizer_kind)kind, SPARSE_MEAN);
        row = network_parameters(s.network) + 3 * WIDTH;
        table_update_add(s.update, before, weights);
        table_update_apply(s.update, 0);
        assert_true(row[0] != 16);
        memcpy(kept, row, sizeof kept);
        table_update_add(s.update, gradients, weights);
        table_update_apply(s.update, 1);
        assert_int_equal(memcmp(kept, row, sizeof kept) == 0, kind != OPTIMIZER_ADAM);
        stage_close(&s);
    }
}

/* Asynchronous: one worker's gradient is an update. */
static void test_alone(void **state)
{
    struct stage s;

    (void)state;
    stage_open(&s, OPTIMIZER_SGD, SPARSE_MEAN);
    table_update_alone(s.update, 0, &gradients[1], 2);
    assert_true(network_parameters(s.network)[2] == 12 - 6 && network_parameters(s.network)[5] == 15 - 8);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),     cmocka_unit_test(test_mean_of_means), cmocka_unit_test(test_several_vectors),
        cmocka_unit_test(test_untouched), cmocka_unit_test(test_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
