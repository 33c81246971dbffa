/* V1 checkpoints: a file that TensorFlow wrote, damaged in every way that a table can carry, in shards, with every allocation
 * and system call failing. */
#include "checkpoint/saved_slices.h"
#include "checkpoint/table.h"
#include "checkpoint/tensor_bundle.h"
#include "tests/checkpoint/checkpoint_fixture.h"
#include "tests/failing_calls.h"

/* By tf.compat.v1.train.Saver(write_version=V1) of TensorFlow 2.21: conv1/biases float32 [2] 1, -0.5; emb/mat float32
 * [4,2] 0 to 7 in two parts; global_step 700; half float16 [2] 1.5, -2; mask bool [3] 1, 0, 1; names string [2] cat, horse;
 * small int8 [2] -3, 4. */
static const char golden_hex[] =
    "0000b7010ab4010a1a0a0c636f6e76312f626961736573120412020802180122020a000a2b0a07656d622f6d617412081202080412020802"
    "180122080a0210020a021002220a0a04080210020a0210020a130a0b676c6f62616c5f737465701200180922000a120a0468616c66120412"
    "020802181322020a000a120a046d61736b120412020803180a22020a000a130a056e616d6573120412020802180722020a000a130a05736d"
    "616c6c120412020802180622020a001202080100132000636f6e76312f62696173657300010101807f121e0a0c636f6e76312f6269617365"
    "7312020a001a0a2a080000803f000000bf010f29656d622f6d6174000101028082808212270a07656d622f6d617412080a0210020a021002"
    "1a122a10000000000000803f00000040000040400c042b8282808212290a07656d622f6d6174120a0a04080210020a0210021a122a100000"
    "80400000a0400000c0400000e040010e17676c6f62616c5f7374657000010012150a0b676c6f62616c5f7374657012001a045202bc05010a"
    "1568616c6600010101807f12130a0468616c6612020a001a076a05807c808003010a136d61736b00010101807f12110a046d61736b12020a"
    "001a055a03010001010b1b6e616d657300010101807f12190a056e616d657312020a001a0c42036361744205686f727365010b1c736d616c"
    "6c00010101807f121a0a05736d616c6c12020a001a0d3a0bfdffffffffffffffff0104000000000100000000897dcaf80000000001000000"
    "00c0f2a1b00001030100a3040000000001000000008f0fcdf3a80408b5040f00000000000000000000000000000000000000000000000000"
    "00000000000000000057fb808b247547db";
enum { GOLDEN = (sizeof golden_hex - 1) / 2 };

static size_t unhex(const char *hex, uint8_t *out)
{
    const size_t n = strlen(hex) / 2;

    for (size_t i = 0; i < n; i++) {
        const char two[3] = { hex[2 * i], hex[2 * i + 1], '\0' };
        out[i] = (uint8_t)strtoul(two, NULL, 16);
    }
    return n;
}

static uint8_t *golden(void)
{
    static uint8_t bytes[GOLDEN];

    unhex(golden_hex, bytes);
    return bytes;
}

static void assert_floats(struct tensor_bundle *b, const char *name, const float *wanted, size_t n)
{
    struct error e = { 0 };
    float got[16];

    if (tensor_bundle_read_float(b, tensor_bundle_find(b, name), got, n, &e) != OK)
        fail_msg("%s", e.message);
    assert_memory_equal(got, wanted, n * sizeof *wanted);
}

static void test_golden(void **state)
{
    static const float biases[2] = { 1, -0.5f }, mat[8] = { 0, 1, 2, 3, 4, 5, 6, 7 }, half[2] = { 1.5f, -2 };
    struct fixture *f = *state;
    struct error e = { 0 };
    struct tensor_bundle *b;
    int64_t step;
    int8_t small[2];

    fixture_write(f, "old-700", golden(), GOLDEN);
    if (tensor_bundle_open(&b, fixture_path(f, "old-700"), &e) != OK)
        fail_msg("%s", e.message);
    assert_int_equal(unlink(fixture_path(f, "old-700")), 0); /* it stays readable */
    assert_int_equal(tensor_bundle_count(b), 7);
    assert_floats(b, "conv1/biases", biases, 2);
    assert_floats(b, "emb/mat", mat, 8);
    assert_int_equal(tensor_bundle_find(b, "emb/mat")->slices, 2);
    assert_floats(b, "half", half, 2);
    assert_int_equal(tensor_bundle_read_integer(b, tensor_bundle_find(b, "global_step"), &step, &e), OK);
    assert_int_equal(step, 700);
    assert_int_equal(tensor_bundle_read(b, tensor_bundle_find(b, "small"), small, 2, &e), OK);
    assert_true(small[0] == -3 && small[1] == 4);
    assert_int_equal(tensor_bundle_find(b, "names")->type, TENSOR_STRING);
    assert_int_equal(tensor_bundle_find(b, "names")->elements, 2);
    tensor_bundle_close(b);
}

