/* Counts of scored examples against plain loops, ties and numbers that are not finite, and parts that add up. */
#include "evaluator/score/classification.h"

#include "base/random.h"
#include "evaluator/score/metrics/curves.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

enum { CLASSES = 7, EXAMPLES = 500, THRESHOLDS = CURVES_THRESHOLDS };

struct example {
    float logits[CLASSES];
    int32_t label;
};

static void make(struct example *x, size_t n)
{
    struct random r;

    random_init(&r, 3, RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < CLASSES; k++) /* coarse, so that many are equal */
            x[i].logits[k] = (float)random_below(&r, 8) * 0.5f;
        x[i].label = (int32_t)random_below(&r, CLASSES);
    }
}

/* What TensorFlow 2.21's in_top_k(predictions, targets, k) says for k = 1 and 5, worked out by its rules and checked
 * with it in tests/peers; and what argmax makes of the row. */
static void test_rows(void **state)
{
    static const struct {
        float logits[6];
        int32_t label;
        int top1, top5, predicted;
    } rows[] = {
        { { 1, 2, 3, 4, 5, 6 }, 5, 1, 1, 5 },         { { 1, 2, 3, 4, 5, 6 }, 1, 0, 1, 5 },
        { { 1, 2, 3, 4, 5, 6 }, 0, 0, 0, 5 },         { { 0, 0, 0, 0, 0, 0 }, 4, 1, 1, 0 },
        { { 3, 3, 3, 3, 3, 1 }, 5, 0, 0, 0 },         { { 3, 3, 3, 3, 1, 1 }, 5, 0, 1, 0 },
        { { NAN, 2, 3, 4, 5, 6 }, 5, 0, 0, 0 },       { { 1, 2, 3, 4, 5, INFINITY }, 5, 0, 0, 5 },
        { { 1, 2, 3, -INFINITY, 5, 6 }, 5, 0, 0, 5 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int ties = 0; ties < 2; ties++) {
            struct classification c;

            assert_int_equal(classification_init(&c, 6, ties, METRIC_ALL, NULL), OK);
            classification_add(&c, rows[i].logits, rows[i].label);
            assert_int_equal(c.correct, ties ? rows[i].top1 : rows[i].predicted == rows[i].label);
            assert_int_equal(*c.cells[METRIC_top5], rows[i].top5);
            assert_int_equal(c.confusion[rows[i].label * 6 + rows[i].predicted], 1);
            classification_release(&c);
        }
}

static void test_counts(void **state)
{
    struct example x[EXAMPLES];
    struct classification c;
    double worst = 0;

    (void)state;
    make(x, EXAMPLES);
    assert_int_equal(classification_init(&c, CLASSES, 0, 0, NULL), OK);
    assert_true(isnan(classification_top1(&c)) && isnan(classification_mean_recall(&c)));
    for (size_t i = 0; i < EXAMPLES; i++) {
        double sum = 0, loss;

        for (int k = 0; k < CLASSES; k++)
            sum += exp((double)x[i].logits[k]);
        loss = log(sum) - (double)x[i].logits[x[i].label];
        worst = fmax(worst, fabs(loss - classification_add(&c, x[i].logits, x[i].label)));
    }
    assert_true(worst < 1e-12);
    for (size_t i = 0; i < METRIC_COUNT; i++)
        assert_null(c.cells[i]); /* nothing was chosen */
    assert_int_equal(c.examples, EXAMPLES);
    int64_t right = 0, all = 0;
    for (int a = 0; a < CLASSES; a++) {
        int64_t of_label = 0, predicted = 0, both = 0;

        for (size_t i = 0; i < EXAMPLES; i++) {
            int top = 0;

            for (int k = 1; k < CLASSES; k++)
                top = x[i].logits[k] > x[i].logits[top] ? k : top;
            of_label += x[i].label == a;
            predicted += top == a;
            both += x[i].label == a && top == a;
        }
        right += both;
        assert_true(classification_recall(&c, a) == (double)both / (double)of_label);
        assert_true(classification_precision(&c, a) == (double)both / (double)predicted);
        for (int b = 0; b < CLASSES; b++)
            all += c.confusion[a * CLASSES + b];
    }
    assert_int_equal(all, EXAMPLES);
    assert_int_equal(right, c.correct);
    assert_true(classification_top1(&c) == (double)right / (double)EXAMPLES);
    classification_release(&c);
}

/* Classes that are never predicted, never a label, or neither. */
static void test_empty_classes(void **state)
{
    static const float to_0[4] = { 1, 0, 0, 0 }, to_1[4] = { 0, 1, 0, 0 };
    struct classification c;

    (void)state;
    assert_int_equal(classification_init(&c, 4, 0, 0, NULL), OK);
    classification_add(&c, to_0, 0);
    classification_add(&c, to_0, 0);
    classification_add(&c, to_1, 2);
    assert_true(classification_precision(&c, 0) == 1 && classification_recall(&c, 0) == 1);
    assert_true(classification_precision(&c, 1) == 0 && isnan(classification_recall(&c, 1)));
    assert_true(isnan(classification_precision(&c, 2)) && classification_recall(&c, 2) == 0);
    assert_true(isnan(classification_precision(&c, 3)) && isnan(classification_recall(&c, 3)));
    assert_true(classification_mean_precision(&c) == 1.0 / 3 && classification_mean_recall(&c) == 1.0 / 3);
    classification_release(&c);
}

static void test_curve(void **state)
{
    struct example x[EXAMPLES];
    struct classification c;
    double counts[4 * THRESHOLDS];

    (void)state;
    make(x, EXAMPLES);
    assert_int_equal(classification_init(&c, CLASSES, 0, 1u << METRIC_curves, NULL), OK);
    for (size_t i = 0; i < EXAMPLES; i++)
        classification_add(&c, x[i].logits, x[i].label);
    for (int a = 0; a < CLASSES; a++) {
        curves_counts(c.cells[METRIC_curves], CLASSES, a, counts);
        for (int j = 0; j < THRESHOLDS; j++) {
            double want[4] = { 0 };

            for (size_t i = 0; i < EXAMPLES; i++) {
                double sum = 0;
                int positive, yes = x[i].label == a;

                for (int k = 0; k < CLASSES; k++)
                    sum += exp((double)x[i].logits[k]);
                positive = (int)floorf((float)(exp((double)x[i].logits[a]) / sum) * (float)(THRESHOLDS - 1)) >= j;
                want[positive ? !yes : yes ? 3 : 2]++;
            }
            for (int row = 0; row < 4; row++)
                assert_true(counts[row * THRESHOLDS + j] == want[row]);
        }
    }
    classification_release(&c);
}

static void test_parts(void **state)
{
    struct example x[EXAMPLES];
    struct classification whole, parts[3];

    (void)state;
    make(x, EXAMPLES);
    assert_int_equal(classification_init(&whole, CLASSES, 1, METRIC_ALL, NULL), OK);
    for (int p = 0; p < 3; p++)
        assert_int_equal(classification_init(&parts[p], CLASSES, 1, METRIC_ALL, NULL), OK);
    for (size_t i = 0; i < EXAMPLES; i++) {
        classification_add(&whole, x[i].logits, x[i].label);
        classification_add(&parts[i * i % 3], x[i].logits, x[i].label);
    }
    classification_merge(&parts[0], &parts[1]);
    classification_merge(&parts[0], &parts[2]);
    assert_int_equal(parts[0].examples, EXAMPLES);
    assert_int_equal(parts[0].correct, whole.correct);
    assert_int_equal(*parts[0].cells[METRIC_top5], *whole.cells[METRIC_top5]);
    assert_memory_equal(parts[0].confusion, whole.confusion, CLASSES * CLASSES * sizeof(int64_t));
    assert_memory_equal(parts[0].cells[METRIC_curves], whole.cells[METRIC_curves],
                        2 * CLASSES * THRESHOLDS * sizeof(int64_t));
    classification_clear(&parts[0]);
    assert_int_equal(parts[0].examples + parts[0].correct + *parts[0].cells[METRIC_top5], 0);
    for (size_t i = 0; i < parts[0].cell_count; i++)
        assert_int_equal(parts[0].confusion[i], 0);
    for (int p = 0; p < 3; p++)
        classification_release(&parts[p]);
    classification_release(&whole);
}

static void test_refused(void **state)
{
    struct classification c;

    (void)state;
    assert_int_equal(classification_init(&c, 0, 0, 0, NULL), ERR_ARG);
    assert_int_equal(classification_init(&c, CLASSIFICATION_CLASSES_MAX + 1, 0, 0, NULL), ERR_ARG);
    classification_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),  cmocka_unit_test(test_counts), cmocka_unit_test(test_empty_classes),
        cmocka_unit_test(test_curve), cmocka_unit_test(test_parts),  cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
