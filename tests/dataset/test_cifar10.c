/* cifar10.h: class names, and the sentences for files that are none. Records: test_dataset.c, test_fixed_records.c. */
#include "dataset/cifar10.h"

#include "tests/dataset/data_files.h"

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

static void test_sizes(void **state)
{
    static uint8_t odd[3073 * 2 + 1];
    char directory[PATH_MAX], path[PATH_MAX];
    struct error e;

    (void)state;
    directory_make(directory, sizeof directory);
    cifar10_put(directory, "whole.bin", 300, 100);
    file_join(path, sizeof path, directory, "whole.bin", NULL);
    assert_int_equal(cifar10_check_size(path, &e), OK);
    file_put(directory, "odd.bin", odd, sizeof odd);
    file_join(path, sizeof path, directory, "odd.bin", NULL);
    assert_int_equal(cifar10_check_size(path, &e), ERR_CORRUPT);
    assert_non_null(strstr(e.message, "odd.bin: byte 6147: the file ends here"));
    file_put(directory, "empty.bin", "", 0);
    file_join(path, sizeof path, directory, "empty.bin", NULL);
    assert_int_equal(cifar10_check_size(path, &e), ERR_CORRUPT);
    assert_int_equal(cifar10_check_size(directory, &e), ERR_IO);
    file_join(path, sizeof path, directory, "missing.bin", NULL);
    assert_int_equal(cifar10_check_size(path, &e), ERR_IO);
    directory_remove(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
