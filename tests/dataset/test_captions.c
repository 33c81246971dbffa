/* Captions as a data set: annotations, vocabulary and features put together, padded, in batches; every mistake named. */
#include "dataset/batch_source.h"
#include "dataset/captions/caption_set.h"
#include "tests/dataset/data_files.h"

#include <math.h>

static const char annotations[] =
    "{\"info\":{\"year\":2014},\"images\":[{\"id\":70,\"file_name\":\"b.png\",\"height\":2},"
    "{\"id\":9,\"file_name\":\"a.jpg\"},{\"id\":5,\"file_name\":\"none.jpg\"}],"
    "\"annotations\":[{\"image_id\":9,\"id\":1,\"caption\":\"A cat sat.\"},"
    "{\"image_id\":70,\"id\":2,\"caption\":\"The DOG, a cat\"},"
    "{\"image_id\":9,\"id\":3,\"caption\":\"\"}]}";
/* a 0, <S> 1, </S> 2, cat 3, . 4, sat 5, the 6, <UNK> 7 */
static const char words[] = "a 9\n<S> 5\n</S> 5\ncat 3\n. 2\nsat 2\nthe";

static char directory[PATH_MAX], sub[4][PATH_MAX + 64];

static void put_features(const char *part, const int64_t *ids, size_t rows, size_t width)
{
    float features[24];
    char path[PATH_MAX + 128];
    struct error e = { 0 };

    for (size_t i = 0; i < rows * width; i++)
        features[i] = (float)ids[i / width] + (float)(i % width) / 8;
    snprintf(path, sizeof path, "%s/features/%s.safetensors", directory, part);
    if (feature_table_write(path, features, ids, rows, width, &e) < 0)
        fail_msg("%s", e.message);
}

static int set_up(void **state)
{
    static const int64_t ids[] = { 9, 5, 70 };
    static const char *const folders[] = { "annotations", "features" };

    (void)state;
    directory_make(directory, sizeof directory);
    for (int i = 0; i < 2; i++) {
        snprintf(sub[i], sizeof sub[i], "%s/%s", directory, folders[i]);
        assert_int_equal(mkdir(sub[i], 0777), 0);
    }
    file_put(sub[0], "captions_train2014.json", annotations, sizeof annotations - 1);
    file_put(sub[0], "captions_val2014.json", annotations, sizeof annotations - 1);
    file_put(sub[0], "instances_train2014.json", "{}", 2);
    file_put(directory, "word_counts.txt", words, sizeof words - 1);
    put_features("train2014", ids, 3, 3);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    directory_remove(directory);
    return 0;
}

static struct dataset *open_set(enum dataset_split split, int length, int features, int classes)
{
    struct dataset *d = NULL;
    struct error e = { 0 };

    if (dataset_open(&d, "captions", directory, split, NULL, &e) < 0 ||
        (length && dataset_sequences(d, length, &e) < 0) || dataset_fit(d, features, classes, &e) < 0)
        fail_msg("%s", e.message);
    return d;
}

static void expect_row(const void *row, const int32_t *want, size_t n)
{
    assert_memory_equal(row, want, n * sizeof *want);
}

/* Of images in the order of the file: the first one's caption, then both of the second. */
static void samples(void **state)
{
    struct dataset *d = open_set(DATASET_TRAIN, 0, 0, 0);
    float features[5];

    (void)state;
    assert_int_equal(d->count, 3);
    assert_int_equal(d->classes, 8);
    assert_int_equal(d->height, 6); /* of the longest: five words and <S> */
    assert_string_equal(dataset_unit(d), "sequences");
    assert_string_equal(d->class_names[7], "<UNK>");
    expect_row(dataset_sample(d, 0), (int32_t[]){ 1, 6, 7, 7, 0, 3 }, 6);
    expect_row(field_at(&d->labels, 0), (int32_t[]){ 6, 7, 7, 0, 3, 2 }, 6);
    expect_row(dataset_sample(d, 1), (int32_t[]){ 1, 0, 3, 5, 4, -1 }, 6);
    expect_row(field_at(&d->labels, 1), (int32_t[]){ 0, 3, 5, 4, 2, -1 }, 6);
    expect_row(dataset_sample(d, 2), (int32_t[]){ 1, -1, -1, -1, -1, -1 }, 6);
    expect_row(field_at(&d->labels, 2), (int32_t[]){ 2, -1, -1, -1, -1, -1 }, 6);
    dataset_free(d);
    d = open_set(DATASET_TRAIN, 3, 5, 10); /* shorter than the captions */
    expect_row(dataset_sample(d, 1), (int32_t[]){ 1, 0, 3 }, 3);
    expect_row(field_at(&d->labels, 1), (int32_t[]){ 0, 3, 5 }, 3);
    assert_int_equal(d->classes, 10);
    assert_string_equal(d->class_names[9], "");
    assert_string_equal(d->class_names[6], "the");
    assert_int_equal(dataset_hold_out(d, 1, NULL), OK);
    expect_row(dataset_sample(d, 0), (int32_t[]){ 1, 0, 3 }, 3);
    assert_int_equal(dataset_features(d, 0, features, NULL), OK);
    for (int k = 0; k < 5; k++) /* the third row of the file is the first image's, and the first the second one's */
        assert_true(features[k] == (k < 3 ? 9 + (float)k / 8 : 0));
    dataset_free(d);
}

