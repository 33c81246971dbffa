/* CSV files as a data set: what is a record, a field, a number, a header; labels that are numbers and names; files that
 * cannot be read so; want of memory. What pandas makes of the same files is in tests/peers/test_csv.py. */
#include "dataset/dataset.h"
#include "dataset/stream/csv_record.h"

#include "tests/dataset/data_files.h"
#include "tests/failing_allocation.h"

#include <math.h>

static char place[PATH_MAX];

static int set_up(void **state)
{
    (void)state;
    directory_make(place, sizeof place);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    directory_remove(place);
    return 0;
}

static void put(const char *name, const char *text)
{
    file_put(place, name, text, strlen(text));
}

static int open_csv(struct dataset **d, enum dataset_split split, const char *format, int skip, struct error *e)
{
    return dataset_open_as(d, "csv", place, split, NULL, &(struct dataset_reading){ .csv = format, .skip_bad = skip },
                           e);
}

/* Samples as "label: number number; ...". */
static const char *contents(const struct dataset *d)
{
    static char text[1024];
    size_t n = 0, used;
    struct error e = { 0 };
    float room[64];
    const void *sample;

    *text = '\0';
    for (size_t i = 0; i < d->count; i++) {
        if (dataset_read(d, i, room, &sample, &used, &e) < 0) {
            snprintf(text + n, sizeof text - n, "%s", e.message);
            return text;
        }
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%d:", i ? "; " : "", (int)field_integer(&d->labels, used));
        for (size_t k = 0; k < dataset_width(d); k++)
            n += (size_t)snprintf(text + n, sizeof text - n, " %.9g",
                                  d->element == ELEMENT_UINT8 ? (double)((const uint8_t *)sample)[k]
                                                              : (double)((const float *)sample)[k]);
    }
    return text;
}

