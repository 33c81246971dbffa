/* idx files of any shape as a data set: plain on disk and gzipped in memory give the same; what cannot be one. */
#include "dataset/dataset.h"

#include "base/bytes.h"

#include "tests/dataset/data_files.h"
#include "tests/failing_allocation.h"

enum { COUNT = 4 };

static char place[PATH_MAX];
static uint8_t file[1024], packed[2048];

/* An idx file of that type and these sizes, whose bytes count up. Returns its length. */
static size_t make(int type, size_t width, int rank, const uint32_t *sizes)
{
    size_t n = 4 + 4 * (size_t)rank, elements = 1;

    memcpy(file, (const uint8_t[]){ 0, 0, (uint8_t)type, (uint8_t)rank }, 4);
    for (int i = 0; i < rank; i++) {
        elements *= sizes[i];
        for (int k = 0; k < 4; k++)
            file[4 + 4 * i + k] = (uint8_t)(sizes[i] >> (24 - 8 * k));
    }
    for (size_t i = 0; i < elements * width; i++)
        file[n + i] = (uint8_t)((i + 1) % width == 0 ? i / width : 0); /* element i is i */
    return n + elements * width;
}

static void put(const char *name, size_t n, int gzip)
{
    if (gzip)
        file_put(place, name, packed, gzip_pack(file, n, packed, sizeof packed));
    else
        file_put(place, name, file, n);
}

static int set_up(void **state)
{
    (void)state;
    directory_make(place, sizeof place);
    put("train-labels", make(0x08, 1, 1, (const uint32_t[]){ COUNT }), 0);
    put("train-images", make(0x08, 1, 4, (const uint32_t[]){ COUNT, 2, 3, 2 }), 0);
    put("t10k-labels.gz", make(0x0c, 4, 1, (const uint32_t[]){ 2 }), 1);
    put("t10k-images.gz", make(0x08, 1, 4, (const uint32_t[]){ 2, 2, 3, 2 }), 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    directory_remove(place);
    return 0;
}

static struct dataset *open_as(enum dataset_split split, const struct dataset_reading *how)
{
    struct dataset *d;
    struct error e;

    if (dataset_open_as(&d, "idx", place, split, NULL, how, &e) != OK)
        fail_msg("%s", e.message);
    return d;
}

static void expect_error(int code, const char *words, const struct dataset_reading *how)
{
    struct dataset *d;
    struct error e;

    assert_int_equal(dataset_open_as(&d, "idx", place, DATASET_TRAIN, NULL, how, &e), code);
    if (!strstr(e.message, words))
        fail_msg("%s: not \"%s\"", e.message, words);
}

static void test_bytes(void **state)
{
    (void)state;
    for (int test = 0; test < 2; test++) {
        struct dataset *d = open_as(test ? DATASET_TEST : DATASET_TRAIN, NULL);
        uint8_t room[12];
        const void *sample;
        size_t used;

        assert_int_equal(d->count, test ? 2 : COUNT);
        assert_int_equal(d->classes, COUNT); /* of training, also for the test part, which has labels 0 and 1 */
        assert_int_equal(d->height, 2);
        assert_int_equal(d->width, 3);
        assert_int_equal(d->channels, 2);
        assert_true(test == !d->stream);
        for (size_t i = 0; i < d->count; i++) {
            assert_int_equal(dataset_read(d, i, room, &sample, &used, NULL), OK);
            for (size_t k = 0; k < 12; k++)
                assert_int_equal(((const uint8_t *)sample)[k], 12 * i + k);
            assert_int_equal(field_integer(&d->labels, i), i);
        }
        dataset_free(d);
    }
}

/* Numbers of every type, plain and gzipped, with one, two and three sizes. */
static void test_numbers(void **state)
{
    static const struct {
        int type;
        size_t width;
    } types[] = { { 0x09, 1 }, { 0x0b, 2 }, { 0x0c, 4 } };

    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int rank = 2; rank <= 4; rank++)
            for (int gzip = 0; gzip < 2; gzip++) {
                const uint32_t sizes[] = { COUNT, 3, 2, 1 };
                const size_t width = rank == 2 ? 3 : 6;
                struct dataset *d;
                const void *sample;
                float room[6];
                size_t used;

                put("train-images", make(types[t].type, types[t].width, rank, sizes), gzip);
                d = open_as(DATASET_TRAIN, NULL);
                assert_int_equal(d->element, ELEMENT_FLOAT32);
                assert_int_equal(dataset_width(d), width);
                assert_int_equal(d->height, rank == 2 ? 1 : 3);
                for (size_t i = 0; i < COUNT; i++) {
                    assert_int_equal(dataset_read(d, i, room, &sample, &used, NULL), OK);
                    for (size_t k = 0; k < width; k++)
                        assert_true(((const float *)sample)[k] == (float)(width * i + k));
                }
                dataset_free(d);
            }
}

