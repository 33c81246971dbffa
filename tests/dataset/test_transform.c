/* transform.h: each transform against a plain one in double written from the specification. */
#include "dataset/transform.h"

#include "base/random.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 32, IMAGE = SIDE * SIDE * 3 };

static struct dataset cifar(const uint8_t *images)
{
    struct dataset d = { .name = "cifar10",
                         .count = 1,
                         .height = SIDE,
                         .width = SIDE,
                         .channels = 3,
                         .classes = 10,
                         .element = ELEMENT_UINT8,
                         .input = images,
                         .stride = IMAGE };
    return d;
}

static void fill(uint8_t *image, uint64_t number)
{
    struct random r;

    random_init(&r, 1, RANDOM_TEST, 0, number);
    for (int i = 0; i < IMAGE; i++)
        image[i] = (uint8_t)random_u32(&r);
}

/* window of the image, pixels outside are 0; then contrast per channel (factor), then standardised. In double. */
static void reference(const uint8_t *image, int top, int left, int side, int flip, double factor, double *out)
{
    int n = side * side * 3;
    double mean = 0, deviation = 0;

    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++)
            for (int c = 0; c < 3; c++) {
                int row = top + y, column = left + (flip ? side - 1 - x : x);
                int inside = row >= 0 && row < SIDE && column >= 0 && column < SIDE;

                out[(y * side + x) * 3 + c] = inside ? image[(row * SIDE + column) * 3 + c] : 0;
            }
    for (int c = 0; c < 3; c++) {
        double m = 0;

        for (int p = 0; p < side * side; p++)
            m += out[p * 3 + c] / (side * side);
        for (int p = 0; p < side * side; p++)
            out[p * 3 + c] = (out[p * 3 + c] - m) * factor + m;
    }
    for (int i = 0; i < n; i++)
        mean += out[i] / n;
    for (int i = 0; i < n; i++)
        deviation += (out[i] - mean) * (out[i] - mean) / n;
    deviation = fmax(sqrt(deviation), 1 / sqrt((double)n));
    for (int i = 0; i < n; i++)
        out[i] = (out[i] - mean) / deviation;
}

static double difference(const float *got, const double *want, int n)
{
    double worst = 0;

    for (int i = 0; i < n; i++)
        worst = fmax(worst, fabs(got[i] - want[i]));
    return worst;
}

static void test_evaluation(void **state)
{
    static double want[IMAGE];
    static float got[IMAGE];
    uint8_t image[IMAGE];
    struct dataset d = cifar(image);

    (void)state;
    for (uint64_t k = 0; k < 20; k++) {
        fill(image, k);
        transform_find("cifar-resnet-eval")->apply(&d, image, k, 5, 6, got);
        reference(image, 0, 0, 32, 0, 1, want);
        assert_true(difference(got, want, IMAGE) < 1e-6);
        transform_find("cifar-tutorial-eval")->apply(&d, image, k, 5, 6, got);
        reference(image, 4, 4, 24, 0, 1, want);
        assert_true(difference(got, want, 24 * 24 * 3) < 1e-6);
        transform_find("unit")->apply(&d, image, k, 5, 6, got);
        for (int i = 0; i < IMAGE; i++)
            assert_true(got[i] == (float)image[i] / 255.0f);
    }
    memset(image, 77, sizeof image); /* a constant image becomes zeros */
    transform_find("cifar-resnet-eval")->apply(&d, image, 0, 0, 0, got);
    for (int i = 0; i < IMAGE; i++)
        assert_true(got[i] == 0);
    image[0] = 78; /* nearly constant: the deviation is below its floor of 1/sqrt(3072) */
    transform_find("cifar-resnet-eval")->apply(&d, image, 0, 0, 0, got);
    assert_true(fabs(got[0] - (1 - 1.0 / 3072) * sqrt(3072)) < 1e-3);
}

/* Each output must be one of the 5x5x2 windows, every one of them must come up, about equally often; and the same
 * (seed, step, sample) must give the same floats, another one in any of the three something else. */
