/* Files of equally long records: what --record-fields can say, --data records and CIFAR-100; broken records; want of
 * memory. */
#include "dataset/dataset.h"
#include "dataset/stream/record_layout.h"

#include "base/bytes.h"

#include "tests/dataset/data_files.h"
#include "tests/failing_allocation.h"

enum { RECORD = 9, COUNT = 5 }; /* skip=1,label=2,planes=3x1x2 */

static const char fields[] = "skip=1,label=2,planes=3x1x2";
static char place[PATH_MAX];
static uint8_t file[COUNT * RECORD];

static void put_records(const char *name, int first, int label)
{
    for (int r = 0; r < COUNT; r++) {
        uint8_t *p = file + r * RECORD;

        p[0] = 0xee;
        put_le16(p + 1, (uint16_t)(label + r % 3));
        for (int i = 0; i < 6; i++)
            p[3 + i] = (uint8_t)(10 * (first + r) + i);
    }
    file_put(place, name, file, sizeof file);
}

static int set_up(void **state)
{
    (void)state;
    directory_make(place, sizeof place);
    put_records("test.bin", 20, 300);
    put_records("train-b", 5, 300);
    put_records("train-a", 0, 300);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    directory_remove(place);
    return 0;
}

static struct dataset *open_as(const char *name, enum dataset_split split, const struct dataset_reading *how,
                               const struct shard *shard)
{
    struct dataset *d;
    struct error e;

    if (dataset_open_as(&d, name, place, split, shard, how, &e) != OK)
        fail_msg("%s", e.message);
    return d;
}

static void test_layouts(void **state)
{
    static const struct {
        const char *text;
        size_t bytes, label_at, label_bytes, input_at;
        int height, width, channels, planar;
    } right[] = {
        { "label=1,image=32x30x3", 2881, 0, 1, 1, 32, 30, 3, 0 },
        { "skip=1,label=1,planes=3x32x32", 3074, 1, 1, 2, 32, 32, 3, 1 },
        { "floats=1x4x1,skip=3,label=4,skip=1", 24, 19, 4, 0, 1, 4, 1, 0 },
    };
    static const char *const wrong[] = { "",
                                         "label=1",
                                         "image=2x2x1",
                                         "label=3,image=2x2x1",
                                         "label=0,image=2x2x1",
                                         "label=1,label=1,image=2x2x1",
                                         "label=1,image=2x2",
                                         "label=1,image=2x2x0",
                                         "label=1,image=2x2x1,planes=1x2x2",
                                         "label=1;image=2x2x1",
                                         "labels=1",
                                         "label=1,image=65536x65536x1024",
                                         "label=1,image=2x2x1x",
                                         "skip=-1,label=1",
                                         "label=1,image=+2x2x1",
                                         "label=1,image=2x99999999999x1" };
    struct fixed_layout l;
    struct error e;

    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        assert_int_equal(record_layout_parse(&l, right[i].text, &e), OK);
        assert_int_equal(l.bytes, right[i].bytes);
        assert_int_equal(l.label_at, right[i].label_at);
        assert_int_equal(l.label_bytes, right[i].label_bytes);
        assert_int_equal(l.input_at, right[i].input_at);
        assert_int_equal(l.height, right[i].height);
        assert_int_equal(l.width, right[i].width);
        assert_int_equal(l.channels, right[i].channels);
        assert_int_equal(l.planar, right[i].planar);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(record_layout_parse(&l, wrong[i], &e), ERR_ARG);
        assert_non_null(strstr(e.message, "--record-fields"));
    }
}

