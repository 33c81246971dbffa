/* Two convolutions side by side are one with both kernels: the float build, in each layout that convolutions have. */
#include "base/random.h"
#include "model/network.h"
#include "model/network_builder.h"
#include "tests/check.h"
#include "tests/model/images_batch.h"
#include "tests/model/images_batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 37, HEIGHT = 5, WIDTH = 4, CHANNELS = 3, CLASSES = 4 };

static const struct kernel_options plain = { INITIAL_NORMAL, 0.3, 0 };
static const struct {
    int start, left, right;
} cases[] = {
    { 16, 16, 16 }, { 16, 16, 5 }, { 16, 5, 16 }, { 16, 5, 11 }, { 5, 16, 32 }, { 5, 3, 13 }, { 16, 2, 3 },
};
static size_t at; /* the case */

static int start(struct network_builder *b)
{
    const int x = network_builder_images(b);

    return network_builder_convolution(b, x, "start", cases[at].start, window_same(3, 1), &plain);
}

static int finish(struct network_builder *b, int x)
{
    x = network_builder_convolution(b, x, "after", 16, window_same(3, 1), &plain);
    network_builder_cross_entropy(b, network_builder_dense(b, x, "finish", CLASSES, &plain));
    return OK;
}

static int apart(struct network_builder *b, struct error *e)
{
    const int x = start(b);
    const int left = network_builder_convolution(b, x, "left", cases[at].left, window_same(3, 1), &plain);
    const int right = network_builder_convolution(b, x, "right", cases[at].right, window_same(3, 1), &plain);

    (void)e;
    return finish(b, network_builder_concat(b, (const int[]){ left, right }, 2));
}

static int together(struct network_builder *b, struct error *e)
{
    (void)e;
    return finish(b, network_builder_convolution(b, start(b), "both", cases[at].left + cases[at].right,
                                                 window_same(3, 1), &plain));
}

static struct network *new_network(const struct model *m)
{
    struct network *n = NULL;
    struct error e = { 0 };

    if (network_new(&n, m, COUNT, &e) < 0)
        fail_msg("%s", e.message);
    return n;
}

/* Weights or gradients in the order of the network that has one kernel: start, left and right in turn, the rest. */
static void join_kernels(const struct network *n, const real *from, real *to)
{
    size_t count;
    const struct variable *v = network_variables(n, &count);
    const size_t left = (size_t)v[1].shape[3], right = (size_t)v[2].shape[3];

    memcpy(to, from, v[1].offset * sizeof *to);
    for (size_t k = 0; k < v[1].count / left; k++) {
        real *both = to + v[1].offset + k * (left + right);
        memcpy(both, from + v[1].offset + k * left, left * sizeof *to);
        memcpy(both + left, from + v[2].offset + k * right, right * sizeof *to);
    }
    memcpy(to + v[3].offset, from + v[3].offset, (network_parameter_count(n) - v[3].offset) * sizeof *to);
}

static void assert_alike(const real *a, const real *b, size_t n)
{
    double square = 0, norm = 0;

    for (size_t i = 0; i < n; i++) {
        square += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        norm += (double)b[i] * (double)b[i];
    }
    if (!(norm > 0 && sqrt(square / norm) < 1e-5))
        fail_msg("case %zu: off by %g", at, sqrt(square / norm));
}

