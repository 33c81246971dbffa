/* An embedding in the double build: its gradient against central differences and as rows, and what it refuses. */
#include "base/random.h"
#include "model/network.h"
#include "model/network_builder.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 7, WIDTH = 3, LENGTH = 4, CLASSES = 3, COUNT = 5, MORE = 40 };

static const struct kernel_options plain = { INITIAL_NORMAL, 0.5, 0 };

static int build(struct network_builder *b, struct error *e)
{
    int x = network_builder_embedding(b, network_builder_images(b), "table", ROWS, WIDTH, &plain);

    (void)e;
    x = network_builder_convolution(b, x, "kernel", 2, window_same(3, 1), &plain);
    network_builder_cross_entropy(b, network_builder_dense(b, x, "finish", CLASSES, &plain));
    return OK;
}

static const struct model model_words = {
    .name = "words", .height = 1, .width = LENGTH, .channels = 1, .classes = CLASSES, .integers = 1, .build = build
};

/* Row 6 is named by nobody, 0 by all but one, some twice in a sample; two name no row. */
static const int64_t tokens[COUNT * LENGTH] = {
    0, 1, 0, 5, 2, 0, 2 - (1LL << 32), 3, 0, 7, 0, 0, 4, 4, 1, 2, 0, 5, 3, 1
};
static const uint8_t bytes[COUNT * LENGTH] = { 0, 1, 0, 5, 2, 0, 255, 3, 0, 7, 0, 0, 4, 4, 1, 2, 0, 5, 3, 1 };
static const int32_t labels[COUNT] = { 0, 2, 1, 1, 0 };

static struct batch words(const void *data, enum element element)
{
    struct batch b = { .count = COUNT, .field_count = 2 };

    b.fields[FIELD_INPUT] = (struct field){ data, element, 4, { COUNT, 1, LENGTH, 1 } };
    b.fields[FIELD_LABELS] = (struct field){ labels, ELEMENT_INT32, 1, { COUNT } };
    return b;
}

static struct network *new_network(int max_batch)
{
    struct network *n = NULL;
    struct error e = { 0 };

    if (network_new(&n, &model_words, max_batch, &e) < 0)
        fail_msg("%s", e.message);
    network_initialize(n, 1);
    return n;
}

static double train(struct network *n, const struct batch *b, const struct gradient_sink *sink)
{
    struct score score;

    assert_true(network_train(n, b, 4, sink, &score));
    return score.loss;
}

static void differences(void **state)
{
    struct network *n = new_network(COUNT);
    const struct batch b = words(tokens, ELEMENT_INT64);
    double gradient[ROWS * WIDTH];

    (void)state;
    train(n, &b, NULL);
    memcpy(gradient, network_exchange(n), sizeof gradient);
    for (size_t i = 0; i < ROWS * WIDTH; i++) {
        real *w = &network_parameters(n)[i];
        const real kept = *w;
        double up, down;

        *w = kept + 1e-5;
        up = train(n, &b, NULL);
        *w = kept - 1e-5;
        down = train(n, &b, NULL);
        *w = kept;
        assert_true(fabs((up - down) / 2e-5 - gradient[i]) < 1e-8);
        assert_true((gradient[i] == 0) == (i / WIDTH == 6));
    }
    network_free(n);
}

struct told {
    struct network *n;
    int32_t rows[ROWS];
    double values[ROWS * WIDTH];
    size_t count, low;
};

static void take_dense(void *context, size_t low)
{
    ((struct told *)context)->low = low;
}

static void take_rows(void *context, const struct row_gradient *g)
{
    struct told *t = context;
    size_t count;

    assert_true(t->low >= ROWS * WIDTH); /* the table is not said to be final yet */
    assert_string_equal(network_variables(t->n, &count)[g->variable].name, "table");
    assert_int_equal(g->width, WIDTH);
    t->count = g->count;
    memcpy(t->rows, g->rows, g->count * sizeof *g->rows);
    memcpy(t->values, g->values, g->count * g->width * sizeof *g->values);
}