static void test_wrong(void **state)
{
    size_t n;

    (void)state;
    expect_error(ERR_CORRUPT, "label 2 of sample 2 is not in 0..1", &(struct dataset_reading){ .classes = 2 });
    expect_error(ERR_CORRUPT, "label 0 of sample 0 is not in 1..", &(struct dataset_reading){ .first_label = 1 });
    expect_error(ERR_ARG, "no idx file of samples", &(struct dataset_reading){ .train_files = "train-labels" });
    expect_error(ERR_ARG, "both have labels", &(struct dataset_reading){ .train_files = "t*labels*" });
    n = make(0x08, 1, 3, (const uint32_t[]){ COUNT, 2, 3 });
    put("train-images", n - 9, 0);
    expect_error(ERR_CORRUPT, "promises 4 samples, but 3 are in it", NULL);
    put("train-images", n - 3, 0);
    {
        struct dataset *d = open_as(DATASET_TRAIN, NULL);
        uint8_t room[6];
        const void *sample;
        struct error e;
        size_t used;

        assert_int_equal(dataset_read(d, 3, room, &sample, &used, &e), ERR_CORRUPT);
        assert_non_null(strstr(e.message, "train-images: byte 34: broken record: the file ends in it"));
        dataset_free(d);
    }
    put("train-images", 9, 0);
    expect_error(ERR_CORRUPT, "ends inside the idx header", NULL);
    put("train-images", make(0x08, 1, 3, (const uint32_t[]){ 3, 2, 3 }), 0);
    expect_error(ERR_CORRUPT, "3 samples, but the file beside it has 4 labels", NULL);
    put("train-images", make(0x08, 1, 3, (const uint32_t[]){ COUNT, 0, 3 }), 1);
    expect_error(ERR_CORRUPT, "a size of 0", NULL);
    file_put(place, "train-images", "text", 4);
    expect_error(ERR_CORRUPT, "not an idx header", NULL);
    put("train-images", make(0x08, 1, 3, (const uint32_t[]){ COUNT, 2, 3 }), 0);
    put("train-labels", make(0x0d, 4, 1, (const uint32_t[]){ COUNT }), 0);
    expect_error(ERR_CORRUPT, "labels must be integers", NULL);
}

static void test_want_of_memory(void **state)
{
    int refused = 0, rc = ERR_NOMEM;

    (void)state;
    for (long at = 1; rc != OK; at++) {
        struct dataset *d = NULL;
        struct error e = { 0 };

        atomic_store(&calls, 0);
        atomic_store(&fail_at, at);
        rc = dataset_open(&d, "idx", place, at % 2 ? DATASET_TEST : DATASET_TRAIN, NULL, &e);
        atomic_store(&fail_at, 0);
        assert_true(rc == OK || (rc == ERR_NOMEM && strstr(e.message, "no memory")));
        refused += rc != OK;
        dataset_free(d);
    }
    assert_true(refused > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_numbers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wrong, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_want_of_memory, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
