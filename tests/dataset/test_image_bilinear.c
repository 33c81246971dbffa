/* image_bilinear.c: by hand, and the offset of the middle. That TensorFlow has the same is in tests/peers. */
#include "dataset/stream/image_bilinear.h"

#include "tests/check.h"

#include <math.h>
#include <stdlib.h>

/* A grey picture of 2x3: 0 51 102 / 153 204 255. */
static struct image grey(uint8_t *pixels)
{
    for (int i = 0; i < 18; i++)
        pixels[i] = (uint8_t)(i / 3 * 51);
    return (struct image){ 2, 3, pixels };
}

static void assert_pixel(const float *out, int i, double wanted)
{
    for (int c = 0; c < 3; c++)
        if (fabs((double)out[3 * i + c] - wanted) > 1e-6)
            fail_msg("pixel %d is %.8f, wanted %.8f", i, (double)out[3 * i + c], wanted);
}

static void test_by_hand(void **state)
{
    uint8_t pixels[18];
    const struct image image = grey(pixels);
    float out[4 * 4 * 3], middle[2 * 2 * 3], small[3];

    (void)state;
    image_bilinear(&image, 4, 4, 4, out); /* rows 0 0.5 1 1(.5), columns 0 0.75 1.5 2(.25) */
    assert_pixel(out, 0, 0);
    assert_pixel(out, 1, 0.75 * 0.2);
    assert_pixel(out, 2, 1.5 * 0.2);
    assert_pixel(out, 3, 0.4);
    assert_pixel(out, 4, 0.3);
    assert_pixel(out, 6, 0.3 + 0.3);
    assert_pixel(out, 8, 0.6);
    assert_pixel(out, 12, 0.6); /* beyond the last row there is only this one */
    assert_pixel(out, 15, 1);
    image_bilinear(&image, 5, 2, 2, middle); /* 3 are left over: one before */
    assert_pixel(middle, 0, 0.4 * 0.6 + 0.6 * 0.2);
    image_bilinear(&image, 1, 1, 1, small);
    assert_pixel(small, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_by_hand) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