/* The rows that a sink gets are those of the exchange vector where there is none, bit for bit. */
static void rows(void **state)
{
    const int32_t wanted[] = { 0, 1, 2, 3, 4, 5 };
    struct told t = { .n = new_network(MORE), .low = SIZE_MAX };
    const struct gradient_sink sink = { take_dense, take_rows, &t };
    const struct batch b = words(tokens, ELEMENT_INT64), narrow = words(bytes, ELEMENT_UINT8);
    double gradient[ROWS * WIDTH], weights[ROWS * WIDTH];
    const double loss = train(t.n, &b, NULL);

    (void)state;
    memcpy(gradient, network_exchange(t.n), sizeof gradient);
    assert_true(train(t.n, &b, &sink) == loss);
    assert_int_equal(t.low, 0);
    assert_int_equal(t.count, 6);
    assert_memory_equal(t.rows, wanted, sizeof wanted);
    assert_memory_equal(t.values, gradient, 6 * WIDTH * sizeof *gradient);
    memset(weights, 0, sizeof weights);
    assert_memory_equal(network_exchange(t.n), weights, sizeof weights);
    assert_true(train(t.n, &narrow, NULL) == loss); /* tokens of another width */
    assert_memory_equal(network_exchange(t.n), gradient, sizeof gradient);
    network_free(t.n);
}

/* Inference goes through the input in pieces: what a sample is given depends on its own tokens. */
static void infers(void **state)
{
    struct network *n = new_network(MORE / 8);
    const int few = MORE / 8;
    int32_t input[MORE * LENGTH];
    double together[MORE * CLASSES], alone[CLASSES];
    struct random r;

    (void)state;
    random_init(&r, 1, RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < MORE * LENGTH; i++)
        input[i] = (int32_t)random_below(&r, ROWS);
    assert_true(few < MORE);
    const struct field all = { input, ELEMENT_INT32, 4, { MORE, 1, LENGTH, 1 } };
    network_infer(n, &all, together);
    for (size_t i = 0; i < MORE; i++) {
        const struct field one = { input + i * LENGTH, ELEMENT_INT32, 4, { 1, 1, LENGTH, 1 } };
        network_infer(n, &one, alone);
        for (size_t c = 0; c < CLASSES; c++)
            assert_true(fabs(alone[c] - together[i * CLASSES + c]) < 1e-12);
    }
    network_free(n);
}

static int build_twice(struct network_builder *b, struct error *e)
{
    const int x = network_builder_embedding(b, network_builder_images(b), "table", ROWS, 1, &plain);

    (void)e;
    network_builder_embedding(b, x, "second", ROWS, WIDTH, &plain);
    return OK;
}

static int build_without(struct network_builder *b, struct error *e)
{
    (void)e;
    network_builder_dense(b, network_builder_images(b), "dense", CLASSES, &plain);
    return OK;
}

static int build_beside(struct network_builder *b, struct error *e)
{
    const int in = network_builder_images(b), x = network_builder_embedding(b, in, "table", ROWS, WIDTH, &plain);

    (void)e;
    network_builder_concat(b, (const int[]){ x, in }, 2);
    return OK;
}

static int build_no_rows(struct network_builder *b, struct error *e)
{
    (void)e;
    network_builder_embedding(b, network_builder_images(b), "table", 0, WIDTH, &plain);
    return OK;
}

static void refuses(void **state)
{
    static const struct {
        int (*build)(struct network_builder *b, struct error *e);
        int integers;
        const char *why;
    } cases[] = {
        { build, 0, "it reads integers, and its input is none" },
        { build_twice, 1, "it reads integers, and its input is none" },
        { build_without, 1, "its input is integers" },
        { build_beside, 1, "its input is integers" },
        { build_no_rows, 1, "it needs rows" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model m = model_words;
        struct network *n = NULL;
        struct error e = { 0 };

        m.build = cases[i].build;
        m.integers = cases[i].integers;
        assert_int_equal(network_new(&n, &m, 1, &e), ERR_ARG);
        if (!strstr(e.message, cases[i].why))
            fail_msg("case %zu: %s", i, e.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences),
        cmocka_unit_test(rows),
        cmocka_unit_test(infers),
        cmocka_unit_test(refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
