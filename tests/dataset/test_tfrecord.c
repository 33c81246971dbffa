/* TFRecord files as a data set: order, shapes, labels, parts; ten kinds of broken samples; want of memory. */
#include "dataset/dataset.h"

#include "tests/dataset/data_files.h"
#include "tests/dataset/example_bytes.h"
#include "tests/failing_allocation.h"

enum { FILES = 3, RECORDS = 4, COUNT = FILES * RECORDS, PIXELS = 2 * 3 };

static char place[PATH_MAX];
static struct bytes file, features;
static size_t begins[COUNT]; /* of the records' data in their files */

/* The n-th sample: grey pixels that say which it is. */
static void put_features(int n, int label)
{
    uint8_t pixels[PIXELS];

    memset(pixels, n, sizeof pixels);
    features.n = 0;
    example_text(&features, "image/encoded", pixels, sizeof pixels);
    example_text(&features, "image/format", "RAW", 3);
    example_number(&features, "image/class/label", label);
    example_number(&features, "image/height", 2);
    example_number(&features, "image/width", 3);
    example_number(&features, "image/channels", 1);
    example_number(&features, "group", 3);
}

static void put_files(const char *const *names, int first_label)
{
    for (int f = 0; f < FILES; f++) {
        file.n = 0;
        for (int r = 0; r < RECORDS; r++) {
            put_features(f * RECORDS + r, r + first_label);
            begins[f * RECORDS + r] = example_record(&file, &features);
        }
        file_put(place, names[f], file.at, file.n);
    }
}

static const char *const train_names[FILES] = { "train-0", "train-1", "train-2" };

static int set_up(void **state)
{
    (void)state;
    directory_make(place, sizeof place);
    put_files(train_names, 0);
    file.n = 0;
    put_features(77, 2);
    example_record(&file, &features);
    file_put(place, "validation-0", file.at, file.n);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    directory_remove(place);
    return 0;
}

static struct dataset *open_as(enum dataset_split split, const struct dataset_reading *how, const struct shard *shard)
{
    struct dataset *d;
    struct error e;

    if (dataset_open_as(&d, "tfrecord", place, split, shard, how, &e) != OK)
        fail_msg("%s", e.message);
    return d;
}

static void expect_error(const struct dataset_reading *how, enum dataset_split split, int code, const char *words)
{
    struct dataset *d;
    struct error e;

    assert_int_equal(dataset_open_as(&d, "tfrecord", place, split, NULL, how, &e), code);
    if (!strstr(e.message, words))
        fail_msg("%s: not \"%s\"", e.message, words);
}

static void test_order(void **state)
{
    struct dataset *d = open_as(DATASET_TRAIN, NULL, NULL);
    uint8_t room[PIXELS];
    const void *sample;
    size_t used;

    (void)state;
    assert_int_equal(d->count, COUNT);
    assert_int_equal(d->classes, RECORDS);
    assert_int_equal(d->height, 2);
    assert_int_equal(d->width, 3);
    assert_int_equal(d->channels, 1);
    assert_string_equal(d->files, "train-0, train-1, train-2");
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(dataset_read(d, i, room, &sample, &used, NULL), OK);
        assert_int_equal(room[PIXELS - 1], i);
        assert_int_equal(field_integer(&d->labels, used), i % RECORDS);
    }
    dataset_free(d);
    d = open_as(DATASET_TEST, NULL, NULL); /* its one label would be of 3 classes */
    assert_int_equal(d->count, 1);
    assert_int_equal(d->classes, RECORDS);
    assert_int_equal(dataset_read(d, 0, room, &sample, &used, NULL), OK);
    assert_int_equal(room[0], 77);
    dataset_free(d);
    d = open_as(DATASET_TRAIN, NULL, &(struct shard){ SHARD_FILES, 2, 1, SHARD_MODULO });
    assert_int_equal(d->count, RECORDS);
    assert_int_equal(dataset_read(d, 1, room, &sample, &used, NULL), OK);
    assert_int_equal(room[0], RECORDS + 1);
    assert_int_equal(field_integer(&d->labels, 1), 1);
    dataset_free(d);
    d = open_as(DATASET_TRAIN, NULL, &(struct shard){ SHARD_FILES, 2, 0, SHARD_CONTIGUOUS });
    assert_int_equal(d->count, 2 * RECORDS);
    assert_string_equal(d->files, "train-0, train-1");
    dataset_free(d);
}

