/* cifar10.h: records to interleaved images, labels, names, and the sentences for files that are none. */
#include "dataset/cifar10.h"

#include "tests/dataset/data_files.h"

static void test_decode(void **state)
{
    enum { COUNT = 3 };
    uint8_t *file = malloc(COUNT * CIFAR10_RECORD), images[COUNT * CIFAR10_IMAGE], labels[COUNT];
    struct error e;

    (void)state;
    assert_non_null(file);
    for (size_t i = 0; i < (size_t)COUNT * CIFAR10_RECORD; i++)
        file[i] = i % CIFAR10_RECORD == 0 ? (uint8_t)(9 - i / CIFAR10_RECORD) : (uint8_t)(i * 13 >> 2);
    assert_int_equal(cifar10_decode(file, (size_t)COUNT * CIFAR10_RECORD, "F", 0, images, labels, &e), OK);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(labels[i], 9 - i);
        for (size_t y = 0; y < 32; y++)
            for (size_t x = 0; x < 32; x++)
                for (size_t c = 0; c < 3; c++)
                    assert_int_equal(images[((i * 32 + y) * 32 + x) * 3 + c],
                                     file[i * CIFAR10_RECORD + 1 + c * 1024 + y * 32 + x]);
    }
    file[2 * CIFAR10_RECORD] = 10;
    assert_int_equal(cifar10_decode(file, (size_t)COUNT * CIFAR10_RECORD, "F", 3073, images, labels, &e), ERR_CORRUPT);
    assert_non_null(strstr(e.message, "F: byte 9219: label 10 of record 3 is not in 0..9"));
    assert_int_equal(cifar10_decode(file, CIFAR10_RECORD + 5, "F", 0, images, labels, &e), ERR_CORRUPT);
    assert_non_null(strstr(e.message, "F: byte 3073: 5 bytes are left"));
    assert_int_equal(cifar10_decode(file, 0, "F", 0, images, labels, &e), OK);
    free(file);
}

static const struct {
    const char *text;
    int want;
    const char *sentence;
} names_cases[] = {
    { "a\nb\nc\nd\ne\nf\ng\nh\ni\ntruck", OK, NULL },
    { "a\r\nb\r\nc\r\nd\r\ne\r\nf\r\ng\r\nh\r\ni\r\ntruck\r\n\r\n\r\n", OK, NULL },
    { "", ERR_CORRUPT, "byte 0: line 1 is not a class name" },
    { "a\n\nc\nd\ne\nf\ng\nh\ni\ntruck", ERR_CORRUPT, "byte 2: line 2 is not a class name" },
    { "a\nb\nc\nd\ne\nf\ng\nh\ni\n", ERR_CORRUPT, "byte 18: line 10 is not a class name" },
    { "0123456789012345678901234567890123456789\n", ERR_CORRUPT, "line 1 is not a class name" },
};

static void test_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names_cases / sizeof *names_cases; i++) {
        size_t n = strlen(names_cases[i].text);
        char names[CIFAR10_CLASSES][CIFAR10_NAME_MAX], *copy = malloc(n ? n : 1);
        struct error e = { 0 };

        assert_non_null(copy);
        memcpy(copy, names_cases[i].text, n);
        if (cifar10_decode_names(copy, n, "F", names, &e) != names_cases[i].want ||
            (names_cases[i].sentence && !strstr(e.message, names_cases[i].sentence)))
            fail_msg("case %zu: %s", i, e.message);
        if (names_cases[i].want == OK) {
            assert_string_equal(names[0], "a");
            assert_string_equal(names[9], "truck");
        }
        free(copy);
    }
}

static void test_files(void **state)
{
    static uint8_t images[100 * CIFAR10_IMAGE], labels[100], odd[3073 * 2 + 1];
    char directory[PATH_MAX], path[PATH_MAX];
    struct error e;
    size_t count;

    (void)state;
    directory_make(directory, sizeof directory);
    cifar10_put(directory, "whole.bin", 300, 100); /* more than one read */
    file_join(path, sizeof path, directory, "whole.bin", NULL);
    assert_int_equal(cifar10_count(path, &count, &e), OK);
    assert_int_equal(count, 100);
    assert_int_equal(cifar10_read(path, count, images, labels, &e), OK);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(labels[i], (300 + i) % 10);
        for (size_t p = 0; p < CIFAR10_IMAGE; p++)
            assert_int_equal(images[i * CIFAR10_IMAGE + p], pixel_value(300 + i, p));
    }
    assert_int_equal(cifar10_read(path, 101, images, labels, &e), ERR_CORRUPT);
    assert_non_null(strstr(e.message, "byte 307300: the file was truncated"));
    file_put(directory, "odd.bin", odd, sizeof odd);
    file_join(path, sizeof path, directory, "odd.bin", NULL);
    assert_int_equal(cifar10_count(path, &count, &e), ERR_CORRUPT);
    assert_non_null(strstr(e.message, "odd.bin: byte 6147: the file ends here"));
    file_put(directory, "empty.bin", "", 0);
    file_join(path, sizeof path, directory, "empty.bin", NULL);
    assert_int_equal(cifar10_count(path, &count, &e), ERR_CORRUPT);
    assert_int_equal(cifar10_count(directory, &count, &e), ERR_IO);
    file_join(path, sizeof path, directory, "missing.bin", NULL);
    assert_int_equal(cifar10_count(path, &count, &e), ERR_IO);
    assert_int_equal(cifar10_read(path, 1, images, labels, &e), ERR_IO);
    directory_remove(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