/* Every byte is checked. */
static void test_damage(void **state)
{
    uint8_t *bytes = golden();

    (void)state;
    for (size_t i = 0; i < 2 * GOLDEN; i++) {
        struct saved_slices s = { 0 };
        struct error e = { 0 };
        const size_t length = i < GOLDEN ? GOLDEN : i - GOLDEN; /* then cut */

        if (i < GOLDEN)
            bytes[i] ^= 4;
        if (saved_slices_read(&s, "old", bytes, length, &e) == OK && saved_slices_finish(&s, "old", &e) == OK)
            fail_msg("damage of byte %zu is not noticed", i);
        assert_true(e.message[0]);
        if (i < GOLDEN)
            bytes[i] ^= 4;
        saved_slices_release(&s);
    }
}

static struct fixture *fixture;

static int read_golden(struct error *e)
{
    struct tensor_bundle *b;
    float got[8];
    int rc = tensor_bundle_open(&b, fixture_path(fixture, "old-700"), e);

    if (rc != OK)
        return rc;
    rc = tensor_bundle_read_float(b, tensor_bundle_find(b, "emb/mat"), got, 8, e);
    tensor_bundle_close(b);
    return rc;
}

static void test_failures(void **state)
{
    fixture = *state;
    fixture_write(fixture, "old-700", golden(), GOLDEN);
    with_each_failure(read_golden);
}

/* ---- tables made here -------------------------------------------------------------------------------------------- */

/* A table of the meta and of a value, if there is one. */
static void make_table(struct buffer *out, const char *key, const char *meta, const char *value)
{
    struct table_builder t;
    struct error e = { 0 };
    uint8_t bytes[128];
    size_t n = unhex(meta, bytes);

    table_builder_init(&t, out);
    table_builder_add(&t, key, strlen(key), bytes, n);
    if (value) {
        n = unhex(value, bytes);
        table_builder_add(&t, "value", 5, bytes, n);
    }
    assert_int_equal(table_builder_finish(&t, &e), OK);
    table_builder_release(&t);
}

#define X "0a0178" /* name: "x" */
#define SCALAR_X \
    "0a0b0a09" X "12001801" \
    "2200" /* meta: float32 [], one slice */
#define PAIR_X \
    "0a110a0f" X "12041202" \
    "0802" \
    "1801" \
    "22020a00"

