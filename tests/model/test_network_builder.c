/* Models that cannot be built: each mistake is named, for training and for inference. */
#include "model/network.h"
#include "model/network_builder.h"
#include "tests/check.h"

#include <string.h>

static const struct kernel_options plain = { INITIAL_NORMAL, 0.1, 0 };

static int no_end(struct network_builder *b, struct error *e)
{
    (void)e;
    network_builder_convolution(b, network_builder_images(b), "w", 4, window_same(3, 1), &plain);
    return OK;
}

static int window_too_large(struct network_builder *b, struct error *e)
{
    int x = network_builder_convolution(b, network_builder_images(b), "w", 4, window_valid(9, 1), &plain);

    (void)e;
    x = network_builder_dense(b, x, "d", 3, &plain);
    network_builder_cross_entropy(b, x);
    return OK;
}

static int same_name(struct network_builder *b, struct error *e)
{
    int x = network_builder_convolution(b, network_builder_images(b), "w", 4, window_same(3, 1), &plain);

    (void)e;
    network_builder_cross_entropy(b, network_builder_dense(b, x, "w", 3, &plain));
    return OK;
}

static int used_after_change(struct network_builder *b, struct error *e)
{
    const int x = network_builder_convolution(b, network_builder_images(b), "w", 4, window_same(3, 1), &plain);

    (void)e;
    network_builder_bias(b, x, "b", 0, RELU);
    network_builder_cross_entropy(b, network_builder_dense(b, x, "d", 3, &plain));
    return OK;
}

static int changed_while_used(struct network_builder *b, struct error *e)
{
    const int x = network_builder_convolution(b, network_builder_images(b), "w", 4, window_same(3, 1), &plain);

    (void)e;
    network_builder_max_pool(b, x, window_same(2, 2));
    network_builder_bias(b, x, "b", 0, RELU);
    return OK;
}

static int sum_over_relu(struct network_builder *b, struct error *e)
{
    const int x = network_builder_convolution(b, network_builder_images(b), "w", 4, window_same(3, 1), &plain);
    int y = network_builder_convolution(b, x, "v", 4, window_same(3, 1), &plain);

    (void)e;
    y = network_builder_dropout(b, network_builder_bias(b, y, "b", 0, RELU), 0.5);
    network_builder_add(b, y, x);
    return OK;
}

static int wrong_classes(struct network_builder *b, struct error *e)
{
    (void)e;
    network_builder_cross_entropy(b, network_builder_dense(b, network_builder_images(b), "d", 4, &plain));
    return OK;
}

static int unequal_sum(struct network_builder *b, struct error *e)
{
    const int x = network_builder_images(b);

    (void)e;
    network_builder_add(b, network_builder_convolution(b, x, "v", 4, window_same(3, 1), &plain),
                        network_builder_convolution(b, x, "w", 5, window_same(3, 1), &plain));
    return OK;
}

static int says_no(struct network_builder *b, struct error *e)
{
    (void)b;
    return error_set(e, ERR_ARG, "this model says no");
}

static void mistakes(void **state)
{
    static const struct {
        int (*build)(struct network_builder *b, struct error *e);
        const char *says;
    } cases[] = {
        { no_end, "no cross entropy" },    { window_too_large, "no pixels" },  { same_name, "two variables" },
        { used_after_change, "in place" }, { changed_while_used, "in place" }, { wrong_classes, "one logit" },
        { sum_over_relu, "still needs" },  { unequal_sum, "differ in shape" }, { says_no, "says no" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int max_batch = 0; max_batch < 2; max_batch++) {
            const struct model m = {
                .name = "wrong", .height = 6, .width = 6, .channels = 2, .classes = 3, .build = cases[i].build
            };
            struct network *n = NULL;
            struct error e = { 0 };

            assert_int_equal(network_new(&n, &m, max_batch, &e), ERR_ARG);
            if (!strstr(e.message, cases[i].says))
                fail_msg("case %zu says: %s", i, e.message);
            assert_null(n);
        }
}

static void impossible_batch(void **state)
{
    struct network *n = NULL;
    struct error e = { 0 };

    (void)state;
    assert_int_equal(network_new(&n, model_find("lenet"), -1, &e), ERR_ARG);
    network_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes),
        cmocka_unit_test(impossible_batch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
