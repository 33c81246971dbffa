/* What a bundle's writer and its reading by pieces refuse, and how. */
#include "tests/checkpoint/checkpoint_fixture.h"

#include "checkpoint/string_tensor.h"
#include "checkpoint/tensor_bundle.h"

#include <errno.h>

static const int64_t two[] = { 2 }, four_two[] = { 4, 2 }, three_two[] = { 3, 2 }, whole[] = { -1, -1 },
                     none[] = { 0, 0 };
static const float values[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };

static void test_tensors(void **state)
{
    static const int64_t negative[] = { -2 };
    static const struct {
        const char *name;
        int type, rank;
        const int64_t *shape;
        size_t n;
        const char *says;
    } cases[] = {
        { "", TENSOR_FLOAT, 1, two, 8, "a tensor needs a name" },
        { "a", TENSOR_FLOAT, -1, two, 8, "rank -1" },
        { "a", TENSOR_FLOAT, TENSOR_RANK_MAX + 1, two, 8, "rank 255" },
        { "a", TENSOR_FLOAT, 1, negative, 8, "negative or too large dimension" },
        { "a", TENSOR_FLOAT, 1, two, 9, "9 bytes do not match" },
        { "a", TENSOR_FLOAT, 1, two, 4, "4 bytes do not match" },
        { "a", TENSOR_VARIANT, 1, two, 8, "has no fixed size" },
    };
    static const struct tensor_string strings[] = { { "a", 1 } };
    struct fixture *f = *state;
    struct tensor_bundle_writer *w;
    struct error e = { 0 };

    assert_int_equal(tensor_bundle_writer_open(&w, NULL, fixture_path(f, "m"), &e), OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(tensor_bundle_writer_add(w, cases[i].name, cases[i].type, cases[i].rank, cases[i].shape,
                                                  values, cases[i].n, &e),
                         ERR_ARG);
        assert_says(e, cases[i].says);
    }
    assert_int_equal(tensor_bundle_writer_begin(w, "", TENSOR_FLOAT, 1, two, &e), ERR_ARG);
    assert_int_equal(tensor_bundle_writer_add_strings(w, "", 1, two, strings, 1, &e), ERR_ARG);
    assert_int_equal(tensor_bundle_writer_add_strings(w, "s", 1, two, strings, 1, &e), ERR_ARG);
    assert_says(e, "1 strings do not match");
    tensor_bundle_writer_abandon(w);
    tensor_bundle_writer_abandon(NULL);
}

static void test_slices(void **state)
{
    static const int64_t from_one[] = { 1, 0 }, minus_one[] = { -1, 0 }, two_rows[] = { 2, -1 },
                         five_rows[] = { 5, -1 };
    static const struct {
        const char *name;
        int type, rank;
        const int64_t *shape, *start, *length;
        size_t n;
        const char *says;
    } cases[] = {
        { "", TENSOR_FLOAT, 2, four_two, none, whole, 32, "a tensor needs a name" },
        { "a", TENSOR_FLOAT, 2, four_two, minus_one, two_rows, 16, "does not lie within dimension 0 of size 4" },
        { "a", TENSOR_FLOAT, 2, four_two, from_one, whole, 32, "does not lie within" },
        { "a", TENSOR_FLOAT, 2, four_two, none, five_rows, 40, "does not lie within" },
        { "a", TENSOR_STRING, 2, four_two, none, whole, 32, "has no fixed size" },
        { "a", TENSOR_FLOAT, 2, four_two, none, two_rows, 12, "12 bytes do not match the shape of the slice" },
        { "a", TENSOR_FLOAT, 2, four_two, none, two_rows, 17, "17 bytes do not match" },
        { "a", TENSOR_FLOAT, 2, four_two, none, two_rows, 16, NULL },
        { "b", TENSOR_FLOAT, 2, four_two, none, two_rows, 16, NULL },
        { "a", TENSOR_INT32, 2, four_two, none, two_rows, 16, "an earlier slice had another type or shape" },
        { "a", TENSOR_FLOAT, 1, four_two, none, two_rows, 8, "an earlier slice had another type or shape" },
        { "a", TENSOR_FLOAT, 2, three_two, none, two_rows, 16, "an earlier slice had another type or shape" },
        { "scalar", TENSOR_FLOAT, 0, NULL, none, whole, 4, NULL },
    };
    struct fixture *f = *state;
    struct tensor_bundle_writer *w;
    struct tensor_bundle *b;
    struct error e = { 0 };
    float got = 0;

    assert_int_equal(tensor_bundle_writer_open(&w, NULL, fixture_path(f, "m"), &e), OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(tensor_bundle_writer_add_slice(w, cases[i].name, cases[i].type, cases[i].rank, cases[i].shape,
                                                        cases[i].start, cases[i].length, values + 1, cases[i].n, &e),
                         cases[i].says ? ERR_ARG : OK);
        if (cases[i].says)
            assert_says(e, cases[i].says);
    }
    tensor_bundle_writer_abandon(w);
    assert_int_equal(tensor_bundle_writer_open(&w, NULL, fixture_path(f, "m"), &e), OK);
    assert_int_equal(tensor_bundle_writer_add_slice(w, "scalar", TENSOR_FLOAT, 0, NULL, none, whole, values + 1, 4, &e),
                     OK);
    assert_int_equal(tensor_bundle_writer_finish(w, &e), OK);
    assert_int_equal(tensor_bundle_open(&b, fixture_path(f, "m"), &e), OK);
    assert_int_equal(tensor_bundle_read_float(b, tensor_bundle_entry(b, 0), &got, 1, &e), OK);
    assert_true(got == 1);
    tensor_bundle_close(b);
}