static void test_choices(void **state)
{
    uint8_t colours[PIXELS * 3];
    const void *sample;
    struct dataset *d;
    size_t used;

    (void)state;
    d = open_as(DATASET_TRAIN, &(struct dataset_reading){ .train_files = "*-[12]", .classes = 9 }, NULL);
    assert_int_equal(d->count, 2 * RECORDS);
    assert_int_equal(d->classes, 9);
    dataset_free(d);
    d = open_as(DATASET_TEST, &(struct dataset_reading){ .test_files = "train-0" }, NULL);
    assert_int_equal(d->count, RECORDS);
    dataset_free(d);
    d = open_as(DATASET_TRAIN, &(struct dataset_reading){ .example_keys = "label=group", .first_label = 3 }, NULL);
    assert_int_equal(d->classes, 1);
    dataset_free(d);
    expect_error(&(struct dataset_reading){ .train_files = "*.tfrecord" }, DATASET_TRAIN, ERR_ARG, "no file in");
    expect_error(&(struct dataset_reading){ .example_keys = "label" }, DATASET_TRAIN, ERR_ARG, "--example-keys label:");
    expect_error(&(struct dataset_reading){ .example_keys = "label=no" }, DATASET_TRAIN, ERR_CORRUPT, "has no \"no\"");
    expect_error(&(struct dataset_reading){ .first_label = 1 }, DATASET_TRAIN, ERR_CORRUPT, "label 0 is not in 1..");
    expect_error(&(struct dataset_reading){ .classes = 3 }, DATASET_TRAIN, ERR_CORRUPT, "label 3 is not in 0..2");
    put_files(train_names, 1); /* labels from 1 */
    d = open_as(DATASET_TRAIN, &(struct dataset_reading){ .first_label = 1 }, NULL);
    assert_int_equal(d->classes, RECORDS);
    assert_int_equal(field_integer(&d->labels, 5), 1);
    dataset_free(d);
    /* without their shape, pixels have the size asked for */
    memset(colours, 9, sizeof colours);
    file.n = features.n = 0;
    example_text(&features, "image/encoded", colours, sizeof colours);
    example_number(&features, "image/class/label", 1);
    example_record(&file, &features);
    file_put(place, "train-0", file.at, file.n);
    d = open_as(DATASET_TRAIN, &(struct dataset_reading){ .train_files = "train-0", .height = 2, .width = 3 }, NULL);
    assert_int_equal(d->channels, 3);
    assert_int_equal(dataset_read(d, 0, colours, &sample, &used, NULL), OK);
    dataset_free(d);
}

/* Makes record 5, the second of train-1, broken in one of the ways, each with its sentence. */
static const char *make_broken(int kind)
{
    static const char *const words[] = {
        "broken record: its CRC is wrong",
        "broken record: its length is damaged",
        "broken record: its length is damaged, or the file ends in it",
        "broken sample: it is no tf.train.Example",
        "broken sample: it has no \"image/encoded\"",
        "broken sample: it has no \"image/class/label\"",
        "broken sample: its label -4 is not in 0..",
        "broken sample: its label is no integer",
        "is neither JPEG nor PNG, nor pixels of 2x3x1",
        "broken image: ",
        "cannot be brought to 2x3x1",
    };
    uint8_t pixels[PIXELS + 1] = { 0xff, 0xd8, 0xff };

    if (kind >= (int)(sizeof words / sizeof *words))
        return NULL;
    file.n = 0;
    for (int r = 0; r < RECORDS; r++) {
        size_t at;

        put_features(RECORDS + r, r);
        if (r == 1 && kind >= 4) {
            features.n = 0;
            if (kind != 4)
                example_text(&features, "image/encoded", pixels, kind == 8 ? PIXELS + 1 : PIXELS);
            if (kind != 9)
                example_text(&features, "image/format", "raw", 3);
            if (kind == 7)
                example_text(&features, "image/class/label", "cat", 3);
            else if (kind != 5)
                example_number(&features, "image/class/label", kind == 6 ? -4 : 1);
            example_number(&features, "image/height", kind == 10 ? 3 : 2);
            example_number(&features, "image/width", kind == 10 ? 2 : 3);
            example_number(&features, "image/channels", 1);
        }
        at = example_record(&file, &features);
        if (r == 1 && kind == 0)
            file.at[at + 9] ^= 1;
        else if (r == 1 && kind == 1)
            file.at[at - RECORD_HEADER] ^= 1;
        else if (r == 1 && kind == 3) {
            file.at[at] = 0x0f; /* a field of a wire type that is none, in a record whose CRC is right */
            record_seal(file.at + at - RECORD_HEADER, file.n - at - RECORD_FOOTER);
        } else if (r == 1 && kind == 2) {
            file.n -= 5; /* the file ends here */
            break;
        }
    }
    file_put(place, "train-1", file.at, file.n);
    return words[kind];
}

