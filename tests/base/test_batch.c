/* Fields of every element type and rank, and scores added up. */
#include "base/batch.h"

#include "tests/check.h"

static void test_integers(void **state)
{
    static const uint8_t bytes[] = { 0, 255, 7 };
    static const int32_t words[] = { INT32_MIN, -1, INT32_MAX };
    static const int64_t longs[] = { INT64_MIN, -1, INT64_MAX };
    const struct field u8 = { bytes, ELEMENT_UINT8, 1, { 3 } }, i32 = { words, ELEMENT_INT32, 1, { 3 } },
                       i64 = { longs, ELEMENT_INT64, 1, { 3 } };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(field_integer(&u8, i), bytes[i]);
        assert_int_equal(field_integer(&i32, i), words[i]);
        assert_true(field_integer(&i64, i) == longs[i]);
    }
}

static void test_at(void **state)
{
    static const struct {
        enum element element;
        size_t size;
    } rows[] = {
        { ELEMENT_UINT8, 1 }, { ELEMENT_INT32, 4 },   { ELEMENT_FLOAT32, 4 },
        { ELEMENT_INT64, 8 }, { ELEMENT_FLOAT64, 8 },
    };
    static const char data[8 * 5 * 6];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct field labels = { data, rows[i].element, 1, { 5 } };
        const struct field images = { data, rows[i].element, 3, { 5, 2, 3 } };

        assert_ptr_equal(field_at(&labels, 0), data);
        assert_ptr_equal(field_at(&labels, 4), data + 4 * rows[i].size);
        assert_ptr_equal(field_at(&images, 3), data + 3 * 6 * rows[i].size);
    }
}

static void test_part(void **state)
{
    static const float images[5 * 6];
    static const uint8_t labels[5];
    static const int64_t samples[] = { 7, 8, 9, 10, 11 };
    const struct batch whole = { .step = 3,
                                 .count = 5,
                                 .field_count = 2,
                                 .samples = samples,
                                 .fields = { { images, ELEMENT_FLOAT32, 2, { 5, 6 } },
                                             { labels, ELEMENT_UINT8, 1, { 5 } } } };
    const struct batch part = batch_part(&whole, 2, 3);

    (void)state;
    assert_int_equal(part.step, 3);
    assert_int_equal(part.count, 3);
    assert_int_equal(part.samples[0], 9);
    assert_ptr_equal(part.fields[0].data, images + 12);
    assert_ptr_equal(part.fields[1].data, labels + 2);
    assert_int_equal(part.fields[0].shape[0], 3);
    assert_int_equal(part.fields[0].shape[1], 6);
    assert_int_equal(part.fields[1].shape[0], 3);
}

static void test_score(void **state)
{
    struct score s = { 1, 2, 3, 4 };

    (void)state;
    score_add(&s, &(struct score){ 10, 20, 30, 40 });
    assert_true(s.loss == 11 && s.weight == 22);
    assert_int_equal(s.hits, 33);
    assert_int_equal(s.units, 44);
    assert_true(score_loss(&s) == 0.5 && score_precision(&s) == 0.75);
    s = (struct score){ 0 };
    assert_true(score_loss(&s) == 0 && score_precision(&s) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_at),
        cmocka_unit_test(test_part),
        cmocka_unit_test(test_score),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
