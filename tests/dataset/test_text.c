/* A directory of texts as a data set: its parts, numbers and windows of words, shards, and what is wrong with it. */
#include "dataset/dataset.h"

#include "tests/dataset/data_files.h"

enum { CONTEXT = 5, LINES = 1030 };

static char directory[PATH_MAX];

static int set_up(void **state)
{
    (void)state;
    directory_make(directory, sizeof directory);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    directory_remove(directory);
    return 0;
}

static void put(const char *name, const char *text)
{
    file_put(directory, name, text, strlen(text));
}

static struct dataset *open_text(enum dataset_split split, const struct shard *shard)
{
    struct error e = { 0 };
    struct dataset *d = NULL;

    if (dataset_open(&d, "text", directory, split, shard, &e) < 0)
        fail_msg("%s", e.message);
    assert_int_equal(d->element, ELEMENT_INT32);
    assert_int_equal(dataset_width(d), CONTEXT);
    assert_int_equal(d->classes, 10000);
    assert_true(d->vocabulary != 0);
    return d;
}

/* All words of d: the first window, then the labels. */
static void words_of(const struct dataset *d, char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = 0; i < CONTEXT + d->count; i++) {
        const int64_t number = i < CONTEXT ? ((const int32_t *)dataset_sample(d, 0))[i]
                                           : field_integer(&d->labels, i - CONTEXT);

        assert_true(strlen(text) + 40 < size);
        snprintf(text + strlen(text), 40, "%s%s", i ? " " : "", d->class_names[number]);
    }
    for (size_t i = 0; i + 1 < d->count; i++) /* the next window is one word further */
        for (size_t k = 0; k < CONTEXT; k++) {
            const int32_t *next = dataset_sample(d, i + 1);

            assert_int_equal(next[k], k + 1 < CONTEXT ? ((const int32_t *)dataset_sample(d, i))[k + 1]
                                                      : field_integer(&d->labels, i));
        }
}

static void expect(enum dataset_split split, const struct shard *shard, const char *files, const char *words)
{
    struct dataset *d = open_text(split, shard);
    char text[1000];

    words_of(d, text, sizeof text);
    assert_string_equal(text, words);
    assert_string_equal(d->files, files);
    dataset_free(d);
}

/* Files are read in the order of their names, once each; parts are told by names. */
static void test_named_files(void **state)
{
    char from[PATH_MAX + 16];

    (void)state;
    put("b.train.txt", "B b a\nx");
    put("a.train.txt", "a c a.");
    put("a.test.txt", "a new b c c");
    put("a.valid.txt", "not \xff read");
    put(".hidden.train", "hidden");
    snprintf(from, sizeof from, "%s/0.train", directory);
    assert_int_equal(symlink("b.train.txt", from), 0);
    snprintf(from, sizeof from, "%s/folder.train", directory);
    assert_int_equal(mkdir(from, 0777), 0);
    expect(DATASET_TRAIN, NULL, "a.train.txt, b.train.txt", "a c a . <end> b b a x <end>");
    expect(DATASET_TEST, NULL, "a.test.txt", "a <unk> b c c <end>");
    expect(DATASET_TRAIN, &(struct shard){ SHARD_RECORDS, 9, 8, SHARD_MODULO }, "a.train.txt, b.train.txt",
           "a c a . <end> b b a x <end>");
}

static void test_numbers(void **state)
{
    struct dataset *d;

    (void)state;
    put("train", "z y y x x w w w -");
    put("test", "x x x x x x");
    d = open_text(DATASET_TRAIN, NULL);
    assert_string_equal(d->class_names[0], "<unk>");
    assert_string_equal(d->class_names[1], "<end>");
    assert_string_equal(d->class_names[2], "w"); /* by frequency, then by bytes */
    assert_string_equal(d->class_names[3], "x");
    assert_string_equal(d->class_names[4], "y");
    assert_string_equal(d->class_names[5], "-");
    assert_string_equal(d->class_names[6], "z");
    assert_string_equal(d->class_names[7], "");
    assert_string_equal(d->class_names[9999], "");
    dataset_free(d);
}

/* Every tenth block of 10 lines is for testing; each line has its number. */
static void test_blocks(void **state)
{
    struct buffer text = BUFFER_EMPTY;
    struct dataset *train, *test;
    uint64_t vocabulary;
    size_t at = 0;

    (void)state;
    for (int i = 0; i < LINES; i++)
        buffer_format(&text, "%d\n", i);
    file_put(directory, "numbers", text.data, text.length);
    buffer_release(&text);
    train = open_text(DATASET_TRAIN, NULL);
    test = open_text(DATASET_TEST, NULL);
    vocabulary = train->vocabulary;
    assert_true(test->vocabulary == vocabulary);
    assert_int_equal(CONTEXT + test->count, LINES / 100 * (10 + 1)); /* each piece ends with <end> */
    assert_int_equal(CONTEXT + train->count, LINES - LINES / 100 * 10 + LINES / 100 + 1);
    for (int i = 0; i < LINES; i++) {
        char number[8];

        at += i % 100 == 90; /* <end> */
        if (i % 100 >= 90)
            continue;
        snprintf(number, sizeof number, "%d", i);
        if (at >= CONTEXT)
            assert_string_equal(train->class_names[field_integer(&train->labels, at - CONTEXT)], number);
        at++;
    }
    assert_int_equal(at + 1, CONTEXT + train->count);
    assert_int_equal(field_integer(&test->labels, 10 - CONTEXT), 1);
    assert_int_equal(field_integer(&test->labels, 7), 0); /* numbers that training does not have */
    dataset_free(train);
    dataset_free(test);
    put("one more", "word");
    train = open_text(DATASET_TRAIN, NULL);
    assert_true(train->vocabulary != vocabulary);
    dataset_free(train);
}

