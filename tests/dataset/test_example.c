/* tf.train.Example: bytes that TensorFlow wrote, read in windows of every size; what is broken, and how it is named. */
#include "dataset/stream/example.h"

#include "tests/dataset/example_bytes.h"

#include <stdlib.h>

/* tensorflow 2.21: Example(features={"image/encoded": [b"\1\2\3\4\5\6"], "image/format": [b"raw"], "image/class/label":
 * [300], "image/height": [1], "image/width": [2], "image/channels": [3], "bbox": [0.5, 1.0], "none": Feature(), "neg":
 * [-1, 5]}).SerializeToString(deterministic=True) */
static const char golden[] =
    "0ad1010a140a0462626f78120c120a0a080000003f0000803f0a170a0e696d6167652f6368616e6e656c7312051"
    "a030a01030a1b0a11696d6167652f636c6173732f6c6162656c12061a040a02ac020a1b0a0d696d6167652f656e"
    "636f646564120a0a080a060102030405060a170a0c696d6167652f666f726d617412070a050a037261770a150a0"
    "c696d6167652f68656967687412051a030a01010a140a0b696d6167652f776964746812051a030a01020a160a03"
    "6e6567120f1a0d0a0bffffffffffffffffff01050a080a046e6f6e651200";

static struct example_keys usual;

static size_t unhex(const char *text, uint8_t *out)
{
    const size_t n = strlen(text) / 2;

    for (size_t i = 0; i < n; i++) {
        const char two[] = { text[2 * i], text[2 * i + 1], '\0' };

        out[i] = (uint8_t)strtoul(two, NULL, 16);
    }
    return n;
}

static int set_up(void **state)
{
    (void)state;
    return example_keys_parse(&usual, NULL, NULL);
}

/* Reads it in windows of `more` bytes beyond what is needed, each in memory of its own, so that a byte read beyond is
 * noticed by the sanitizer. Bytes of parts are compared, as they point into windows. */
static int in_windows(const uint8_t *record, size_t n, unsigned wanted, size_t more, struct example *out, size_t *read)
{
    struct example_scan s;
    int rc = 0;

    *read = 0;
    example_scan_begin(&s, &usual, wanted, n);
    while (rc == 0) {
        const size_t left = n - s.position, size = s.need + more < left ? s.need + more : left;
        const size_t at = s.position;
        uint8_t *window = malloc(size + 1);

        assert_true(s.position <= n && s.need <= left);
        assert_non_null(window);
        memcpy(window, record + at, size);
        *read += size;
        rc = example_scan_next(&s, window, size);
        for (int part = 0; part < EXAMPLE_PARTS; part++) /* as places in the record */
            if (s.found.bytes[part] >= window && s.found.bytes[part] <= window + size)
                s.found.bytes[part] = record + at + (s.found.bytes[part] - window);
        free(window);
        assert_true(rc != 0 || s.position > at || s.need > size);
    }
    *out = s.found;
    assert_true(rc == 1 || s.problem);
    return rc < 0 ? rc : OK;
}

static void test_golden(void **state)
{
    static const int64_t numbers[EXAMPLE_PARTS] = {
        [EXAMPLE_LABEL] = 300, [EXAMPLE_HEIGHT] = 1, [EXAMPLE_WIDTH] = 2, [EXAMPLE_CHANNELS] = 3
    };
    const unsigned all = (1u << EXAMPLE_PARTS) - 1;
    uint8_t record[300];
    const size_t n = unhex(golden, record);
    struct example x;
    size_t read;

    (void)state;
    for (size_t more = 0; more < 300; more++) {
        assert_int_equal(in_windows(record, n, all, more, &x, &read), OK);
        assert_int_equal(x.found, all);
        for (int part = 0; part < EXAMPLE_PARTS; part++)
            assert_int_equal(x.number[part], numbers[part]);
        assert_int_equal(x.length[EXAMPLE_IMAGE], 6);
        assert_memory_equal(x.bytes[EXAMPLE_IMAGE], "\1\2\3\4\5\6", 6);
        assert_int_equal(x.length[EXAMPLE_FORMAT], 3);
        assert_memory_equal(x.bytes[EXAMPLE_FORMAT], "raw", 3);
        assert_int_equal(in_windows(record, n, 1u << EXAMPLE_LABEL, more, &x, &read), OK);
        assert_int_equal(x.found, 1u << EXAMPLE_LABEL);
    }
}

