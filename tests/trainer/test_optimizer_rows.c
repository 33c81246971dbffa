/* Updates of some rows of a table: which rows change and how, for every optimizer. */
#include "trainer/optimizers/optimizer.h"

#include "base/random.h"
#include "model/network.h"
#include "model/network_builder.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 7, WIDTH = 5, SIZE = ROWS * WIDTH, STEPS = 4, SAMPLES = 8 };

static int build_with(struct network_builder *b, double decay)
{
    const struct kernel_options plain = { INITIAL_NORMAL, 0.5, 0 }, table = { INITIAL_NORMAL, 0.5, decay };
    int x = network_builder_dense(
        b, network_builder_embedding(b, network_builder_images(b), "table", ROWS, WIDTH, &table), "finish", 3, &plain);

    network_builder_cross_entropy(b, x);
    return OK;
}

static int build(struct network_builder *b, struct error *e)
{
    (void)e;
    return build_with(b, 0);
}

static int build_decay(struct network_builder *b, struct error *e)
{
    (void)e;
    return build_with(b, 0.01);
}

static const struct model words = {
    .name = "words", .height = 1, .width = 2, .channels = 1, .classes = 3, .integers = 1, .build = build
};
static const struct model words_decay = {
    .name = "words", .height = 1, .width = 2, .channels = 1, .classes = 3, .integers = 1, .build = build_decay
};

/* The rows with a gradient, by step: row 6 never, row 1 only at first, none at step 2. */
static const int32_t touched[STEPS][3] = { { 1, 3, 4 }, { 0, 3 }, { 0 }, { 2, 3, 5 } };
static const size_t touched_count[STEPS] = { 3, 2, 0, 3 };

struct training {
    struct network *network;
    struct optimizer *optimizer;
    size_t variable, place, total; /* of the table */
};

static struct training training_with(enum optimizer_kind kind, const struct model *model, double clip_norm)
{
    const struct optimizer_options options = {
        .kind = kind, .learning_rate = 0.05, .momentum = 0.9, .clip_norm = clip_norm, .moving_average = 0.99
    };
    struct training t = { 0 };
    const struct variable *v;
    size_t count;

    assert_int_equal(network_new(&t.network, model, 0, NULL), OK);
    network_initialize(t.network, 3);
    assert_int_equal(optimizer_new(&t.optimizer, t.network, &options, NULL), OK);
    v = network_variables(t.network, &count);
    while (strcmp(v[t.variable].name, "table") != 0)
        t.variable++;
    assert_int_equal(v[t.variable].count, SIZE);
    t.place = v[t.variable].offset;
    t.total = network_exchange_count(t.network);
    return t;
}

static struct training training_of(enum optimizer_kind kind)
{
    return training_with(kind, &words, 0);
}

static void release(struct training *t)
{
    optimizer_free(t->optimizer);
    network_free(t->network);
}

static int is_touched(int64_t step, int row)
{
    for (size_t i = 0; i < touched_count[step]; i++)
        if (touched[step][i] == row)
            return 1;
    return 0;
}

static real gradient(int64_t step, int element)
{
    struct random r;

    random_init(&r, 8, RANDOM_TEST, (uint64_t)step, (uint64_t)element);
    return (real)((double)SAMPLES * random_normal(&r));
}

static void update_by_rows(struct training *t, int64_t step)
{
    real values[3 * WIDTH] = { 0 };
    const struct row_gradient g = { t->variable, touched_count[step], WIDTH, touched[step], values };

    for (size_t i = 0; i < g.count; i++)
        for (int k = 0; k < WIDTH; k++)
            values[i * WIDTH + (size_t)k] = gradient(step, touched[step][i] * WIDTH + k);
    optimizer_apply_rows(t->optimizer, step, &g, SAMPLES);
}

/* The same gradient as a dense one, whose zeros are also -0. */
static real *whole_sum(const struct training *t, int64_t step)
{
    real *sum = calloc(t->total, sizeof *sum);

    for (int i = 0; i < SIZE; i++)
        sum[t->place + (size_t)i] = is_touched(step, i / WIDTH) ? gradient(step, i) : i % 2 ? (real)-0.0 : 0;
    sum[t->total - 1] = SAMPLES;
    return sum;
}

/* In two ranges, the first of `cut` elements. */
static void update_whole(struct training *t, int64_t step, size_t cut)
{
    real *sum = whole_sum(t, step);

    optimizer_apply(t->optimizer, step, sum, t->place, t->place + cut);
    optimizer_apply(t->optimizer, step, sum, t->place + cut, t->place + SIZE);
    free(sum);
}

/* of the table; NULL: the optimizer has no such array */
static real *array_of(const struct training *t, enum optimizer_array_kind kind)
{
    const struct optimizer_array a = optimizer_array(t->optimizer, kind);

    return a.count ? a.values + t->place : NULL;
}