/* Words that follow each other, each with the next one as its label; samples do not overlap. */
static void test_sequences(void **state)
{
    struct error e = { 0 };
    struct dataset *d;

    (void)state;
    put("train", "a b c d e f g h i j k l"); /* and <end>: four sequences of three, and the label of the last */
    d = open_text(DATASET_TRAIN, NULL);
    assert_int_equal(dataset_labels(d), 1);
    assert_int_equal(dataset_sequences(d, 3, &e), OK);
    assert_int_equal(d->count, 4);
    assert_int_equal(dataset_labels(d), 3);
    assert_string_equal(dataset_unit(d), "sequences");
    assert_true(d->height == 3 && d->width == 1 && d->channels == 1);
    for (size_t i = 0; i < 12; i++) {
        const int32_t word = ((const int32_t *)dataset_sample(d, i / 3))[i % 3];
        const char letter[] = { (char)('a' + i), '\0' }, next[] = { (char)('b' + i), '\0' };

        assert_string_equal(d->class_names[word], letter);
        assert_string_equal(d->class_names[field_integer(&d->labels, i)], i < 11 ? next : "<end>");
    }
    assert_int_equal(dataset_hold_out(d, 3, &e), OK);
    assert_int_equal(d->count, 1);
    assert_string_equal(d->class_names[*(const int32_t *)dataset_sample(d, 0)], "j");
    assert_string_equal(d->class_names[field_integer(&d->labels, 2)], "<end>");
    assert_int_equal(dataset_sequences(d, 3, &e), ERR_ARG);
    dataset_free(d);
    d = open_text(DATASET_TRAIN, NULL);
    assert_int_equal(dataset_sequences(d, 13, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "has only 13 words; a sample takes 13 and the next one"));
    assert_int_equal(dataset_sequences(d, 12, &e), OK);
    assert_int_equal(d->count, 1);
    dataset_free(d);
}

/* Workers with files of their own have one vocabulary. */
static void test_shards_of_files(void **state)
{
    const struct shard shards[] = { { SHARD_FILES, 2, 0, SHARD_MODULO },
                                    { SHARD_FILES, 2, 1, SHARD_MODULO },
                                    { SHARD_FILES, 4, 3, SHARD_MODULO } };
    struct error e = { 0 };
    struct dataset *d[2], *none;

    (void)state;
    put("1.train", "a a a a b b");
    put("2.train", "c b c d e f");
    put("3.train", "g h i j k l");
    expect(DATASET_TRAIN, &shards[0], "1.train, 3.train", "a a a a b b <end> g h i j k l <end>");
    expect(DATASET_TRAIN, &shards[1], "2.train", "c b c d e f <end>");
    for (int i = 0; i < 2; i++)
        d[i] = open_text(DATASET_TRAIN, &shards[i]);
    assert_true(d[0]->vocabulary == d[1]->vocabulary);
    assert_int_equal(dataset_open(&none, "text", directory, DATASET_TRAIN, &shards[2], &e), ERR_ARG);
    assert_non_null(strstr(e.message, "worker 3 of 4 has no file"));
    for (int i = 0; i < 2; i++)
        dataset_free(d[i]);
}

static void test_errors(void **state)
{
    static const struct {
        const char *name, *text;
        enum dataset_split split;
        int code;
        const char *sentence;
    } cases[] = {
        { NULL, NULL, DATASET_TRAIN, ERR_IO, "no files here; it needs plain text in UTF-8" },
        { "few", "only four words here", DATASET_TRAIN, ERR_CORRUPT, "5 words of text for training" },
        { "few", "enough words for training with them", DATASET_TEST, ERR_CORRUPT, "in lines 91 to 100 of each 100" },
        { "train", "enough words for training with them", DATASET_TEST, ERR_CORRUPT, "\"test\" in their names" },
        { "bytes", "text\xfe and more words after it", DATASET_TRAIN, ERR_CORRUPT, "/bytes: byte 4: fe is not text" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error e = { 0 };
        struct dataset *d;
        char path[PATH_MAX + 16];

        if (cases[i].name)
            put(cases[i].name, cases[i].text);
        assert_int_equal(dataset_open(&d, "text", directory, cases[i].split, NULL, &e), cases[i].code);
        if (!strstr(e.message, cases[i].sentence))
            fail_msg("case %zu: %s", i, e.message);
        snprintf(path, sizeof path, "%s/%s", directory, cases[i].name ? cases[i].name : "");
        assert_true(!cases[i].name || !unlink(path));
    }
}

/* The texts of Debian's base-files, on every Debian machine. */
static void test_licenses(void **state)
{
    struct error e = { 0 };
    struct dataset *d[2];

    (void)state;
    for (int test = 0; test < 2; test++)
        if (dataset_open(&d[test], "text", NULL, test ? DATASET_TEST : DATASET_TRAIN, NULL, &e) < 0)
            fail_msg("%s", e.message);
    assert_true(d[0]->vocabulary == d[1]->vocabulary);
    assert_string_equal(d[0]->class_names[2], "the");
    assert_true(d[0]->count > 20000 && d[1]->count > d[0]->count / 20 && d[1]->count < d[0]->count / 5);
    for (int test = 0; test < 2; test++)
        dataset_free(d[test]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_named_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_numbers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_blocks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sequences, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shards_of_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_errors, set_up, tear_down),
        cmocka_unit_test(test_licenses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
