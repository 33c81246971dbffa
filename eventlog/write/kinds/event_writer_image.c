#include "eventlog/write/event_writer.h"

#include "eventlog/eventlog.h"
#include "eventlog/write/kinds/image_header.h"
#include "eventlog/write/kinds/image_png.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A value of the images plugin is a list of strings: width and height in ASCII, then the pictures. */
enum { SIDE_MAX = 1 << 16, PIXELS_MAX = 1 << 28, IMAGES_MAX = 1 << 16 };

static void put_size(struct wire *member, size_t size)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%zu", size);
    wire_text_always(member, TENSOR_FIELD_STRING, digits);
}

static size_t image_begin(struct wire *member, size_t n, size_t height, size_t width)
{
    int64_t shape[] = { (int64_t)n + 2 };
    size_t tensor = event_writer_value_tensor(member, EVENTLOG_DTYPE_STRING, shape, 1);

    put_size(member, width);
    put_size(member, height);
    return tensor;
}

/* One picture of 8-bit pixels as PNG, appended as a string. */
static int put_png(struct wire *member, const uint8_t *pixels, size_t height, size_t width, size_t channels,
                   unsigned level, struct error *e)
{
    void *bytes;
    size_t n;
    int rc = image_png(pixels, height, width, channels, level, &bytes, &n, e);

    if (rc == OK)
        wire_bytes(member, TENSOR_FIELD_STRING, bytes, n);
    free(rc == OK ? bytes : NULL);
    return rc;
}

/* Checks what is asked for before any of it is packed. */
static int check_shape(size_t n, size_t height, size_t width, size_t channels,
                       const struct eventlog_value_options *options, struct error *e)
{
    if (options && options->png_level > IMAGE_PNG_LEVEL_MAX)
        return error_set(e, ERR_ARG, "png_level is %llu; from 1 (quick) to %d (small) are possible, and 0",
                         (unsigned long long)options->png_level, IMAGE_PNG_LEVEL_MAX);
    if (channels < 1 || channels > 4)
        return error_set(e, ERR_ARG, "images have 1 to 4 channels (grey, grey and alpha, RGB, RGBA), not %zu",
                         channels);
    if (!height || !width || height > SIDE_MAX || width > SIDE_MAX || height * width > PIXELS_MAX)
        return error_set(e, ERR_ARG, "an image of %zu x %zu; at most %d a side and %d pixels can be written", width,
                         height, SIDE_MAX, PIXELS_MAX);
    if (!n || n > IMAGES_MAX)
        return error_set(e, ERR_ARG, "%zu images in a batch; 1 to %d can be written", n, IMAGES_MAX);
    return OK;
}

static unsigned level_of(const struct eventlog_value_options *options)
{
    return options ? (unsigned)options->png_level : 0;
}

static int encode_pixels(struct wire *member, const uint8_t *pixels, size_t n, size_t height, size_t width,
                         size_t channels, const struct eventlog_value_options *options, struct error *e)
{
    size_t tensor;
    int rc = check_shape(n, height, width, channels, options, e);

    if (rc != OK)
        return rc;
    tensor = image_begin(member, n, height, width);
    for (size_t i = 0; i < n && rc == OK; i++)
        rc = put_png(member, pixels + i * height * width * channels, height, width, channels, level_of(options), e);
    wire_end(member, tensor);
    return rc;
}

/* Converts as TensorFlow does: 256 equal steps, including both ends; values outside are clamped. */
static int encode_floats(struct wire *member, const float *values, size_t n, size_t height, size_t width,
                         size_t channels, const struct eventlog_value_options *options, struct error *e)
{
    size_t count, tensor;
    uint8_t *pixels;
    int rc = check_shape(n, height, width, channels, options, e);

    if (rc != OK)
        return rc;
    count = height * width * channels;
    if (!(pixels = malloc(count)))
        return error_memory(e, NULL, "for an image of %zu x %zu", width, height);
    tensor = image_begin(member, n, height, width);
    for (size_t i = 0; i < n && rc == OK; i++) {
        for (size_t j = 0; j < count && rc == OK; j++) {
            float x = values[i * count + j] * 255.5f;

            if (isnan(x))
                rc = error_set(e, ERR_ARG, "value %zu of image %zu is not a number", j, i);
            else
                pixels[j] = x <= 0 ? 0 : x >= 255 ? 255 : (uint8_t)x;
        }
        if (rc == OK)
            rc = put_png(member, pixels, height, width, channels, level_of(options), e);
    }
    wire_end(member, tensor);
    free(pixels);
    return rc;
}

static int image_encode_files(struct wire *member, const struct eventlog_bytes *images, size_t n, struct error *e)
{
    uint32_t width = 0, height = 0;
    size_t tensor;

    if (!n || n > IMAGES_MAX)
        return error_set(e, ERR_ARG, "%zu images in a batch; 1 to %d can be written", n, IMAGES_MAX);
    for (size_t i = n; i-- > 0;) /* backwards: the size of the first one is kept */
        if (image_header_read(images[i].data, images[i].length, &width, &height) == IMAGE_UNKNOWN)
            return error_set(e, ERR_ARG,
                             "image %zu is not a PNG, JPEG, GIF or BMP file, the only kinds that TensorBoard shows", i);
    tensor = image_begin(member, n, height, width);
    for (size_t i = 0; i < n; i++)
        wire_bytes(member, TENSOR_FIELD_STRING, images[i].data, images[i].length);
    wire_end(member, tensor);
    return OK;
}

static struct event_writer_value image_value_of(const char *tag, int64_t step, double wall_time,
                                                const struct eventlog_value_options *options)
{
    return (struct event_writer_value){
        .tag = tag, .step = step, .wall_time = wall_time, .plugin = "images", .blob = 1, .options = options
    };
}

int eventlog_writer_image(struct eventlog_writer *w, const char *tag, int64_t step, double wall_time,
                          const uint8_t *pixels, size_t n, size_t height, size_t width, size_t channels,
                          const struct eventlog_value_options *options, struct eventlog_error *error)
{
    struct event_writer_value value = image_value_of(tag, step, wall_time, options);
    struct wire member = WIRE_EMPTY;
    struct error e = { 0 };
    int rc = encode_pixels(&member, pixels, n, height, width, channels, options, &e);

    return event_writer_finish(w, rc, &value, &member, &e, error);
}

int eventlog_writer_image_floats(struct eventlog_writer *w, const char *tag, int64_t step, double wall_time,
                                 const float *values, size_t n, size_t height, size_t width, size_t channels,
                                 const struct eventlog_value_options *options, struct eventlog_error *error)
{
    struct event_writer_value value = image_value_of(tag, step, wall_time, options);
    struct wire member = WIRE_EMPTY;
    struct error e = { 0 };
    int rc = encode_floats(&member, values, n, height, width, channels, options, &e);

    return event_writer_finish(w, rc, &value, &member, &e, error);
}

int eventlog_writer_image_encoded(struct eventlog_writer *w, const char *tag, int64_t step, double wall_time,
                                  const struct eventlog_bytes *images, size_t n,
                                  const struct eventlog_value_options *options, struct eventlog_error *error)
{
    struct event_writer_value value = image_value_of(tag, step, wall_time, options);
    struct wire member = WIRE_EMPTY;
    struct error e = { 0 };
    int rc = image_encode_files(&member, images, n, &e);

    return event_writer_finish(w, rc, &value, &member, &e, error);
}