static void test_numbers(void **state)
{
    static const struct {
        enum fixed_type type;
        uint8_t bytes[8];
        float value;
    } cases[] = {
        { FIXED_UINT8, { 200 }, 200 },
        { FIXED_INT8, { 200 }, -56 },
        { FIXED_INT16_BIG, { 0xff, 0xfe }, -2 },
        { FIXED_INT32_BIG, { 0xff, 0xff, 0xff, 0xfd }, -3 },
        { FIXED_FLOAT_BIG, { 0x3f, 0xc0, 0, 0 }, 1.5f },
        { FIXED_DOUBLE_BIG, { 0xc0, 0x04, 0, 0, 0, 0, 0, 0 }, -2.5f },
        { FIXED_FLOAT_LITTLE, { 0, 0, 0xc0, 0x3f }, 1.5f },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float out = 0;

        fixed_type_floats(cases[i].type, cases[i].bytes, 1, &out);
        assert_true(out == cases[i].value);
    }
}

static void test_records(void **state)
{
    const struct dataset_reading how = { .record = fields, .first_label = 300 };
    struct dataset *d = open_as("records", DATASET_TRAIN, &how, NULL);
    const void *sample;
    uint8_t room[6];
    size_t used;

    (void)state;
    assert_int_equal(d->count, 2 * COUNT);
    assert_int_equal(d->classes, 3);
    assert_int_equal(d->channels, 3);
    assert_string_equal(d->files, "train-a, train-b");
    for (size_t i = 0; i < d->count; i++) {
        const uint8_t base = (uint8_t)(10 * i), wanted[] = { base,
                                                             (uint8_t)(base + 2),
                                                             (uint8_t)(base + 4),
                                                             (uint8_t)(base + 1),
                                                             (uint8_t)(base + 3),
                                                             (uint8_t)(base + 5) };

        assert_int_equal(dataset_read(d, i, room, &sample, &used, NULL), OK);
        assert_memory_equal(sample, wanted, sizeof wanted);
        assert_int_equal(field_integer(&d->labels, i), i % COUNT % 3);
    }
    dataset_free(d);
    d = open_as("records", DATASET_TRAIN, &how, &(struct shard){ SHARD_FILES, 2, 1, SHARD_MODULO });
    assert_int_equal(d->count, COUNT);
    assert_int_equal(dataset_read(d, 0, room, &sample, &used, NULL), OK);
    assert_int_equal(room[0], 50);
    dataset_free(d);
    put_records("test.bin", 20, 300);
    file_put(place, "test.bin", file, RECORD); /* of its label alone there would be one class */
    d = open_as("records", DATASET_TEST, &how, NULL);
    assert_int_equal(d->count, 1);
    assert_int_equal(d->classes, 3);
    dataset_free(d);
}

/* A file that ends in a record, and a label that is not one of the classes. */
static void test_broken(void **state)
{
    struct dataset_reading how = { .record = fields, .first_label = 300 };
    uint8_t room[6];
    const void *sample;
    struct dataset *d;
    struct error e;
    size_t used;

    (void)state;
    put_records("train-a", 0, 300);
    file_put(place, "train-a", file, sizeof file - 4);
    assert_int_equal(dataset_open_as(&d, "records", place, DATASET_TRAIN, NULL, &how, &e), ERR_CORRUPT);
    assert_non_null(strstr(e.message, "train-a: byte 36: broken record: the file ends in it; records have 9 bytes"));
    assert_non_null(strstr(e.message, "--bad-samples skip"));
    put_le16(file + RECORD + 1, 7);
    file_put(place, "train-a", file, sizeof file - 4);
    assert_int_equal(dataset_open_as(&d, "records", place, DATASET_TRAIN, NULL, &how, &e), ERR_CORRUPT);
    assert_non_null(strstr(e.message, "train-a: byte 9: broken record: its label 7 is not in 300.."));
    how.skip_bad = 1;
    d = open_as("records", DATASET_TRAIN, &how, NULL);
    for (size_t i = 0; i < d->count; i++) {
        assert_int_equal(dataset_read(d, i, room, &sample, &used, NULL), OK);
        assert_int_equal(used, i == 1 ? 2 : i == 4 ? 5 : i);
    }
    assert_int_equal(sample_stream_bad(d->stream), 2);
    dataset_free(d);
    how.test_files = "train-a";
    d = open_as("records", DATASET_TEST, &how, NULL);
    assert_int_equal(d->count, COUNT - 2);
    dataset_free(d);
    assert_int_equal(dataset_open_as(&d, "records", place, DATASET_TRAIN, NULL, NULL, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "needs --record-fields"));
}