static void test_refused(void **state)
{
    static const struct {
        const char *key, *meta, *value, *sentence;
    } cases[] = {
        { "k", SCALAR_X, NULL, "the first key is not the empty one" },
        { "", "ff", NULL, "a value is not a SavedTensorSlices" },
        { "", "", NULL, "does not say which tensors there are" },
        { "", "0a0412021002", NULL, "requires a reader of version 2" },
        { "", "0a021200", "12030a0178", "values of tensor x, which is not announced" },
        { "", "0a021200", "1200", "a value without a tensor's name" },
        { "", SCALAR_X, NULL, "tensor x: the values of 1 slices were announced, and 0 are there" },
        { "", "0a090a07" X "12001801", NULL, "tensor x: the values of 0 slices were announced, and 0 are there" },
        { "",
          "0a080a06"
          "12001801"
          "2200",
          NULL, "a tensor has no name" },
        { "",
          "0a0b0a09" X "12001814"
          "2200",
          "12051a000a0178", "type resource, which V1 checkpoints do not have" },
        { "",
          "0a0d0a0b" X "12001801"
          "22020a00",
          NULL, "slice 0 has 1 dimensions, the tensor 0" },
        { "", SCALAR_X, "12111a0a2a080000803f0000803f0a01781200", "tensor x has 2 values where its shape has 1" },
        { "", SCALAR_X, "12050a01781200", "tensor x has 0 values where its shape has 1" },
        { "", PAIR_X, "12050a01781200", "its values are a slice of another rank" },
        { "", PAIR_X, "120b0a017812060a0408011005", "a slice does not lie within it" },
        { "", PAIR_X, "12090a017812040a020801", "a slice does not lie within it" },
        { "",
          "0a0d0a0b" X "12001808"
          "22020a00",
          NULL, "slice 0 has 1 dimensions, the tensor 0" },
        { "", PAIR_X, "120b0a017812060a0408021001", "a slice does not lie within it" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer table = BUFFER_EMPTY;
        struct saved_slices s = { 0 };
        struct error e = { 0 };
        int rc;

        make_table(&table, cases[i].key, cases[i].meta, cases[i].value);
        if ((rc = saved_slices_read(&s, "old", table.data, table.length, &e)) == OK)
            rc = saved_slices_finish(&s, "old", &e);
        assert_int_not_equal(rc, OK);
        assert_says(e, cases[i].sentence);
        saved_slices_release(&s);
        buffer_release(&table);
    }
}

/* Shards have tables of their own; any of their names, and that of a state file, stands for all. */
static void test_shards(void **state)
{
    static const char *const names[] = { "m-5-\?\?\?\?\?-of-00002", "m-5-00000-of-00002", "m-5-00001-of-00002" };
    static const float one = 1;
    struct fixture *f = *state;
    struct buffer table = BUFFER_EMPTY;
    struct tensor_bundle *b;
    struct error e = { 0 };

    make_table(&table, "", SCALAR_X, "120d1a062a040000803f0a01781200");
    fixture_write(f, "m-5-00000-of-00002", table.data, table.length);
    assert_int_equal(tensor_bundle_open(&b, fixture_path(f, names[0]), &e), ERR_IO);
    assert_says(e, "m-5-00001-of-00002: cannot open");
    buffer_clear(&table);
    make_table(&table, "", "0a0b0a090a0179120018012200", "120d1a062a040000803f0a01791200"); /* y */
    fixture_write(f, "m-5-00001-of-00002", table.data, table.length);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (tensor_bundle_open(&b, fixture_path(f, names[i]), &e) != OK)
            fail_msg("%s", e.message);
        assert_int_equal(tensor_bundle_count(b), 2);
        assert_floats(b, "x", &one, 1);
        assert_floats(b, "y", &one, 1);
        tensor_bundle_close(b);
    }
    buffer_clear(&table);
    make_table(&table, "", SCALAR_X, "120d1a062a040000803f0a01781200");
    fixture_write(f, "m-5-00001-of-00002", table.data, table.length); /* x, again */
    assert_int_equal(tensor_bundle_open(&b, fixture_path(f, names[0]), &e), ERR_CORRUPT);
    assert_says(e, "it has a tensor twice");
    buffer_clear(&table);
    make_table(&table, "", "0a0b0a09" X "120018032200", "12071a003a0012020a00");
    fixture_write(f, "m-5-00001-of-00002", table.data, table.length); /* x of another type */
    assert_int_equal(tensor_bundle_open(&b, fixture_path(f, names[0]), &e), ERR_CORRUPT);
    assert_says(e, "tensor x has another type or shape in another shard");
    buffer_clear(&table);
    make_table(&table, "", PAIR_X, "12071a002a0012020a00");
    fixture_write(f, "m-5-00001-of-00002", table.data, table.length); /* x of another shape */
    assert_int_equal(tensor_bundle_open(&b, fixture_path(f, names[0]), &e), ERR_CORRUPT);
    assert_says(e, "tensor x has another type or shape in another shard");
    buffer_release(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_golden, fixture_setup, fixture_teardown),   cmocka_unit_test(test_damage),
        cmocka_unit_test_setup_teardown(test_failures, fixture_setup, fixture_teardown), cmocka_unit_test(test_refused),
        cmocka_unit_test_setup_teardown(test_shards, fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
