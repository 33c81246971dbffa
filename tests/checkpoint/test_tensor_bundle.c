/* Whole bundles: the vectors, damage, writing, reading. */
#include "tests/checkpoint/checkpoint_fixture.h"

#include "base/crc32c.h"
#include "checkpoint/checkpoint_directory.h"
#include "checkpoint/string_tensor.h"
#include "checkpoint/tensor_bundle.h"

#include <errno.h>
#include <math.h>

static void write_small(struct fixture *f, const char *prefix)
{
    static const int64_t two[] = { 2 };
    struct tensor_bundle_writer *w;
    struct error e = { 0 };

    assert_int_equal(tensor_bundle_writer_open(&w, NULL, fixture_path(f, prefix), &e), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "conv1/biases", TENSOR_FLOAT, 1, two, small_data, 8, &e), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "conv1/biases/ExponentialMovingAverage", TENSOR_FLOAT, 1, two,
                                              small_data + 8, 8, &e), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "global_step", TENSOR_INT64, 0, NULL, small_data + 16, 8, &e), OK);
    if (tensor_bundle_writer_finish(w, &e) != OK)
        fail_msg("%s", e.message);
}

static void test_written_bytes(void **state)
{
    struct fixture *f = *state;
    struct buffer index, data;

    write_small(f, "model.ckpt-700");
    fixture_read(f, "model.ckpt-700.index", &index);
    fixture_read(f, "model.ckpt-700.data-00000-of-00001", &data);
    assert_int_equal(index.length, SMALL_INDEX);
    assert_memory_equal(index.data, small_index, SMALL_INDEX);
    assert_int_equal(data.length, SMALL_DATA);
    assert_memory_equal(data.data, small_data, SMALL_DATA);
    buffer_release(&index);
    buffer_release(&data);
}

static void test_read_small(void **state)
{
    struct fixture *f = *state;
    struct tensor_bundle *b;
    const struct tensor_entry *entry;
    struct error e = { 0 };
    int64_t step;
    float v[2];

    fixture_write(f, "m-700.index", small_index, SMALL_INDEX);
    fixture_write(f, "m-700.data-00000-of-00001", small_data, SMALL_DATA);
    if (tensor_bundle_open(&b, fixture_path(f, "m-700"), &e) != OK)
        fail_msg("%s", e.message);
    assert_int_equal(tensor_bundle_count(b), 3);
    entry = tensor_bundle_find(b, "conv1/biases/ExponentialMovingAverage");
    assert_non_null(entry);
    assert_int_equal(entry->offset, 8);
    assert_int_equal(entry->crc, 0x81eb10ae);
    assert_int_equal(tensor_bundle_read_float(b, entry, v, 2, &e), OK);
    assert_true(v[0] == 0.5f && v[1] == 0.25f);
    assert_int_equal(tensor_bundle_read_integer(b, tensor_bundle_find(b, "global_step"), &step, &e), OK);
    assert_int_equal(step, 700);
    assert_null(tensor_bundle_find(b, "conv1"));
    tensor_bundle_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_written_bytes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_read_small, fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