static const enum optimizer_array_kind kinds[] = { ARRAY_WEIGHTS, ARRAY_SLOT_1, ARRAY_SLOT_2, ARRAY_AVERAGES };

/* 1: row r of all arrays (but averages) is as in `before`. */
static int is_unchanged(const struct training *t, real before[][SIZE], int r)
{
    int same = 1;

    for (int k = 0; k < 3; k++) {
        const real *now = array_of(t, kinds[k]);

        same &= !now || !memcmp(now + r * WIDTH, before[k] + r * WIDTH, WIDTH * sizeof *now);
    }
    return same;
}

/* A row in no worker's batch: unchanged bits, except with adam; a row in one: changed. */
static void test_which_rows(void **state)
{
    (void)state;
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        struct training t = training_of((enum optimizer_kind)kind);
        real *rest = network_parameters(t.network) + t.place + SIZE, finish = rest[0];

        for (int64_t step = 0; step < STEPS; step++) {
            real before[3][SIZE] = { { 0 } };

            for (int k = 0; k < 3; k++)
                if (array_of(&t, kinds[k]))
                    memcpy(before[k], array_of(&t, kinds[k]), sizeof before[k]);
            update_by_rows(&t, step);
            for (int r = 0; r < ROWS; r++) {
                int had_gradient = 0; /* adam's moments are not 0 from then on */

                for (int64_t s = 0; s <= step; s++)
                    had_gradient |= is_touched(s, r);
                if (is_unchanged(&t, before, r) != !(kind == OPTIMIZER_ADAM ? had_gradient : is_touched(step, r)))
                    fail_msg("%s, step %d: row %d", optimizer_kind_names[kind], (int)step, r);
            }
        }
        assert_true(rest[0] == finish);
        release(&t);
    }
}

/* A dense sum makes the same update as rows, to the bit, wherever the range is cut. */
static void test_like_dense(void **state)
{
    (void)state;
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++)
        for (int decay = 0; decay < 2; decay++)
            for (size_t cut = 0; cut <= SIZE; cut++) {
                const struct model *m = decay ? &words_decay : &words;
                struct training a = training_with((enum optimizer_kind)kind, m, 0);
                struct training b = training_with((enum optimizer_kind)kind, m, 0);

                for (int64_t step = 0; step < STEPS; step++) {
                    update_by_rows(&a, step);
                    update_whole(&b, step, cut);
                    for (int k = 0; k < 4; k++)
                        if (array_of(&a, kinds[k]))
                            assert_memory_equal(array_of(&a, kinds[k]), array_of(&b, kinds[k]), SIZE * sizeof(real));
                }
                release(&a);
                release(&b);
            }
}

/* On a server: the same with state elsewhere, given whole rows; any ranges, where optimizer_cuts_rows() says so. */
static void test_on_a_server(void **state)
{
    (void)state;
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++)
        for (size_t cut = 0; cut <= SIZE; cut++) {
            struct training a = training_of((enum optimizer_kind)kind), b = training_of((enum optimizer_kind)kind);

            assert_int_equal(optimizer_cuts_rows(a.optimizer),
                             kind != OPTIMIZER_MOMENTUM && kind != OPTIMIZER_LAZY_ADAM);
            for (int64_t step = 0; step < STEPS && (cut % WIDTH == 0 || optimizer_cuts_rows(a.optimizer)); step++) {
                const struct optimizer_state first = { array_of(&b, kinds[0]), array_of(&b, kinds[1]),
                                                       array_of(&b, kinds[2]), array_of(&b, kinds[3]) };
                const struct optimizer_state second = { first.values + cut, first.first ? first.first + cut : NULL,
                                                        first.second ? first.second + cut : NULL,
                                                        first.averages + cut };
                real *sum = whole_sum(&b, step);

                update_by_rows(&a, step);
                optimizer_apply_to(b.optimizer, step, sum + b.place, SAMPLES, b.place, b.place + cut, &first);
                optimizer_apply_to(b.optimizer, step, sum + b.place + cut, SAMPLES, b.place + cut, b.place + SIZE,
                                   &second);
                for (int k = 0; k < 4; k++)
                    if (array_of(&a, kinds[k]))
                        assert_memory_equal(array_of(&a, kinds[k]), array_of(&b, kinds[k]), SIZE * sizeof(real));
                free(sum);
            }
            release(&a);
            release(&b);
        }
}

