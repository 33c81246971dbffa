#include "dataset/transform.h"

#include "base/random.h"
#include "base/vector.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { TUTORIAL_SIDE = 24, RESNET_SIDE = 32, RESNET_PAD = 2, CIFAR_SIDE = 32, COLOURS = 3 };

/*
 * A window of side x side pixels whose top left is pixel (top, left) of the stored image; it may extend outside, where
 * pixels are 0. flip: mirrored left to right.
 */
static void take_window(const struct dataset *d, const uint8_t *image, int top, int left, int side, int flip,
                        float *out)
{
    int first = left < 0 ? -left : 0; /* columns of the window that lie inside: [first, last) */
    int last = left + side > d->width ? d->width - left : side;

    for (int y = 0; y < side; y++, out += side * COLOURS) {
        const uint8_t *from;

        if (last - first < side || top + y < 0 || top + y >= d->height)
            memset(out, 0, (size_t)side * COLOURS * sizeof *out);
        if (top + y < 0 || top + y >= d->height)
            continue;
        from = image + ((size_t)(top + y) * (size_t)d->width + (size_t)(left + first)) * COLOURS;
        for (int x = first; x < last; x++, from += COLOURS) {
            float *to = out + (flip ? side - 1 - x : x) * COLOURS;

            to[0] = (float)from[0];
            to[1] = (float)from[1];
            to[2] = (float)from[2];
        }
    }
}

/* (x - mean) / max(deviation, 1/sqrt(n)) over all n values; the deviation divides by n. (TensorFlow,
 * per_image_standardization: a constant image becomes zeros.) n is a multiple of 4: four sums run in parallel,
 * because one would wait for each addition before the next. */
static void standardise(float *x, size_t n)
{
    double sums[4] = { 0 }, squares[4] = { 0 }, mean, deviation, least = 1 / sqrt((double)n), factor;

    for (size_t i = 0; i < n; i += 4)
        for (size_t k = 0; k < 4; k++)
            sums[k] += x[i + k];
    mean = (sums[0] + sums[1] + sums[2] + sums[3]) / (double)n;
    for (size_t i = 0; i < n; i += 4)
        for (size_t k = 0; k < 4; k++)
            squares[k] += (x[i + k] - mean) * (x[i + k] - mean);
    deviation = sqrt((squares[0] + squares[1] + squares[2] + squares[3]) / (double)n);
    factor = 1 / (deviation < least ? least : deviation);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((x[i] - mean) * factor);
}

/* Brightness: x + shift. Contrast: (x - m) * factor + m, m the mean of the channel after the shift. Neither clips. */
static void adjust_brightness_contrast(float *x, size_t pixels, double shift, double factor)
{
    for (size_t c = 0; c < COLOURS; c++) {
        double sum = 0, mean;

        for (size_t p = 0; p < pixels; p++)
            sum += x[p * COLOURS + c];
        mean = sum / (double)pixels + shift;
        for (size_t p = 0; p < pixels; p++)
            x[p * COLOURS + c] = (float)((x[p * COLOURS + c] + shift - mean) * factor + mean);
    }
}

VECTOR_BODY void divide_body(size_t width, const uint8_t *restrict image, float *restrict out)
{
    for (size_t i = 0; i < width; i++)
        out[i] = (float)image[i] / 255.0f;
}

VECTOR_CLONES static void divide(size_t n, const uint8_t *restrict image, float *restrict out)
{
    size_t i = 0;

    VECTOR_EACH(i, n, width, divide_body(width, image + i, out + i));
}

static void apply_unit(const struct dataset *d, const uint8_t *image, uint64_t seed, int64_t step, int64_t sample,
                       float *out)
{
    size_t n = (size_t)d->height * (size_t)d->width * (size_t)d->channels;

    (void)seed, (void)step, (void)sample;
    if (d->element == ELEMENT_FLOAT32) {
        memcpy(out, image, n * sizeof *out);
        return;
    }
    divide(n, image, out);
}