static void side_by_side(void **state)
{
    const struct model model_two = {
        .name = "two", .height = HEIGHT, .width = WIDTH, .channels = CHANNELS, .classes = CLASSES, .build = apart
    };
    const struct model model_one = {
        .name = "one", .height = HEIGHT, .width = WIDTH, .channels = CHANNELS, .classes = CLASSES, .build = together
    };
    real images[COUNT * HEIGHT * WIDTH * CHANNELS];
    int32_t labels[COUNT];
    struct random r;
    struct batch batch;

    (void)state;
    random_init(&r, 1, RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        images[i] = (real)random_normal(&r);
    for (int i = 0; i < COUNT; i++)
        labels[i] = (int32_t)random_below(&r, CLASSES);
    batch = images_batch(&model_two, images, labels, NULL, COUNT);
    for (at = 0; at < sizeof cases / sizeof *cases; at++) {
        struct network *two = new_network(&model_two), *one = new_network(&model_one);
        const size_t n = network_parameter_count(two);
        real *joined = malloc(n * sizeof *joined), logits[2][COUNT * CLASSES];
        struct score score;

        assert_non_null(joined);
        assert_int_equal(network_parameter_count(one), n);
        network_initialize(two, 1);
        join_kernels(two, network_parameters(two), network_parameters(one));
        network_infer(two, &batch.fields[FIELD_INPUT], logits[0]);
        network_infer(one, &batch.fields[FIELD_INPUT], logits[1]);
        assert_alike(logits[0], logits[1], COUNT * CLASSES);
        network_train(two, &batch, 1, NULL, &score);
        network_train(one, &batch, 1, NULL, &score);
        join_kernels(two, network_exchange(two), joined);
        assert_alike(joined, network_exchange(one), n);
        free(joined);
        network_free(two);
        network_free(one);
    }
}

/* A value three times, whose gradient another layer begins; and what comes in slices joined for the whole batch. */
static int pooled(struct network_builder *b, struct error *e)
{
    const int x = network_builder_convolution(b, network_builder_images(b), "w", 2, window_same(3, 1), &plain);
    const int thrice = network_builder_concat(b, (const int[]){ x, x, x }, 3);
    const int more = network_builder_convolution(b, x, "v", 2, window_same(3, 1), &plain);
    const int y = network_builder_average_pool(b, thrice, window_same(HEIGHT, HEIGHT));
    const int z = network_builder_max_pool(b, more, window_same(HEIGHT, HEIGHT));

    (void)e;
    network_builder_cross_entropy(b, network_builder_concat(b, (const int[]){ y, z }, 2));
    return OK;
}

/* All images at once are the same as one by one. */
static void in_slices(void **state)
{
    enum { IMAGE = HEIGHT * WIDTH * CHANNELS, POOLED = 8 };
    const struct model m = {
        .name = "pooled", .height = HEIGHT, .width = WIDTH, .channels = CHANNELS, .classes = POOLED, .build = pooled
    };
    struct network *n = new_network(&m);
    const size_t count = network_parameter_count(n);
    real images[COUNT * IMAGE], logits[COUNT * POOLED], one[POOLED], *sum = calloc(count, sizeof *sum);
    int32_t labels[COUNT];
    struct batch batch;
    struct score score;
    struct random r;

    (void)state;
    assert_non_null(sum);
    random_init(&r, 1, RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        images[i] = (real)random_normal(&r);
    for (size_t i = 0; i < COUNT; i++)
        labels[i] = (int32_t)random_below(&r, POOLED);
    batch = images_batch(&m, images, labels, NULL, COUNT);
    network_initialize(n, 1);
    network_infer(n, &batch.fields[FIELD_INPUT], logits);
    for (size_t i = 0; i < COUNT; i++) {
        const struct batch alone = images_batch(&m, images + i * IMAGE, labels + i, NULL, 1);
        network_infer(n, &alone.fields[FIELD_INPUT], one);
        assert_alike(logits + i * POOLED, one, POOLED);
        network_train(n, &alone, 1, NULL, &score);
        for (size_t k = 0; k < count; k++)
            sum[k] += network_exchange(n)[k];
    }
    network_train(n, &batch, 1, NULL, &score);
    assert_alike(network_exchange(n), sum, count);
    free(sum);
    network_free(n);
}

static int lower(struct network_builder *b, struct error *e)
{
    const int x = network_builder_max_pool(b, network_builder_images(b), window_valid(1, 2)); /* 3 by 2 */
    const int y = network_builder_max_pool(b, network_builder_images(b), window_valid(1, 3)); /* 2 by 2 */

    (void)e;
    network_builder_concat(b, (const int[]){ x, y }, 2);
    return OK;
}

static int narrower(struct network_builder *b, struct error *e)
{
    const int x = network_builder_max_pool(b, network_builder_images(b), window_valid(1, 3)); /* 2 by 2 */
    const int y = network_builder_max_pool(b, network_builder_images(b), window_valid(4, 1)); /* 2 by 1 */

    (void)e;
    network_builder_concat(b, (const int[]){ x, x, y }, 3);
    return OK;
}

static int of_too_many(struct network_builder *b, struct error *e)
{
    const int inputs[9] = { 0 };

    (void)e;
    network_builder_concat(b, inputs, 9);
    return OK;
}

static int of_none(struct network_builder *b, struct error *e)
{
    (void)e;
    network_builder_concat(b, NULL, 0);
    return OK;
}

static int of_unknown(struct network_builder *b, struct error *e)
{
    const int x = network_builder_max_pool(b, network_builder_images(b), window_same(HEIGHT, HEIGHT));

    (void)e;
    network_builder_concat(b, (const int[]){ x, 7 }, 2);
    return OK;
}

static int of_changed(struct network_builder *b, struct error *e)
{
    const int x = network_builder_convolution(b, network_builder_images(b), "w", 4, window_same(3, 1), &plain);
    const int y = network_builder_bias(b, x, "b", 0, RELU);

    (void)e;
    network_builder_concat(b, (const int[]){ y, x }, 2);
    return OK;
}

static int changed_later(struct network_builder *b, struct error *e)
{
    const int x = network_builder_convolution(b, network_builder_images(b), "w", 4, window_same(3, 1), &plain);

    (void)e;
    network_builder_concat(b, (const int[]){ network_builder_images(b), x }, 2);
    network_builder_bias(b, x, "b", 0, RELU);
    return OK;
}

static void mistakes(void **state)
{
    static const struct {
        int (*build)(struct network_builder *b, struct error *e);
        const char *says;
    } wrong[] = {
        { lower, "layer 2 (concat): its inputs differ" },
        { narrower, "layer 2 (concat): its inputs differ" },
        { of_too_many, "too many" },
        { of_none, "no inputs" },
        { of_unknown, "not a value" },
        { of_changed, "layer 2 (concat): its input was changed" },
        { changed_later, "others read its input" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const struct model m = { .name = "wrong",
                                 .height = HEIGHT,
                                 .width = WIDTH,
                                 .channels = CHANNELS,
                                 .classes = CLASSES,
                                 .build = wrong[i].build };
        struct network *n = NULL;
        struct error e = { 0 };

        assert_int_equal(network_new(&n, &m, 1, &e), ERR_ARG);
        if (!strstr(e.message, wrong[i].says))
            fail_msg("case %zu says: %s", i, e.message);
    }
}

/* Large images, so that few go through the layers at once, and beside what is one pixel something made of an earlier
 * value. */
static int one_pixel(struct network_builder *b, struct error *e)
{
    int x = network_builder_images(b), pixel;

    (void)e;
    x = network_builder_convolution(b, x, "start", 64, window_same(3, 1), &plain);
    x = network_builder_max_pool(b, x, window_valid(4, 4));
    x = network_builder_max_pool(b, x, window_valid(4, 4));
    pixel = network_builder_convolution(b, x, "pixel", 16, window_valid(4, 1), &plain);
    pixel = network_builder_bias(b, pixel, "bias", 0.1, RELU);
    x = network_builder_max_pool(b, x, window_valid(4, 1));
    x = network_builder_concat(b, (const int[]){ pixel, x }, 2);
    network_builder_cross_entropy(b, network_builder_dense(b, x, "finish", CLASSES, &plain));
    return OK;
}

/* In inference, images together give what each gives alone. */
static void test_one_pixel(void **state)
{
    enum { IMAGES = 9, SIDE = 64 };
    const struct model m = {
        .name = "pixel", .height = SIDE, .width = SIDE, .channels = CHANNELS, .classes = CLASSES, .build = one_pixel
    };
    const size_t size = (size_t)SIDE * SIDE * CHANNELS;
    real *images = aligned_alloc(64, IMAGES * size * sizeof *images), all[IMAGES * CLASSES], alone[CLASSES];
    struct network *n = new_network(&m);
    struct random r;
    struct field in;

    (void)state;
    assert_non_null(images);
    random_init(&r, 3, RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < IMAGES * size; i++)
        images[i] = (real)random_normal(&r);
    network_initialize(n, 5);
    in = model_input(&m, images, IMAGES);
    network_infer(n, &in, all);
    for (int i = 0; i < IMAGES; i++) {
        in = model_input(&m, images + (size_t)i * size, 1);
        network_infer(n, &in, alone);
        for (int k = 0; k < CLASSES; k++)
            if (!(fabs((double)(alone[k] - all[i * CLASSES + k])) < 1e-4))
                fail_msg("image %d: %g, alone %g", i, (double)all[i * CLASSES + k], (double)alone[k]);
    }
    network_free(n);
    free(images);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(side_by_side), cmocka_unit_test(test_one_pixel),
                                        cmocka_unit_test(in_slices), cmocka_unit_test(mistakes) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