/* What one file of both parts gives; or what an error has in it. */
static const struct {
    const char *what, *format, *text, *want;
    int skip;
} cases[] = {
    { "last column", NULL, "1,2,0\n3,4,1\n", "0: 1 2; 1: 3 4", 0 },
    { "header", NULL, "a,b,c\n1,2,0\n3,4,1\n", "0: 1 2; 1: 3 4", 0 },
    { "column label", NULL, "a,label,c\n1,0,2\n3,1,4\n", "0: 1 2; 1: 3 4", 0 },
    { "label by name", "label=a", "a,label,c\n1,0,2\n", "1: 0 2", 0 },
    { "label by number", "label=1", "1,0,2\n0,5,6\n", "1: 0 2; 0: 5 6", 0 },
    { "label by number below a header", "label=2", "a,b,c\n1,0,2\n", "0: 1 2", 0 },
    { "names", NULL, "1,lime\n2,apple\n3,lime\n", "1: 1; 0: 2; 1: 3", 0 },
    { "names in quotes", NULL, "1,\"a,\"\"b\"\"\n c\"\n2,\"a\"\n", "1: 1; 0: 2", 0 },
    { "CR LF, no end", NULL, "1,2,0\r\n\r\n3,4,1", "0: 1 2; 1: 3 4", 0 },
    { "CR", NULL, "1,2,0\r3,4,1\r", "0: 1 2; 1: 3 4", 0 },
    { "mark of UTF-8", NULL, "\xef\xbb\xbf\"1\",2,0\n", "0: 1 2", 0 },
    { "blanks", NULL, " 1 ,\t2, 0 \n", "0: 1 2", 0 },
    { "numbers", NULL, "+1.5e3,-.25,1e-50,0\n", "0: 1500 -0.25 0", 0 },
    { "semicolons", "separator=semicolon", "1;2;0\n", "0: 1 2", 0 },
    { "tabs", "separator=tab", "1\t2\t0\n", "0: 1 2", 0 },
    { "skipped", "skip=id,skip=3", "id,a,note,b\nx,1,y z,0\n", "0: 1", 0 },
    { "header of numbers", "header=yes", "0,1,2\n5,6,1\n", "1: 5 6", 0 },
    { "no header", "header=no", "x,0\n1,1\n", "line 1: broken sample: 'x' in column 1 is not a number", 0 },
    { "pixels", "pixels=2x1x1,label=1", "7,0,255\n0,1,2\n", "7: 0 255; 0: 1 2", 0 },
    { "no pixels", "pixels=2x1x1,label=1", "7,0,256\n", "line 1: broken sample: '256' in column 3 is not a pixel", 0 },
    { "too few pixels", "pixels=2x2x1", "1,2,0\n", "pixels=2x2x1 are 4, but it has 2 columns beside the label", 0 },
    { "no number", NULL, "1,2,0\n3,,1\n", "line 2: broken sample: '' in column 2 is not a number", 0 },
    { "nan", NULL, "1,2,0\nnan,2,1\n", "line 2: broken sample: 'nan' in column 1", 0 },
    { "hexadecimal", NULL, "1,2,0\n0x10,2,1\n", "line 2: broken sample: '0x10' in column 1", 0 },
    { "too large", NULL, "1,2,0\n1e39,2,1\n", "line 2: broken sample: '1e39' in column 1", 0 },
    { "left out", NULL, "1,2,0\n3,x,1\n4,5,1\n", "0: 1 2; 1: 4 5; 1: 4 5", 1 },
    { "fields", NULL, "1,2,0\n3,4,5,1\n", "line 2: broken sample: it has 4 fields, and the first record has 3", 0 },
    { "label", NULL, "1,2,0\n3,4,x\n", "line 2: broken sample: its label 'x' is not a whole number", 0 },
    { "negative", NULL, "1,2,0\n3,4,-1\n", "line 2: broken sample: its label -1 is not in 0..", 0 },
    { "no label", NULL, "1,2,a\n3,4,\n", "line 2: broken sample: it has no label", 0 },
    { "open quote", NULL, "1,2,0\n3,\"4,1\n", "line 2: broken sample: a quoted field is not closed", 0 },
    { "after a quote", NULL, "1,2,0\n3,\"4\"4,1\n", "line 2: broken sample: a quoted field goes on", 0 },
    { "line in quotes", NULL, "1,\"a\nb\"\n2,\"a\"x\n", "line 3: broken sample: a quoted field goes on", 0 },
    { "no such column", "label=z", "a,b\n1,2\n", "there is no column z; it has 2 columns, named a, b", 0 },
    { "no such number", "label=3", "1,2\n", "there is no column 3; it has 2 columns", 0 },
    { "one column", NULL, "1;2\n", "there is no column but the label's; is the separator ','?", 0 },
    { "nothing", NULL, "\n\n", "no records in", 0 },
    { "a header alone", NULL, "a,b\n", "no records in", 0 },
    { "gzip", NULL, "\x1f\x8b\x08", "is compressed; unpack it first", 0 },
    { "format", "label", "1,2\n", "--csv-format label: label is not possible; the parts are label=COLUMN", 0 },
    { "unknown part", "header=yes,x=1", "1,2\n", "x=1 is no part of it", 0 },
    { "separator", "separator=", "1,2\n", "separator= is not possible", 0 },
    { "pixels without channels", "pixels=2x2", "1,2\n", "pixels=2x2 is not possible", 0 },
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error e = { 0 };
        struct dataset *d;
        const char *got;
        int rc;

        put("train.csv", cases[i].text);
        rc = open_csv(&d, DATASET_TRAIN, cases[i].format, cases[i].skip, &e);
        got = rc < 0 ? e.message : contents(d);
        if (strchr(cases[i].want, ':') && cases[i].want[0] >= '0' && cases[i].want[0] <= '9'
                ? strcmp(got, cases[i].want) != 0
                : !strstr(got, cases[i].want))
            fail_msg("%s: '%s', not '%s'", cases[i].what, got, cases[i].want);
        if (rc == OK)
            dataset_free(d);
    }
}