/* Draws in this order: row and column of the crop (0..8), flip, brightness, contrast. */
static void apply_tutorial_train(const struct dataset *d, const uint8_t *image, uint64_t seed, int64_t step,
                                 int64_t sample, float *out)
{
    struct random r;
    int top, left, flip;
    double shift, factor;

    random_init(&r, seed, RANDOM_AUGMENT, (uint64_t)step, (uint64_t)sample);
    top = (int)random_below(&r, CIFAR_SIDE - TUTORIAL_SIDE + 1);
    left = (int)random_below(&r, CIFAR_SIDE - TUTORIAL_SIDE + 1);
    flip = (int)random_below(&r, 2);
    shift = -63 + 126 * random_uniform(&r);
    factor = 0.2 + 1.6 * random_uniform(&r);
    take_window(d, image, top, left, TUTORIAL_SIDE, flip, out);
    adjust_brightness_contrast(out, TUTORIAL_SIDE * TUTORIAL_SIDE, shift, factor);
    standardise(out, TUTORIAL_SIDE * TUTORIAL_SIDE * COLOURS);
}

static void apply_tutorial_eval(const struct dataset *d, const uint8_t *image, uint64_t seed, int64_t step,
                                int64_t sample, float *out)
{
    int offset = (CIFAR_SIDE - TUTORIAL_SIDE) / 2;

    (void)seed, (void)step, (void)sample;
    take_window(d, image, offset, offset, TUTORIAL_SIDE, 0, out);
    standardise(out, TUTORIAL_SIDE * TUTORIAL_SIDE * COLOURS);
}

/* Draws in this order: row and column of the crop from the padded 36x36 (0..4), flip. */
static void apply_resnet_train(const struct dataset *d, const uint8_t *image, uint64_t seed, int64_t step,
                               int64_t sample, float *out)
{
    struct random r;
    int top, left, flip;

    random_init(&r, seed, RANDOM_AUGMENT, (uint64_t)step, (uint64_t)sample);
    top = (int)random_below(&r, 2 * RESNET_PAD + 1);
    left = (int)random_below(&r, 2 * RESNET_PAD + 1);
    flip = (int)random_below(&r, 2);
    take_window(d, image, top - RESNET_PAD, left - RESNET_PAD, RESNET_SIDE, flip, out);
    standardise(out, RESNET_SIDE * RESNET_SIDE * COLOURS);
}

static void apply_resnet_eval(const struct dataset *d, const uint8_t *image, uint64_t seed, int64_t step,
                              int64_t sample, float *out)
{
    (void)seed, (void)step, (void)sample;
    take_window(d, image, 0, 0, RESNET_SIDE, 0, out);
    standardise(out, RESNET_SIDE * RESNET_SIDE * COLOURS);
}

/* What torchvision's published weights were trained on. */
static void standardise_channels(const struct dataset *d, const uint8_t *image, int flip, float *out)
{
    static const float mean[COLOURS] = { 0.485f, 0.456f, 0.406f }, deviation[COLOURS] = { 0.229f, 0.224f, 0.225f };

    for (int y = 0; y < d->height; y++)
        for (int x = 0; x < d->width; x++, image += COLOURS) {
            float *to = out + ((size_t)y * (size_t)d->width + (size_t)(flip ? d->width - 1 - x : x)) * COLOURS;

            for (size_t c = 0; c < COLOURS; c++)
                to[c] = ((float)image[c] / 255.0f - mean[c]) / deviation[c];
        }
}

static void apply_imagenet_train(const struct dataset *d, const uint8_t *image, uint64_t seed, int64_t step,
                                 int64_t sample, float *out)
{
    struct random r;

    random_init(&r, seed, RANDOM_AUGMENT, (uint64_t)step, (uint64_t)sample);
    standardise_channels(d, image, (int)random_below(&r, 2), out);
}