static void test_floats(void **state)
{
    const struct dataset_reading how = { .record = "floats=1x2x1,label=1", .test_files = "f" };
    const float numbers[] = { -1.25f, 3e9f };
    uint8_t record[9];
    const void *sample;
    struct dataset *d;
    float room[2];
    size_t used;

    (void)state;
    put_le32(record, float_bits(numbers[0]));
    put_le32(record + 4, float_bits(numbers[1]));
    record[8] = 0;
    file_put(place, "f", record, sizeof record);
    file_put(place, "train-a", record, sizeof record);
    file_put(place, "train-b", record, sizeof record);
    d = open_as("records", DATASET_TEST, &how, NULL);
    assert_int_equal(d->element, ELEMENT_FLOAT32);
    assert_string_equal(dataset_unit(d), "samples");
    assert_int_equal(dataset_read(d, 0, room, &sample, &used, NULL), OK);
    assert_memory_equal(sample, numbers, sizeof numbers);
    dataset_free(d);
}

static void test_cifar100(void **state)
{
    static uint8_t images[2 * 3074];
    uint8_t room[3072];
    const void *sample;
    struct dataset *d;
    struct error e;
    char names[400];
    size_t used;

    (void)state;
    images[0] = 19;
    images[1] = 99;
    images[2] = 1;
    images[2 + 1024] = 2;
    images[2 + 2048] = 3;
    file_put(place, "train.bin", images, sizeof images);
    d = open_as("cifar100", DATASET_TRAIN, NULL, NULL);
    assert_int_equal(d->classes, 100);
    assert_int_equal(d->count, 2);
    assert_int_equal(field_integer(&d->labels, 0), 99);
    assert_null(d->class_names);
    assert_int_equal(dataset_read(d, 0, room, &sample, &used, NULL), OK);
    assert_memory_equal(sample, "\1\2\3\0", 4);
    dataset_free(d);
    for (int i = 0; i < 20; i++)
        snprintf(names + 4 * i, 5, "n%02d\n", i);
    file_put(place, "coarse_label_names.txt", names, 80);
    d = open_as("cifar100-coarse", DATASET_TRAIN, NULL, NULL);
    assert_int_equal(d->classes, 20);
    assert_int_equal(field_integer(&d->labels, 0), 19);
    assert_string_equal(d->class_names[19], "n19");
    dataset_free(d);
    file_put(place, "coarse_label_names.txt", names, 70);
    assert_int_equal(dataset_open(&d, "cifar100-coarse", place, DATASET_TRAIN, NULL, &e), ERR_CORRUPT);
    assert_non_null(strstr(e.message, "names of 20 classes"));
    images[1] = 100;
    file_put(place, "train.bin", images, sizeof images);
    assert_int_equal(dataset_open(&d, "cifar100", place, DATASET_TRAIN, NULL, &e), ERR_CORRUPT);
    assert_non_null(strstr(e.message, "label 100 is not in 0..99"));
    assert_int_equal(dataset_open_as(&d, "cifar100", place, DATASET_TRAIN, NULL,
                                     &(struct dataset_reading){ .record = fields, .given = DATASET_TAKES_RECORD }, &e),
                     ERR_ARG);
}

static void test_want_of_memory(void **state)
{
    const struct dataset_reading how = { .record = fields, .first_label = 300, .skip_bad = 1 };
    int refused = 0, rc = ERR_NOMEM;
    uint8_t room[6];

    (void)state;
    for (long at = 1; rc != OK; at++) {
        struct dataset *d = NULL;
        struct error e = { 0 };
        const void *sample;
        size_t used;

        atomic_store(&calls, 0);
        atomic_store(&fail_at, at);
        rc = dataset_open_as(&d, "records", place, DATASET_TEST, NULL, &how, &e);
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
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test_setup_teardown(test_records, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_broken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_floats, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cifar100, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_want_of_memory, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