/* The test part has the columns and classes of the training part. */
static void test_parts(void **state)
{
    static const struct {
        const char *train, *test, *want;
    } parts[] = {
        { "a,b\n1,x\n2,z\n3,y\n", "a,b\n4,z\n", "2: 4" },
        { "a,b\n1,x\n2,z\n", "5,z\n", "1: 5" },
        { "a,b\n1,x\n", "b,a\n4,x\n", "its header differs from that of" },
        { "a,b\n1,x\n", "a,b\n4,q\n", "line 2: broken sample: its label 'q' is not one of the training part's" },
        { "1,0\n1,2\n", "7,1\n", "1: 7" },
        { "1,0\n1,2\n", "7,3\n", "its label 3 is not in 0..2" },
        { "1,0\n1,2\n", "7,1,1\n", "it has 3 fields, and the first record has 2" },
        { "1,0\n1\n", "7,1\n", "train.csv: line 2: broken sample: it has 1 fields" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct error e = { 0 };
        struct dataset *d;
        int rc;

        put("train.csv", parts[i].train);
        put("test.csv", parts[i].test);
        rc = open_csv(&d, DATASET_TEST, NULL, 0, &e);
        if (!strstr(rc < 0 ? e.message : contents(d), parts[i].want))
            fail_msg("%zu: '%s', not '%s'", i, rc < 0 ? e.message : contents(d), parts[i].want);
        if (rc < 0)
            continue;
        assert_string_equal(d->files, "test.csv");
        if (i < 2)
            assert_string_equal(d->class_names[0], "x");
        dataset_free(d);
    }
    put("train.csv", "1,x\n2,z\n3,y\n");
    put("test.csv", "4,z\n4,q\n1,y\n");
    struct dataset *d;

    assert_int_equal(open_csv(&d, DATASET_TEST, NULL, 1, NULL), OK); /* broken ones are left out, and do not count */
    assert_string_equal(contents(d), "2: 4; 1: 1");
    dataset_free(d);
    assert_int_equal(dataset_open_as(&d, "csv", place, DATASET_TEST, NULL,
                                     &(struct dataset_reading){ .classes = 5, .skip_bad = 1 }, NULL),
                     OK);
    assert_int_equal(d->classes, 5);
    assert_string_equal(d->class_names[2], "z");
    assert_string_equal(d->class_names[4], "");
    dataset_free(d);
    struct error e = { 0 };

    assert_int_equal(
        dataset_open_as(&d, "csv", place, DATASET_TRAIN, NULL, &(struct dataset_reading){ .classes = 2 }, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "--classes 2: the labels of train.csv and the others are 3 names"));
}

/* Two files of a part, shared by files: both have all classes. */
static void test_shards(void **state)
{
    struct dataset *d;

    (void)state;
    put("train.csv", "a,b\n1,x\n2,z\n");
    put("train2.csv", "a,b\n3,y\n");
    for (int worker = 0; worker < 2; worker++) {
        const struct shard shard = { SHARD_FILES, 2, worker, SHARD_MODULO };

        assert_int_equal(dataset_open_as(&d, "csv", place, DATASET_TRAIN, &shard, NULL, NULL), OK);
        assert_string_equal(contents(d), worker ? "1: 3" : "0: 1; 2: 2");
        assert_string_equal(d->files, worker ? "train2.csv" : "train.csv");
        assert_int_equal(d->classes, 3);
        dataset_free(d);
    }
    put("train2.csv", "");
}

/* A record that is longer than the window in which files are read, and one that begins at each place near its end. */
static void test_windows(void **state)
{
    enum { LONG = 70000 };
    char *text = malloc(2 * LONG + 64);
    struct dataset *d;

    (void)state;
    assert_non_null(text);
    for (size_t shift = 0; shift < 12; shift++) {
        const size_t blank = 65536 - 6 - shift;
        int n = sprintf(text, "1,\"%*s\"\n2,\"q\r\n\"\"\"\n", (int)blank, "x");

        file_put(place, "train.csv", text, (size_t)n);
        assert_int_equal(open_csv(&d, DATASET_TRAIN, NULL, 0, NULL), OK);
        assert_string_equal(contents(d), "0: 1; 1: 2");
        assert_string_equal(d->class_names[1], "q\r\n\"");
        dataset_free(d);
    }
    free(text);
}

static void test_memory(void **state)
{
    (void)state;
    put("train.csv", "a,b\n1,x\n2,z\n3,y\n");
    put("test.csv", "a,b\n1,x\n2,z\n");
    for (long n = 1;; n++) {
        struct error e = { 0 };
        struct dataset *d;
        int rc;

        atomic_store(&calls, 0);
        atomic_store(&fail_at, n);
        rc = open_csv(&d, DATASET_TEST, NULL, 0, &e);
        if (rc == OK && atomic_load(&calls) >= n) { /* what is read later */
            atomic_store(&fail_at, 0);
            dataset_free(d);
            continue;
        }
        atomic_store(&fail_at, 0);
        if (rc == OK) {
            assert_true(n > 20);
            dataset_free(d);
            return;
        }
        assert_int_equal(rc, ERR_NOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cases, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_parts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shards, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_windows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memory, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