static void batches(void **state)
{
    struct dataset *d = open_set(DATASET_TRAIN, 6, 4, 8);
    const struct batch_source_options options = { .shard = { .kind = SHARD_RECORDS, .count = 1 },
                                                  .batch_size = 3,
                                                  .seed = 1 };
    struct batch_source *s = NULL;
    const struct batch *b = NULL;
    struct error e = { 0 };
    double weight = 0;

    (void)state;
    if (batch_source_new(&s, d, &options, &e) < 0 || batch_source_next(s, &b, &e) < 0)
        fail_msg("%s", e.message);
    assert_int_equal(b->field_count, FIELD_FEATURES + 1);
    for (size_t i = 0; i < 3; i++) {
        const int32_t *input = field_at(&b->fields[FIELD_INPUT], i), *labels = field_at(&b->fields[FIELD_LABELS], i);
        const float *weights = field_at(&b->fields[FIELD_WEIGHTS], i), *f = field_at(&b->fields[FIELD_FEATURES], i);

        assert_int_equal(input[0], 1);
        assert_true(f[0] == (input[1] == 6 ? 70 : 9) && f[3] == 0);
        for (size_t t = 0; t < 6; t++) {
            assert_true(weights[t] == (t == 0 || input[t] >= 0));
            assert_true(weights[t] == 1 || labels[t] == 0);
            weight += (double)weights[t];
        }
    }
    assert_true(weight == 6 + 5 + 1);
    batch_source_free(s);
    dataset_free(d);
}

/* The test part has no features: a language model of captions needs none. */
static void without_features(void **state)
{
    struct dataset *d = open_set(DATASET_TEST, 6, 0, 8);
    struct error e = { 0 };

    (void)state;
    assert_int_equal(dataset_fit(d, 4, 8, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "'dataset encode' makes them"));
    dataset_free(d);
    d = open_set(DATASET_TRAIN, 6, 0, 8);
    dataset_free(d);
    d = open_set(DATASET_TRAIN, 6, 4, 8);
    d->features = 3;
    assert_int_equal(dataset_fit(d, 2, 8, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "has 3 features of an image, and the model reads only 2"));
    dataset_free(d);
}

static void refuse_open(const char *want)
{
    struct dataset *d = NULL;
    struct error e = { 0 };

    assert_true(dataset_open(&d, "captions", directory, DATASET_TRAIN, NULL, &e) < 0);
    if (!strstr(e.message, want))
        fail_msg("'%s' is not in: %s", want, e.message);
}

