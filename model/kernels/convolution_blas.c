/*
 * Convolution as a matrix product: the window of each output pixel becomes a row of a matrix (im2col); the rows times
 * the kernel as a (height width channels, out_channels) matrix are the result. Rows are made for about ROWS output
 * pixels at a time, so that the matrix is still in the cache when it is multiplied. Only whole-channel layouts (NHWC).
 */
#include "model/kernels/convolution.h"

#include "model/kernels/blas.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 512 };

struct convolution {
    struct convolution_shape s;
    const real *w;
    real *rows;       /* (group out_height out_width, patch) */
    real *sum;        /* (patch, out_channels): weight gradient */
    int patch, group; /* reals of a window; images per group of rows */
};

static int blas_block(int channels, int input)
{
    (void)input;
    return channels;
}

static void blas_release(struct convolution *c)
{
    if (!c)
        return;
    free(c->rows);
    free(c->sum);
    free(c);
}

static int blas_make(struct convolution **out, const struct convolution_shape *s, struct error *e)
{
    struct convolution *c = calloc(1, sizeof *c);
    const int pixels = s->out_height * s->out_width;

    if (!c)
        return error_memory(e, NULL, "for a convolution");
    c->s = *s;
    c->patch = s->window.height * s->window.width * s->channels;
    c->group = pixels >= ROWS ? 1 : ROWS / pixels;
    if (c->group > s->images)
        c->group = s->images;
    c->rows = malloc((size_t)c->group * (size_t)pixels * (size_t)c->patch * sizeof *c->rows);
    c->sum = calloc((size_t)c->patch * (size_t)s->out_channels, sizeof *c->sum);
    if (!c->rows || !c->sum) {
        blas_release(c);
        return error_memory(e, NULL, "for the rows of a convolution");
    }
    *out = c;
    return OK;
}

static void blas_prepare(struct convolution *c, const real *w, int backward)
{
    c->w = w;
    if (backward)
        memset(c->sum, 0, (size_t)c->patch * (size_t)c->s.out_channels * sizeof *c->sum);
}

/* Copies a row of the window that starts at column `left` of an image row (NULL: outside), with zeros outside the
 * image. */
static void copy_window_row(const struct convolution_shape *s, const real *line, int left, real *out)
{
    const size_t channels = (size_t)s->channels;
    const int width = s->window.width, first = left < 0 ? -left : 0;
    const int last = left + width > s->width ? s->width - left : width;

    if (line && first == 0 && last == width) { /* nearly all windows; short copies are not worth a call */
        const real *in = line + (size_t)left * channels;
        for (size_t k = 0; k < (size_t)width * channels; k++)
            out[k] = in[k];
        return;
    }
    if (!line || last <= first) {
        memset(out, 0, (size_t)width * channels * sizeof *out);
        return;
    }
    memset(out, 0, (size_t)first * channels * sizeof *out);
    memcpy(out + (size_t)first * channels, line + (ptrdiff_t)(left + first) * (ptrdiff_t)channels,
           (size_t)(last - first) * channels * sizeof *out);
    memset(out + (size_t)last * channels, 0, (size_t)(width - last) * channels * sizeof *out);
}

static void image_to_rows(const struct convolution *c, const real *x, real *rows)
{
    const struct convolution_shape *s = &c->s;
    const struct window *w = &s->window;
    const size_t line = (size_t)s->width * (size_t)s->channels, part = (size_t)w->width * (size_t)s->channels;

    for (int i = 0; i < s->out_height; i++)
        for (int j = 0; j < s->out_width; j++)
            for (int r = 0; r < w->height; r++, rows += part) {
                const int row = i * w->stride_height - w->top + r;
                copy_window_row(s, row < 0 || row >= s->height ? NULL : x + (size_t)row * line,
                                j * w->stride_width - w->left, rows);
            }
}

/* The transpose: adds each window's gradients to dx where its pixels came from. */
static void rows_to_image(const struct convolution *c, const real *rows, real *dx)
{
    const struct convolution_shape *s = &c->s;
    const struct window *w = &s->window;
    const size_t channels = (size_t)s->channels, line = (size_t)s->width * channels;

    memset(dx, 0, (size_t)s->height * line * sizeof *dx);
    for (int i = 0; i < s->out_height; i++)
        for (int j = 0; j < s->out_width; j++)
            for (int r = 0; r < w->height; r++, rows += (size_t)w->width * channels) {
                const int row = i * w->stride_height - w->top + r, left = j * w->stride_width - w->left;
                const int first = left < 0 ? -left : 0, last = left + w->width > s->width ? s->width - left : w->width;

                if (row < 0 || row >= s->height || last <= first)
                    continue;
                real *to = dx + (size_t)row * line + (size_t)(left + first) * channels;
                for (size_t k = 0; k < (size_t)(last - first) * channels; k++)
                    to[k] += rows[(size_t)first * channels + k];
            }
}

static size_t image_size(const struct convolution *c)
{
    return (size_t)c->s.height * (size_t)c->s.width * (size_t)c->s.channels;
}

static size_t out_size(const struct convolution *c)
{
    return (size_t)c->s.out_height * (size_t)c->s.out_width * (size_t)c->s.out_channels;
}

static size_t rows_size(const struct convolution *c)
{
    return (size_t)c->s.out_height * (size_t)c->s.out_width * (size_t)c->patch;
}

static int group_rows(const struct convolution *c, int images)
{
    return images * c->s.out_height * c->s.out_width;
}

static int group_images(const struct convolution *c, int first, int images)
{
    return images - first < c->group ? images - first : c->group;
}

static void make_rows(struct convolution *c, int images, const real *x)
{
    for (int n = 0; n < images; n++)
        image_to_rows(c, x + (size_t)n * image_size(c), c->rows + (size_t)n * rows_size(c));
}

static void blas_forward(struct convolution *c, int images, const real *x, real *y)
{
    for (int n = 0; n < images; n += c->group) {
        const int group = group_images(c, n, images);
        make_rows(c, group, x + (size_t)n * image_size(c));
        blas_product(0, 0, group_rows(c, group), c->s.out_channels, c->patch, c->rows, c->w, 0,
                     y + (size_t)n * out_size(c));
    }
}

static void blas_backward_data(struct convolution *c, int images, const real *dy, real *dx)
{
    for (int n = 0; n < images; n += c->group) {
        const int group = group_images(c, n, images);
        blas_product(0, 1, group_rows(c, group), c->patch, c->s.out_channels, dy + (size_t)n * out_size(c), c->w, 0,
                     c->rows);
        for (int k = 0; k < group; k++)
            rows_to_image(c, c->rows + (size_t)k * rows_size(c), dx + (size_t)(n + k) * image_size(c));
    }
}

static void blas_backward_weights(struct convolution *c, int images, const real *x, const real *dy)
{
    for (int n = 0; n < images; n += c->group) {
        const int group = group_images(c, n, images);
        make_rows(c, group, x + (size_t)n * image_size(c));
        blas_product(1, 0, c->patch, c->s.out_channels, group_rows(c, group), c->rows, dy + (size_t)n * out_size(c), 1,
                     c->sum);
    }
}

static void blas_weights_gradient(struct convolution *c, real *dw)
{
    memcpy(dw, c->sum, (size_t)c->patch * (size_t)c->s.out_channels * sizeof *dw);
}

const struct convolution_backend convolution_blas = {
    "OpenBLAS",
    blas_load,
    NULL, /* it multiplies with blas_product */
    blas_block,
    blas_make,
    blas_release,
    blas_prepare,
    blas_forward,
    blas_backward_data,
    blas_backward_weights,
    blas_weights_gradient,
    NULL,
};
