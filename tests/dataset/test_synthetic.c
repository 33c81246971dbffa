/* synthetic.c: data made to fit a model; equal for all who read them, and other ones for testing. */
#include "dataset/dataset.h"

#include "dataset/transform.h"
#include "tests/check.h"

#include <string.h>

static struct dataset *open_fit(enum dataset_split split, struct dataset_shape fit)
{
    const struct dataset_reading how = { .fit = fit };
    struct dataset *d;
    struct error e;

    if (dataset_open_as(&d, "synthetic", NULL, split, NULL, &how, &e) != OK)
        fail_msg("%s", e.message);
    return d;
}

static void test_images(void **state)
{
    const struct dataset_shape fit = { 5, 7, 3, 11, 0 };
    struct dataset *d = open_fit(DATASET_TRAIN, fit), *again = open_fit(DATASET_TRAIN, fit);
    struct dataset *test = open_fit(DATASET_TEST, fit);
    uint8_t one[105], same[105], other[105];
    size_t used, seen[11] = { 0 };
    const void *sample;
    double sum = 0;

    (void)state;
    assert_int_equal(d->count, 50000);
    assert_int_equal(test->count, 10000);
    assert_int_equal(d->height, 5);
    assert_int_equal(d->width, 7);
    assert_int_equal(d->channels, 3);
    assert_int_equal(d->classes, 11);
    assert_int_equal(dataset_bytes(d), sizeof one);
    for (size_t i = 0; i < 1000; i++) {
        assert_int_equal(dataset_read(d, i, one, &sample, &used, NULL), OK);
        assert_ptr_equal(sample, one);
        assert_int_equal(used, i);
        assert_int_equal(dataset_read(again, i, same, &sample, &used, NULL), OK);
        assert_int_equal(dataset_read(test, i, other, &sample, &used, NULL), OK);
        assert_memory_equal(one, same, sizeof one);
        assert_memory_not_equal(one, other, sizeof one);
        seen[field_integer(&d->labels, i)]++;
        for (size_t k = 0; k < sizeof one; k++)
            sum += one[k];
    }
    assert_true(sum / 105000 > 126 && sum / 105000 < 129); /* 127.5 +- 0.23 */
    for (int k = 0; k < 11; k++)
        assert_true(seen[k] > 50); /* 91 +- 9 */
    dataset_free(d);
    dataset_free(again);
    dataset_free(test);
}

static void test_size(void **state)
{
    const struct dataset_reading scaled = { .height = 64, .width = 32, .fit = { 224, 224, 3, 1000, 0 } };
    struct dataset_shape fit = { 24, 24, 3, 10, 0 };
    struct dataset *d;

    (void)state;
    assert_int_equal(dataset_open_as(&d, "synthetic", NULL, DATASET_TRAIN, NULL, &scaled, NULL), OK);
    assert_int_equal(d->height, 64);
    assert_int_equal(d->width, 32);
    dataset_free(d);
    transform_fit(transform_find("cifar-tutorial-train"), &fit); /* cuts 24x24 out of 32x32 */
    d = open_fit(DATASET_TRAIN, fit);
    assert_int_equal(d->height, 32);
    assert_int_equal(transform_check(transform_find("cifar-tutorial-train"), d, NULL), OK);
    dataset_free(d);
}

static void test_words(void **state)
{
    struct dataset *d = open_fit(DATASET_TRAIN, (struct dataset_shape){ 20, 1, 1, 100000, 1 });
    const int32_t *tokens = d->input;
    size_t first = 0, late = 0;

    (void)state;
    assert_int_equal(d->element, ELEMENT_INT32);
    assert_int_equal(d->count, 1000000);
    for (size_t i = 0; i < d->count; i++) {
        assert_in_range(tokens[i], 0, 99999);
        assert_int_equal(field_integer(&d->labels, i), tokens[i + 20]);
        first += tokens[i] == 0;
        late += tokens[i] >= 50000;
    }
    assert_in_range(first, 59000, 61500); /* log 2 / log 100001 = 0.0602 */
    assert_in_range(late, 59000, 61500);  /* the same: from half to all of them */
    assert_int_equal(dataset_sequences(d, 20, NULL), OK);
    assert_int_equal(d->count, 50000); /* (1000000 + 20 - 1) / 20 */
    assert_int_equal(field_integer(&d->labels, 0), tokens[1]);
    dataset_free(d);
}

static void test_errors(void **state)
{
    const struct dataset_reading no_size = { .fit = { .classes = 10 } }, none = { 0 };
    const struct dataset_reading whole = { .fit = { 8, 8, 1, 2, 0 } };
    const struct shard files = { SHARD_FILES, 2, 1, SHARD_MODULO };
    struct dataset *d;
    struct error e;

    (void)state;
    assert_int_equal(dataset_open_as(&d, "synthetic", NULL, DATASET_TRAIN, NULL, &none, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "how many classes? they are made to fit the model"));
    assert_int_equal(dataset_open_as(&d, "synthetic", NULL, DATASET_TRAIN, NULL, &no_size, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "how large are images?"));
    assert_int_equal(dataset_open_as(&d, "synthetic", NULL, DATASET_TRAIN, &files, &whole, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "--shard files"));
    assert_int_equal(dataset_open_as(&d, "synthetic", "/tmp", DATASET_TRAIN, NULL, &whole, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "--data-dir"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_images),
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