static void mistakes_of_files(void **state)
{
    static const int64_t twice[] = { 9, 9, 70 }, few[] = { 9 };
    static const struct {
        const char *file, *text, *want;
    } cases[] = {
        { "word_counts.txt", "a 9\n</S> 5", "has no line for <S>, which begins a sentence" },
        { "word_counts.txt", "<S> 9\na 5", "has no line for </S>, which ends a sentence" },
        { "word_counts.txt", "<S> 9\n</S> 5\n<S> 3\n", "line 3: the word '<S>' is in line 1, too" },
        { "word_counts.txt", "<S> 9\n\n</S> 5", "line 2: begins with no word" },
        { "annotations/captions_train2014.json", "{\"images\":[]", "byte 12: is no JSON" },
        { "annotations/captions_train2014.json", "[]", "has no array \"images\"" },
        { "annotations/captions_train2014.json", "{\"images\":[]}", "has no array \"annotations\"" },
        { "annotations/captions_train2014.json", "{\"images\":[],\"annotations\":[]}", "has no captions" },
        { "annotations/captions_train2014.json", "{\"images\":[{\"id\":\"1\"}],\"annotations\":[]}",
          "images[0]: has no integer \"id\"" },
        { "annotations/captions_train2014.json", "{\"images\":[{\"id\":1}],\"annotations\":[]}",
          "images[0]: has no \"file_name\"" },
        { "annotations/captions_train2014.json", "{\"images\":[{\"id\":1,\"file_name\":\"../x\"}],\"annotations\":[]}",
          "images[0]: has no \"file_name\" that is the name of a file, without a folder" },
        { "annotations/captions_train2014.json",
          "{\"images\":[{\"id\":1,\"file_name\":\"x\"},{\"id\":1,\"file_name\":\"y\"}],\"annotations\":[]}",
          "has the \"id\" of an earlier image" },
        { "annotations/captions_train2014.json", "{\"images\":[],\"annotations\":[{\"image_id\":1,\"caption\":\"x\"}]}",
          "annotations[0]: is of an \"image_id\" that no image has" },
        { "annotations/captions_train2014.json",
          "{\"images\":[{\"id\":9,\"file_name\":\"x\"}],\"annotations\":[{\"image_id\":9}]}",
          "annotations[0]: has no \"caption\"" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        file_put(directory, cases[i].file, cases[i].text, strlen(cases[i].text));
        refuse_open(cases[i].want);
        file_put(directory, "word_counts.txt", words, sizeof words - 1);
        file_put(sub[0], "captions_train2014.json", annotations, sizeof annotations - 1);
    }
    file_put(sub[0], "captions_train2017.json", annotations, sizeof annotations - 1);
    refuse_open("has 2 files captions_train*.json; need one");
    snprintf(sub[2], sizeof sub[2], "%s/annotations/captions_train2017.json", directory);
    assert_int_equal(unlink(sub[2]), 0);
    put_features("train2014", twice, 3, 3);
    refuse_open("rows 0 and 1 are of the same image, 9");
    put_features("train2014", few, 1, 3);
    refuse_open("has no features of image 70, which");
    file_put(sub[1], "train2014.safetensors", "12345678", 8);
    refuse_open("train2014.safetensors");
    snprintf(sub[2], sizeof sub[2], "%s/word_counts.txt", directory);
    assert_int_equal(unlink(sub[2]), 0);
    refuse_open("'dataset vocabulary");
}

/* A row that is not finite is an error where it is read, and one that was cut off, too. */
static void damaged_features(void **state)
{
    static const float features[] = { 1, 2, 3, INFINITY };
    static const int64_t ids[] = { 70, 9 };
    struct feature_table *t = NULL;
    struct error e = { 0 };
    char path[PATH_MAX + 64];
    float row[2];
    size_t at;

    (void)state;
    snprintf(path, sizeof path, "%s/damaged.safetensors", directory);
    assert_int_equal(feature_table_write(path, features, ids, 2, 2, &e), OK);
    assert_int_equal(feature_table_open(&t, path, &e), OK);
    assert_int_equal(feature_table_find(t, 70, &at), 1);
    assert_int_equal(feature_table_read(t, at, row, &e), OK);
    assert_true(row[0] == 1 && row[1] == 2);
    assert_int_equal(feature_table_find(t, 9, &at), 1);
    assert_int_equal(feature_table_read(t, at, row, &e), ERR_CORRUPT);
    assert_non_null(strstr(e.message, "row 1: feature 1 is not finite"));
    assert_int_equal(feature_table_find(t, 10, &at), 0);
    assert_int_equal(truncate(path, 20), 0);
    assert_int_equal(feature_table_read(t, 0, row, &e), ERR_CORRUPT);
    assert_non_null(strstr(e.message, "it has become shorter"));
    feature_table_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(samples, set_up, tear_down),
        cmocka_unit_test_setup_teardown(batches, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_features, set_up, tear_down),
        cmocka_unit_test_setup_teardown(mistakes_of_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damaged_features, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