/* A row that was used, but whose gradients add up to nothing, is as one that was not. */
static void test_zeros(void **state)
{
    static const real zeros[WIDTH];
    const int32_t row = 3;

    (void)state;
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        struct training t = training_with((enum optimizer_kind)kind, &words_decay, 0);
        const struct row_gradient g = { t.variable, 1, WIDTH, &row, zeros };
        real before[3][SIZE] = { { 0 } };

        update_by_rows(&t, 0);
        for (int k = 0; k < 3; k++)
            if (array_of(&t, kinds[k]))
                memcpy(before[k], array_of(&t, kinds[k]), sizeof before[k]);
        optimizer_apply_rows(t.optimizer, 1, &g, SAMPLES);
        assert_int_equal(is_unchanged(&t, before, row), kind != OPTIMIZER_ADAM);
        release(&t);
    }
}

/* The norm of the gradient has what an update has: the decay of used rows only, with adam of all. */
static void test_norm(void **state)
{
    (void)state;
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        struct training t = training_with((enum optimizer_kind)kind, &words_decay, 1000);
        real *sum = whole_sum(&t, 0);
        double squares = 0;

        for (int i = 0; i < SIZE; i++) {
            const double g = is_touched(0, i / WIDTH) ? (double)gradient(0, i) / (double)SAMPLES : 0;
            const double w = is_touched(0, i / WIDTH) || kind == OPTIMIZER_ADAM
                                 ? 0.01 * (double)array_of(&t, ARRAY_WEIGHTS)[i]
                                 : 0;

            squares += (g + w) * (g + w);
        }
        optimizer_measure(t.optimizer, 0, sum);
        assert_true(fabs(optimizer_gradient_norm(t.optimizer) - sqrt(squares)) < 1e-6);
        free(sum);
        release(&t);
    }
}

/* Momentum and lazy adam of each row against their formulas in double, with slots that wait while a row is not there. */
static void test_formulas(void **state)
{
    static const enum optimizer_kind both[] = { OPTIMIZER_MOMENTUM, OPTIMIZER_LAZY_ADAM };

    (void)state;
    for (int which = 0; which < 2; which++) {
        struct training t = training_of(both[which]);
        double w[SIZE], m[SIZE] = { 0 }, v[SIZE] = { 0 }, average[SIZE];

        for (int i = 0; i < SIZE; i++)
            average[i] = w[i] = (double)array_of(&t, ARRAY_WEIGHTS)[i];
        for (int64_t step = 0; step < STEPS; step++) {
            const double keep = fmin(0.99, ((double)step + 2) / ((double)step + 11)), u = (double)step + 1;

            update_by_rows(&t, step);
            for (int i = 0; i < SIZE; i++) {
                const double g = (double)gradient(step, i) / (double)SAMPLES;

                if (is_touched(step, i / WIDTH) && which == 0) {
                    m[i] = 0.9 * m[i] + g;
                    w[i] -= 0.05 * m[i];
                } else if (is_touched(step, i / WIDTH)) {
                    m[i] += 0.1 * (g - m[i]);
                    v[i] += 0.001 * (g * g - v[i]);
                    w[i] -= 0.05 * sqrt(1 - pow(0.999, u)) / (1 - pow(0.9, u)) * m[i] / (sqrt(v[i]) + 1e-8);
                }
                average[i] -= (1 - keep) * (average[i] - w[i]);
                assert_true(fabs((double)array_of(&t, ARRAY_WEIGHTS)[i] - w[i]) < 2e-6);
                assert_true(fabs((double)array_of(&t, ARRAY_AVERAGES)[i] - average[i]) < 2e-6);
            }
        }
        release(&t);
    }
}

/* The norm of rows is that of the same dense gradient, in which a row whose gradient is 0 in all elements counts only
 * where all rows move. */
static void test_norm_of_rows(void **state)
{
    (void)state;
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        static const int32_t rows[] = { 1, 3, 4 };
        struct training t = training_with((enum optimizer_kind)kind, &words_decay, 1);
        real values[3 * WIDTH] = { 0 }, *sum = calloc(t.total, sizeof *sum);
        const struct row_gradient g = { t.variable, 3, WIDTH, rows, values };
        double norm;

        for (int k = 0; k < 2 * WIDTH; k++) /* row 4: zeros */
            sum[t.place + (size_t)(rows[k / WIDTH] * WIDTH + k % WIDTH)] = values[k] = gradient(0, k);
        sum[t.total - 1] = SAMPLES;
        optimizer_measure(t.optimizer, 0, sum);
        norm = optimizer_gradient_norm(t.optimizer);
        assert_true(norm > 1);
        for (int i = 0; i < SIZE; i++)
            sum[t.place + (size_t)i] = 1000; /* not read */
        optimizer_measure_rows(t.optimizer, 0, sum, &g, 1);
        assert_true(optimizer_gradient_norm(t.optimizer) == norm);
        free(sum);
        release(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norm_of_rows), cmocka_unit_test(test_which_rows), cmocka_unit_test(test_like_dense),
        cmocka_unit_test(test_on_a_server),  cmocka_unit_test(test_zeros),      cmocka_unit_test(test_norm),
        cmocka_unit_test(test_formulas),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