static void test_resnet_train(void **state)
{
    enum { TRIALS = 2000, WINDOWS = 50 };
    const struct transform *t = transform_find("cifar-resnet-train");
    static double want[WINDOWS][IMAGE];
    static float got[IMAGE], again[IMAGE];
    static uint8_t image[IMAGE];
    struct dataset d = cifar(image);
    int found[WINDOWS] = { 0 };

    (void)state;
    fill(image, 3);
    for (int w = 0; w < WINDOWS; w++)
        reference(image, w / 10 - 2, w / 2 % 5 - 2, 32, w % 2, 1, want[w]);
    for (int k = 0; k < TRIALS; k++) {
        int w = 0;

        t->apply(&d, image, 9, k / 100, k, got);
        for (; w < WINDOWS; w++)
            if (fabs(got[1000] - want[w][1000]) < 1e-5 && difference(got, want[w], IMAGE) < 1e-5)
                break;
        assert_true(w < WINDOWS);
        found[w]++;
    }
    for (int w = 0; w < WINDOWS; w++)
        assert_true(found[w] > 15 && found[w] < 70); /* 40 expected, deviation 6.3 */
    t->apply(&d, image, 9, TRIALS / 100 - 1, TRIALS - 1, again);
    assert_memory_equal(got, again, sizeof got);
}

static void test_tutorial_train(void **state)
{
    const struct transform *t = transform_find("cifar-tutorial-train");
    static double want[24 * 24 * 3];
    static float got[24 * 24 * 3];
    uint8_t image[IMAGE];
    struct dataset d = cifar(image);
    double lowest = 9, highest = -9, sum = 0;
    int rows = 0, columns = 0, flips = 0;

    (void)state;
    fill(image, 4);
    for (int k = 0; k < 1000; k++) {
        struct random r;
        int top, left, flip;
        double factor;

        random_init(&r, 5, RANDOM_AUGMENT, 7, (uint64_t)k);
        top = (int)random_below(&r, 9);
        left = (int)random_below(&r, 9);
        flip = (int)random_below(&r, 2);
        random_uniform(&r); /* brightness: standardisation removes it */
        factor = 0.2 + 1.6 * random_uniform(&r);
        t->apply(&d, image, 5, 7, k, got);
        reference(image, top, left, 24, flip, factor, want);
        assert_true(difference(got, want, 24 * 24 * 3) < 1e-5);
        rows |= 1 << top;
        columns |= 1 << left;
        flips += flip;
        lowest = fmin(lowest, factor);
        highest = fmax(highest, factor);
        sum += factor;
    }
    assert_int_equal(rows, 511);
    assert_int_equal(columns, 511);
    assert_in_range(flips, 430, 570);
    assert_true(lowest >= 0.2 && lowest < 0.22 && highest < 1.8 && highest > 1.78 && fabs(sum / 1000 - 1) < 0.06);
}

static void test_find_and_check(void **state)
{
    static const struct {
        const char *name;
        int height, random;
    } known[] = {
        { "unit", 0, 0 },
        { "cifar-tutorial-train", 24, 1 },
        { "cifar-tutorial-eval", 24, 0 },
        { "cifar-resnet-train", 32, 1 },
        { "cifar-resnet-eval", 32, 0 },
    };
    struct dataset colour = cifar(NULL),
                   grey = { .name = "mnist", .height = 28, .width = 28, .channels = 1, .element = ELEMENT_UINT8 };
    struct error e;

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct transform *t = transform_find(known[i].name);

        assert_non_null(t);
        assert_string_equal(t->name, known[i].name);
        assert_int_equal(t->height, known[i].height);
        assert_int_equal(t->random, known[i].random);
        assert_int_equal(transform_check(t, &colour, &e), OK);
        assert_int_equal(transform_check(t, &grey, &e), i == 0 ? OK : ERR_ARG);
    }
    assert_non_null(strstr(e.message, "those of mnist are 28x28x1"));
    assert_null(transform_find("nothing"));
    assert_null(transform_find(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evaluation),
        cmocka_unit_test(test_resnet_train),
        cmocka_unit_test(test_tutorial_train),
        cmocka_unit_test(test_find_and_check),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
