/* image_png.h: libpng reads back the pixels that were packed. */
#include "eventlog/write/kinds/image_png.h"

#include "tests/check.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

enum content { NOISE, SLOPES, FLAT, STEPS, TILES, CONTENTS };

static void draw(uint8_t *pixels, size_t height, size_t width, size_t channels, enum content content)
{
    uint32_t state = 1;

    for (size_t i = 0; i < height * width * channels; i++) {
        size_t y = i / (width * channels), x = i / channels % width;

        state = state * 1664525 + 1013904223;
        pixels[i] = (uint8_t)(content == NOISE    ? state >> 24
                              : content == SLOPES ? 3 * x + 5 * y + (state >> 30)
                              : content == FLAT   ? 200
                              : content == TILES  ? (i % (16 * width * channels)) * 2654435761u >> 23
                                                  : x / 9 * 31 + y / 4 * 17);
    }
}

/* Returns the length of the file. */
static size_t packed_and_back(size_t height, size_t width, size_t channels, unsigned level, enum content content)
{
    static const png_uint_32 formats[] = { 0, PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB, PNG_FORMAT_RGBA };
    size_t size = height * width * channels, n;
    uint8_t *pixels = malloc(size), *back = malloc(size);
    png_image image = { .version = PNG_IMAGE_VERSION };
    void *bytes;

    assert_true(pixels && back);
    draw(pixels, height, width, channels, content);
    assert_int_equal(image_png(pixels, height, width, channels, level, &bytes, &n, NULL), OK);
    if (!png_image_begin_read_from_memory(&image, bytes, n))
        fail_msg("%zu x %zu x %zu, level %u: %s", height, width, channels, level, image.message);
    assert_int_equal(image.width, width);
    assert_int_equal(image.height, height);
    assert_int_equal(image.format, formats[channels]);
    if (!png_image_finish_read(&image, NULL, back, 0, NULL) || image.warning_or_error)
        fail_msg("%zu x %zu x %zu, level %u: %s", height, width, channels, level, image.message);
    assert_memory_equal(back, pixels, size);
    free(bytes);
    free(back);
    free(pixels);
    return n;
}

static void all_widths(void **state)
{
    (void)state;
    for (size_t width = 1; width <= 40; width++)
        for (size_t channels = 1; channels <= 4; channels++)
            for (enum content c = NOISE; c < CONTENTS; c++)
                packed_and_back(1 + width % 6, width, channels, (unsigned)(width % 3 * 6), c);
}

static void all_levels(void **state)
{
    (void)state;
    for (unsigned level = 0; level <= IMAGE_PNG_LEVEL_MAX; level++)
        for (enum content c = NOISE; c < CONTENTS; c++)
            packed_and_back(50, 60, 3, level, c);
}

/* What cannot be packed grows by little, and what can be is small: filters for slopes, none for steps. */
static void sizes(void **state)
{
    (void)state;
    assert_in_range(packed_and_back(200, 200, 3, 0, NOISE), 120000, 121000);
    assert_in_range(packed_and_back(200, 200, 3, 0, SLOPES), 1000, 60000);
    assert_in_range(packed_and_back(200, 200, 3, 0, STEPS), 100, 8000);
    assert_in_range(packed_and_back(200, 200, 3, 0, FLAT), 70, 2000);
    assert_true(packed_and_back(200, 200, 3, 9, SLOPES) < packed_and_back(200, 200, 3, 1, SLOPES));
}

/* Large images without repetitions are packed without a search for them, and hardly larger; others not. */
static void literals(void **state)
{
    (void)state;
    assert_in_range(packed_and_back(300, 300, 3, 0, NOISE), 270000, 270700);
    assert_true(packed_and_back(300, 300, 3, 0, SLOPES) < packed_and_back(300, 300, 3, 1, SLOPES) * 97 / 100);
    assert_in_range(packed_and_back(300, 300, 3, 0, FLAT), 70, 3000);
    assert_int_equal(packed_and_back(512, 400, 3, 0, TILES), packed_and_back(512, 400, 3, 1, TILES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_widths),
        cmocka_unit_test(all_levels),
        cmocka_unit_test(sizes),
        cmocka_unit_test(literals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