static void test_pieces(void **state)
{
    static const struct tensor_string strings[] = { { "a", 1 }, { "b", 1 } };
    static const double large = 0x1p63;
    static const int64_t columns[] = { 4, 1 }, right[] = { 0, 1 };
    struct fixture *f = *state;
    struct tensor_bundle_writer *w;
    struct tensor_bundle *b;
    const struct tensor_entry *entry;
    struct error e = { 0 };
    uint8_t bytes[32];
    uint32_t crc = 0;
    int64_t integer;

    assert_int_equal(tensor_bundle_writer_open(&w, NULL, fixture_path(f, "m"), &e), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "a", TENSOR_FLOAT, 1, two, values, 8, &e), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "large", TENSOR_DOUBLE, 0, NULL, &large, 8, &e), OK);
    assert_int_equal(tensor_bundle_writer_add_strings(w, "s", 1, two, strings, 2, &e), OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(tensor_bundle_writer_add_slice(w, "sliced", TENSOR_FLOAT, 2, four_two, i ? right : none,
                                                        columns, values, 16, &e),
                         OK);
    assert_int_equal(tensor_bundle_writer_finish(w, &e), OK);
    assert_int_equal(tensor_bundle_open(&b, fixture_path(f, "m"), &e), OK);
    entry = tensor_bundle_find(b, "a");
    assert_int_equal(tensor_bundle_read_piece(b, entry, 4, bytes, 4, &crc, &e), OK);
    assert_int_equal(tensor_bundle_read_piece(b, entry, 9, bytes, 0, &crc, &e), ERR_ARG);
    assert_int_equal(tensor_bundle_read_piece(b, entry, 4, bytes, 5, &crc, &e), ERR_ARG);
    assert_says(e, "tensor a has no 5 bytes at its byte 4");
    assert_int_equal(tensor_bundle_read_piece(b, tensor_bundle_find(b, "sliced"), 0, bytes, 4, &crc, &e), ERR_ARG);
    assert_int_equal(tensor_bundle_read_integer(b, tensor_bundle_find(b, "large"), &integer, &e), ERR_ARG);
    assert_null(tensor_bundle_entry(b, tensor_bundle_count(b)));
    assert_null(tensor_bundle_slice(b, tensor_bundle_slice_count(b)));
    assert_int_equal(tensor_bundle_shard_size(b, 9), 0);
    tensor_bundle_close(b);
    tensor_bundle_close(NULL);
}

/* Names of shards that are none, and paths that are too long. */
static void test_paths(void **state)
{
    static const char *const names[] = { "m-5-0000x-of-00002", "m-5-00000-of-0000x", "m-5-00000-or-00002",
                                         "m-5+00000-of-00002" };
    struct fixture *f = *state;
    struct tensor_bundle_writer *w;
    struct tensor_bundle *b;
    struct error e = { 0 };
    char path[PATH_MAX + 64];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(tensor_bundle_open(&b, fixture_path(f, names[i]), &e), ERR_IO);
    assert_int_equal(tensor_bundle_open(&b, "no-such", &e), ERR_IO);
    fixture_write(f, "file", "x", 1);
    assert_int_equal(tensor_bundle_open(&b, fixture_path(f, "file/m"), &e), ERR_IO);
    assert_int_equal(e.system, ENOTDIR);
    fixture_write(f, "large.index", "x", 1);
    assert_int_equal(truncate(fixture_path(f, "large.index"), (off_t)1 << 40), 0);
    assert_true(tensor_bundle_open(&b, fixture_path(f, "large"), &e) < 0);
    memset(path, '/', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_true(tensor_bundle_open(&b, path, &e) < 0);
    assert_int_equal(tensor_bundle_writer_open(&w, NULL, path, &e), ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_tensors, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_slices, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_pieces, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_paths, fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
