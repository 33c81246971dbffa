/* Pictures of confusion matrices: sizes, the shade of cells, text that stays inside. */
#include "evaluator/score/confusion_image.h"

#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

static size_t count_colour(const struct confusion_image *image, int red, int green, int blue)
{
    size_t n = 0;

    for (size_t i = 0; i < image->height * image->width; i++)
        n += image->pixels[3 * i] == red && image->pixels[3 * i + 1] == green && image->pixels[3 * i + 2] == blue;
    return n;
}

static void test_cells(void **state)
{
    static const int64_t counts[4] = { 30, 10, 0, 0 };
    static const char *const names[] = { "cat", "T-shirt/top \xff{}" };
    struct confusion_image image;

    (void)state;
    assert_int_equal(confusion_image_draw(&image, counts, 2, names, NULL), OK);
    /* three quarters of the row, one quarter, and an empty row in white: text covers only a part of each cell */
    assert_true(count_colour(&image, 255 - 186, 255 - 156, 255 - 111) > 400);
    assert_true(count_colour(&image, 255 - 62, 255 - 52, 255 - 37) > 400);
    assert_true(count_colour(&image, 0, 0, 0) > 400); /* text */
    assert_true(count_colour(&image, 255, 255, 255) > 2000);
    confusion_image_release(&image);
    confusion_image_release(&image);
}

/* Under AddressSanitizer this is also a test that nothing is drawn outside. */
static void test_sizes(void **state)
{
    static const int sizes[] = { 1, 2, 10, 31, 32, 33, 100, 1000, 1024 };
    static const char *long_name = "a name of a class that is far longer than what fits beside a row";

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t n = (size_t)sizes[i];
        int64_t *counts = calloc(n * n, sizeof *counts);
        const char **names = calloc(n, sizeof *names);
        struct confusion_image image;

        assert_non_null(counts);
        assert_non_null(names);
        for (size_t k = 0; k < n; k++) {
            counts[k * n + k] = INT64_MAX / (int64_t)n; /* as many digits as there can be */
            names[k] = long_name;
        }
        for (int named = 0; named < 2; named++) {
            assert_int_equal(confusion_image_draw(&image, counts, sizes[i], named ? names : NULL, NULL), OK);
            assert_true(image.height >= n && image.width >= n && image.height <= 4096);
            assert_true(count_colour(&image, 8, 48, 107) >= n); /* the diagonal is whole rows */
            confusion_image_release(&image);
        }
        free(counts);
        free(names);
    }
}

static void test_refused(void **state)
{
    struct confusion_image image;
    struct error e;

    (void)state;
    assert_int_equal(confusion_image_draw(&image, NULL, 0, NULL, &e), ERR_ARG);
    assert_int_equal(confusion_image_draw(&image, NULL, CONFUSION_IMAGE_CLASSES_MAX + 1, NULL, &e), ERR_ARG);
    assert_null(image.pixels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