/* Cut off anywhere, and with any byte another one: an error or an Example, the same in all windows. */
static void test_damage(void **state)
{
    uint8_t record[300], *cut;
    const size_t n = unhex(golden, record);
    struct example_scan whole;
    struct example x;
    size_t read;

    (void)state;
    for (size_t length = 1; length < n; length++) {
        assert_non_null(cut = malloc(length));
        memcpy(cut, record, length);
        assert_int_equal(example_scan_whole(&whole, &usual, ~0u, cut, length), ERR_CORRUPT);
        assert_int_equal(in_windows(cut, length, ~0u, 0, &x, &read), ERR_CORRUPT);
        free(cut);
    }
    for (size_t i = 0; i < n; i++)
        for (int value = 0; value < 256; value += 5) {
            const uint8_t was = record[i];
            int rc;

            record[i] = (uint8_t)value;
            rc = example_scan_whole(&whole, &usual, ~0u, record, n);
            assert_int_equal(in_windows(record, n, ~0u, 3, &x, &read), rc);
            if (rc == OK)
                assert_memory_equal(&x, &whole.found, sizeof x);
            record[i] = was;
        }
}

/* The label of a large picture costs a few hundred bytes, wherever it is. */
static void test_skipping(void **state)
{
    static struct bytes features, example;
    static uint8_t pixels[50000];
    struct example x;
    size_t read;

    (void)state;
    for (int before = 0; before < 2; before++) {
        features.n = example.n = 0;
        if (before)
            example_number(&features, "image/class/label", 7);
        example_text(&features, "image/encoded", pixels, sizeof pixels);
        example_text(&features, "image/other", pixels, 9000);
        if (!before)
            example_number(&features, "image/class/label", 7);
        bytes_field(&example, 1, features.at, features.n);
        assert_int_equal(in_windows(example.at, example.n, 1u << EXAMPLE_LABEL, 0, &x, &read), OK);
        assert_int_equal(x.number[EXAMPLE_LABEL], 7);
        assert_true(read < 1000);
    }
}

static void expect_problem(const struct bytes *features, const char *problem)
{
    static struct bytes example;
    struct example_scan s;

    example.n = 0;
    bytes_field(&example, 1, features->at, features->n);
    assert_int_equal(example_scan_whole(&s, &usual, ~0u, example.at, example.n), ERR_CORRUPT);
    assert_string_equal(s.problem, problem);
}

static void test_values(void **state)
{
    static struct bytes features, list, example;
    struct example_scan s;

    (void)state;
    features.n = 0;
    example_text(&features, "image/class/label", "7", 1);
    expect_problem(&features, "its label is no integer");
    features.n = list.n = 0;
    bytes_varint(&list, 1 << 3); /* not packed, as old writers do, and twice */
    bytes_varint(&list, 5);
    example_entry(&features, "image/class/label", 3, &list);
    example.n = 0;
    bytes_field(&example, 1, features.at, features.n);
    assert_int_equal(example_scan_whole(&s, &usual, ~0u, example.at, example.n), OK);
    assert_int_equal(s.found.number[EXAMPLE_LABEL], 5);
    bytes_varint(&list, 1 << 3);
    bytes_varint(&list, 6);
    features.n = 0;
    example_entry(&features, "image/class/label", 3, &list);
    expect_problem(&features, "its label has not one value");
    features.n = 0;
    example_number(&features, "image/encoded", 1);
    expect_problem(&features, "its image is no list of bytes");
    /* the second of two entries of a key counts, as in protobuf; an empty record is an Example without features */
    features.n = example.n = 0;
    example_number(&features, "image/class/label", 1);
    example_number(&features, "image/class/label", 2);
    bytes_field(&example, 1, features.at, features.n);
    assert_int_equal(example_scan_whole(&s, &usual, ~0u, example.at, example.n), OK);
    assert_int_equal(s.found.number[EXAMPLE_LABEL], 2);
    assert_int_equal(example_scan_whole(&s, &usual, ~0u, NULL, 0), OK);
    assert_int_equal(s.found.found, 0);
}

static void test_keys(void **state)
{
    static const char *const wrong[] = { "label", "label=", "picture=x", "label=a,=b", "label=a,,image=b", "=" };
    struct example_keys keys;
    struct error e;

    (void)state;
    assert_int_equal(example_keys_parse(&keys, "label=digit,image=image/raw", &e), OK);
    assert_int_equal(keys.of[EXAMPLE_LABEL].length, 5);
    assert_memory_equal(keys.of[EXAMPLE_LABEL].text, "digit", 5);
    assert_int_equal(keys.of[EXAMPLE_IMAGE].length, 9);
    assert_memory_equal(keys.of[EXAMPLE_HEIGHT].text, "image/height", 12);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(example_keys_parse(&keys, wrong[i], &e), ERR_ARG);
        assert_non_null(strstr(e.message, "--example-keys"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden), cmocka_unit_test(test_damage), cmocka_unit_test(test_skipping),
        cmocka_unit_test(test_values), cmocka_unit_test(test_keys),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