static void apply_imagenet_eval(const struct dataset *d, const uint8_t *image, uint64_t seed, int64_t step,
                                int64_t sample, float *out)
{
    (void)seed, (void)step, (void)sample;
    standardise_channels(d, image, 0, out);
}

static void apply_symmetric(const struct dataset *d, const uint8_t *image, uint64_t seed, int64_t step, int64_t sample,
                            float *out)
{
    size_t n = (size_t)d->height * (size_t)d->width * (size_t)d->channels;

    (void)seed, (void)step, (void)sample;
    divide(n, image, out);
    for (size_t i = 0; i < n; i++)
        out[i] = (out[i] - 0.5f) * 2.0f;
}

static const struct transform transforms[] = {
    { "unit", "values divided by 255", 0, 0, 0, 0, apply_unit },
    { "cifar-tutorial-train", "random 24x24 crop, flip, brightness, contrast; standardised", TUTORIAL_SIDE,
      TUTORIAL_SIDE, COLOURS, 1, apply_tutorial_train },
    { "cifar-tutorial-eval", "central 24x24 crop, standardised", TUTORIAL_SIDE, TUTORIAL_SIDE, COLOURS, 0,
      apply_tutorial_eval },
    { "cifar-resnet-train", "padded to 36x36, random 32x32 crop, flip; standardised", RESNET_SIDE, RESNET_SIDE, COLOURS,
      1, apply_resnet_train },
    { "cifar-resnet-eval", "standardised", RESNET_SIDE, RESNET_SIDE, COLOURS, 0, apply_resnet_eval },
    { "imagenet-train", "flip; ImageNet's mean and deviation of each channel", 0, 0, COLOURS, 1, apply_imagenet_train },
    { "imagenet-eval", "ImageNet's mean and deviation of each channel", 0, 0, COLOURS, 0, apply_imagenet_eval },
    { "symmetric", "values from -1 to 1", 0, 0, 0, 0, apply_symmetric },
};

const struct transform *transform_find(const char *name)
{
    for (size_t i = 0; i < sizeof transforms / sizeof *transforms; i++)
        if (name && !strcmp(transforms[i].name, name))
            return &transforms[i];
    return NULL;
}

void transform_fit(const struct transform *t, struct dataset_shape *shape)
{
    if (!t || !t->height)
        return;
    shape->height = shape->width = CIFAR_SIDE;
    shape->channels = COLOURS;
}

int transform_check(const struct transform *t, const struct dataset *d, struct error *e)
{
    if (t && d->element == ELEMENT_FLOAT32)
        return !t->height && !t->random
                   ? OK
                   : error_set(e, ERR_ARG,
                               "%s has numbers, and the input transform \"%s\" takes images; a model file "
                               "without one takes both",
                               d->name, t->name);
    if (!t || d->element != ELEMENT_UINT8)
        return !t && d->element == ELEMENT_INT32
                   ? OK
                   : error_set(e, ERR_ARG, "%s has %s, and the model reads %s; choose other data or another model",
                               d->name, d->element == ELEMENT_INT32 ? "words" : "images", t ? "images" : "words");
    if (t->height == 0 && (t->channels == 0 || t->channels == d->channels)) /* takes any image */
        return OK;
    if (t->height == 0)
        return error_set(
            e, ERR_ARG,
            "the input transform \"%s\" takes images of %d channels, but those of %s have %d; choose other "
            "data or another model",
            t->name, t->channels, d->name, d->channels);
    if (d->height == CIFAR_SIDE && d->width == CIFAR_SIDE && d->channels == COLOURS)
        return OK;
    return error_set(e, ERR_ARG,
                     "the input transform \"%s\" takes images of 32x32x3, but those of %s are %dx%dx%d; choose other "
                     "data or another model",
                     t->name, d->name, d->height, d->width, d->channels);
}