/* Each is named with its file and byte, counted once, and the next good sample takes its place. */
static void test_broken(void **state)
{
    const struct dataset_reading skip = { .skip_bad = 1 };
    uint8_t room[PIXELS];
    const char *words;
    int kinds = 0;

    (void)state;
    for (; (words = make_broken(kinds)); kinds++) {
        const int last = kinds == 2; /* two records are missing behind it */
        struct error e = { 0 }, why = { 0 };
        const void *sample;
        struct dataset *d;
        size_t used = 0;
        char where[64];
        int rc = dataset_open_as(&d, "tfrecord", place, DATASET_TRAIN, NULL, NULL, &e);

        if (rc == OK)
            rc = dataset_read(d, 5, room, &sample, &used, &e);
        dataset_free(d);
        assert_int_equal(rc, ERR_CORRUPT);
        snprintf(where, sizeof where, "byte %zu: broken", begins[5] - RECORD_HEADER);
        if (!strstr(e.message, words) || !strstr(e.message, "train-1: ") || !strstr(e.message, where) ||
            !strstr(e.message, "--bad-samples skip"))
            fail_msg("%s: not \"%s\" and \"%s\"", e.message, words, where);
        d = open_as(DATASET_TRAIN, &skip, NULL);
        assert_int_equal(d->count, last ? COUNT - 2 : COUNT);
        for (int again = 0; again < 2; again++) {
            assert_int_equal(dataset_read(d, 5, room, &sample, &used, &e), OK);
            assert_int_equal(used, 6);
            assert_int_equal(room[0], last ? 8 : 6);
            assert_int_equal(field_integer(&d->labels, used), last ? 0 : 2);
        }
        assert_int_equal(sample_stream_bad(d->stream), 1);
        assert_true(sample_stream_next_bad(d->stream, &why));
        assert_non_null(strstr(why.message, words));
        dataset_free(d);
        d = open_as(DATASET_TEST, &(struct dataset_reading){ .skip_bad = 1, .test_files = "train-1" }, NULL);
        assert_int_equal(d->count, last ? 1 : RECORDS - 1); /* left out, and the others keep their labels */
        assert_int_equal(field_integer(&d->labels, d->count - 1), last ? 0 : 3);
        dataset_free(d);
    }
    assert_true(kinds >= 10);
}

static void test_wrong_files(void **state)
{
    static uint8_t packed[1 << 16];

    (void)state;
    file_put(place, "validation-0", "", 0);
    expect_error(NULL, DATASET_TEST, ERR_ARG, "no records in validation-0");
    file_put(place, "train-1", packed, gzip_pack(file.at, file.n, packed, sizeof packed));
    expect_error(NULL, DATASET_TRAIN, ERR_ARG, "train-1: compressed with gzip");
    for (int f = 0; f < FILES; f++)
        file_put(place, train_names[f], "this is a text, and no record is in it", 38);
    expect_error(NULL, DATASET_TRAIN, ERR_CORRUPT, "train-0: byte 0: broken record: its length is damaged");
    expect_error(&(struct dataset_reading){ .skip_bad = 1 }, DATASET_TRAIN, ERR_CORRUPT, "broken record");
}

static void test_want_of_memory(void **state)
{
    uint8_t room[PIXELS];
    int refused = 0, rc = ERR_NOMEM;

    (void)state;
    for (long at = 1; rc != OK; at++) {
        struct dataset *d = NULL;
        struct error e = { 0 };
        const void *sample;
        size_t used;

        atomic_store(&calls, 0);
        atomic_store(&fail_at, at);
        rc = dataset_open_as(&d, "tfrecord", place, DATASET_TEST, NULL, &(struct dataset_reading){ .skip_bad = 1 }, &e);
        if (rc == OK)
            rc = dataset_read(d, 0, room, &sample, &used, &e);
        atomic_store(&fail_at, 0);
        assert_true(rc == OK || (rc == ERR_NOMEM && strstr(e.message, "no memory")));
        refused += rc != OK;
        dataset_free(d);
    }
    assert_true(refused > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_choices, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_broken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wrong_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_want_of_memory, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
