/*
 * Convolution in bfloat16 by AVX512-BF16 (bfloat16_avx512.h), without im2col, of any shape: blocks of 16 channels, or
 * NHWC.
 *
 * Each image is rounded into an array with the window's zeros around it. A window's row is then numbers beside each
 * other, and forward a product whose runs are these rows. The gradient of the data is a product, too, of the result's
 * gradients with zeros around them; of the window only each stride-th row and column meets a pixel of x, so pixels are
 * taken apart by their place between strides. The weight gradient sums over the pixels of a row, two by two: there x
 * is an array of pairs of pixels which are a stride apart.
 *
 * Images are computed one by one, and the weight gradients of each are added to the sum in order, so that results do
 * not depend on how many come in a call.
 */
#include "model/kernels/convolution.h"

#if CONVOLUTION_AVX512
#include "model/kernels/bfloat16.h"
#include "model/kernels/bfloat16_avx512.h"

#include <stdlib.h>
#include <string.h>

/* Pixels of dx whose rows are down, down + stride, ..., and columns likewise. */
struct phase {
    int down, right, lines, rows;
    int taps;         /* positions of the window that meet them */
    int *positions;   /* (taps) r * width + s */
    ptrdiff_t *runs;  /* (taps) of their first dy */
    uint32_t *packed; /* w for backward data */
};

struct convolution {
    struct convolution_shape s;
    int padded_height, padded_width; /* of x */
    ptrdiff_t *runs;                 /* (window.height) of the window's rows in it */
    uint16_t *x;                     /* (padded_height, padded_width, channels) */
    uint32_t *x_pairs;               /* the same of pairs (column, column + stride_width) */
    uint32_t *packed;                /* w for forward */
    int gradient_height, gradient_width, gradient_top, gradient_left;
    uint16_t *dy;       /* (gradient_height, gradient_width, out_channels), dy at (gradient_top, gradient_left) */
    uint32_t *dy_pairs; /* (out_height, out_width / 2, out_channels in whole vectors) */
    struct phase *phases;
    int phase_count;
    float *sum; /* weight gradient so far, HWIO */
};

static int avx512_load(struct error *e)
{
    (void)e;
    return OK;
}

static int avx512_block(int channels, int input)
{
    if (bfloat16_units() != BFLOAT16_AVX512)
        return 0;
    return input || channels % BFLOAT16_LANES ? channels : BFLOAT16_LANES;
}

static void avx512_release(struct convolution *c)
{
    if (!c)
        return;
    for (int i = 0; c->phases && i < c->phase_count; i++) {
        free(c->phases[i].positions);
        free(c->phases[i].runs);
        free(c->phases[i].packed);
    }
    free(c->phases);
    free(c->runs);
    free(c->x);
    free(c->x_pairs);
    free(c->packed);
    free(c->dy);
    free(c->dy_pairs);
    free(c->sum);
    free(c);
}

/* Position p of the window meets a pixel of x that is `at` after the first row, or column, of its phase in dy's row
 * at / stride + *offset. 0: it meets none of the phase. */
static int meets(int first, int before, int stride, int p, int *offset)
{
    const int distance = first + before - p;

    if (distance % stride)
        return 0;
    *offset = distance / stride;
    return 1;
}

/* How far the windows of one axis reach before dy's first and after its last row or column. */
static void find_margins(int size, int out_size, int before, int stride, int window, int *low, int *high)
{
    *low = 0;
    *high = out_size;
    for (int first = 0; first < stride && first < size; first++)
        for (int p = 0; p < window; p++) {
            const int last = (size - 1 - first) / stride;
            int offset;

            if (!meets(first, before, stride, p, &offset))
                continue;
            *low = -offset > *low ? -offset : *low;
            *high = last + offset + 1 > *high ? last + offset + 1 : *high;
        }
}

static int make_phase(struct convolution *c, struct phase *p, int down, int right)
{
    const struct convolution_shape *s = &c->s;
    const struct window *w = &s->window;
    const size_t places = (size_t)(w->height * w->width);

    p->down = down;
    p->right = right;
    p->lines = (s->height - down + w->stride_height - 1) / w->stride_height;
    p->rows = (s->width - right + w->stride_width - 1) / w->stride_width;
    p->positions = calloc(places, sizeof *p->positions);
    p->runs = calloc(places, sizeof *p->runs);
    if (!p->positions || !p->runs)
        return -1;
    for (int r = 0; r < w->height; r++)
        for (int q = 0; q < w->width; q++) {
            int i, j;

            if (!meets(down, w->top, w->stride_height, r, &i) || !meets(right, w->left, w->stride_width, q, &j))
                continue;
            p->positions[p->taps] = r * w->width + q;
            p->runs[p->taps++] = (ptrdiff_t)((c->gradient_top + i) * c->gradient_width + c->gradient_left + j) *
                                 s->out_channels;
        }
    p->packed = bfloat16_avx512_new(bfloat16_avx512_packed(p->taps, s->out_channels, s->channels), sizeof *p->packed);
    return p->packed ? 0 : -1;
}

static int make_backward_data(struct convolution *c)
{
    const struct convolution_shape *s = &c->s;
    const struct window *w = &s->window;
    const int down = w->stride_height < s->height ? w->stride_height : s->height;
    const int right = w->stride_width < s->width ? w->stride_width : s->width;

    find_margins(s->height, s->out_height, w->top, w->stride_height, w->height, &c->gradient_top, &c->gradient_height);
    find_margins(s->width, s->out_width, w->left, w->stride_width, w->width, &c->gradient_left, &c->gradient_width);
    c->gradient_height += c->gradient_top;
    c->gradient_width += c->gradient_left;
    c->dy = bfloat16_avx512_new((size_t)c->gradient_height * (size_t)c->gradient_width * (size_t)s->out_channels,
                                sizeof *c->dy);
    c->phases = calloc((size_t)(down * right), sizeof *c->phases);
    if (!c->dy || !c->phases)
        return -1;
    for (int i = 0; i < down; i++)
        for (int j = 0; j < right; j++)
            if (make_phase(c, &c->phases[c->phase_count++], i, j) < 0)
                return -1;
    return 0;
}

static int make_arrays(struct convolution *c)
{
    const struct convolution_shape *s = &c->s;
    const struct window *w = &s->window;
    const size_t pixels = (size_t)c->padded_height * (size_t)c->padded_width, channels = (size_t)s->channels;
    const size_t pairs = (size_t)s->out_height * bfloat16_pairs((size_t)s->out_width);

    c->runs = calloc((size_t)w->height, sizeof *c->runs);
    c->x = bfloat16_avx512_new(pixels * channels, sizeof *c->x);
    c->x_pairs = bfloat16_avx512_new(pixels * channels, sizeof *c->x_pairs);
    c->dy_pairs = bfloat16_avx512_new(pairs * bfloat16_lanes((size_t)s->out_channels), sizeof *c->dy_pairs);
    c->packed = bfloat16_avx512_new(bfloat16_avx512_packed(w->height, w->width * s->channels, s->out_channels),
                                    sizeof *c->packed);
    c->sum = bfloat16_avx512_new((size_t)(w->height * w->width) * channels * (size_t)s->out_channels, sizeof *c->sum);
    if (!c->runs || !c->x || !c->x_pairs || !c->dy_pairs || !c->packed || !c->sum)
        return -1;
    for (int r = 0; r < w->height; r++)
        c->runs[r] = (ptrdiff_t)r * c->padded_width * s->channels;
    return s->need_data_gradient ? make_backward_data(c) : 0;
}

/* A window of one pixel sees no rows: all pixels are one, so that tiles fit. */
static void join_rows(struct convolution_shape *s)
{
    const struct window *w = &s->window;

    if (w->height != 1 || w->width != 1 || w->stride_height != 1 || w->stride_width != 1 || w->top || w->bottom ||
        w->left || w->right)
        return;
    s->out_width = s->width *= s->height;
    s->out_height = s->height = 1;
}

static int avx512_make(struct convolution **out, const struct convolution_shape *s, struct error *e)
{
    struct convolution *c = calloc(1, sizeof *c);

    if (!c)
        return error_memory(e, NULL, "for a convolution");
    c->s = *s;
    join_rows(&c->s);
    c->padded_height = (c->s.out_height - 1) * s->window.stride_height + s->window.height;
    c->padded_width = (c->s.out_width - 1) * s->window.stride_width + s->window.width;
    if (make_arrays(c) < 0) {
        avx512_release(c);
        return error_memory(e, NULL, "for a convolution");
    }
    *out = c;
    return OK;
}

static void avx512_prepare(struct convolution *c, const real *w, int backward)
{
    const struct convolution_shape *s = &c->s;
    const int height = s->window.height, length = s->window.width * s->channels;
    const size_t position = (size_t)s->channels * (size_t)s->out_channels;

    for (int r = 0; r < height; r++)
        bfloat16_avx512_pack(r, height, length, s->out_channels, w + (size_t)(r * s->window.width) * position,
                             c->packed);
    if (!backward)
        return;
    memset(c->sum, 0, (size_t)(height * s->window.width) * position * sizeof *c->sum);
    for (int i = 0; i < c->phase_count; i++) {
        struct phase *p = &c->phases[i];

        for (int t = 0; t < p->taps; t++)
            bfloat16_avx512_pack_transposed(t, p->taps, s->out_channels, s->channels,
                                            w + (size_t)p->positions[t] * position, p->packed);
    }
}

static size_t avx512_image_size(const struct convolution *c)
{
    return (size_t)c->s.height * (size_t)c->s.width * (size_t)c->s.channels;
}

static size_t avx512_result_size(const struct convolution *c)
{
    return (size_t)c->s.out_height * (size_t)c->s.out_width * (size_t)c->s.out_channels;
}

/* Reals from one block of channels to the next. */
static size_t avx512_image_plane(const struct convolution *c)
{
    return (size_t)c->s.height * (size_t)c->s.width * (size_t)c->s.block;
}

static size_t avx512_result_plane(const struct convolution *c)
{
    return (size_t)c->s.out_height * (size_t)c->s.out_width * (size_t)c->s.out_block;
}

/* The same where the kernels write 16 channels at a time. */
static size_t lanes_apart(int channels, int block, size_t plane)
{
    return block == channels ? BFLOAT16_LANES : plane;
}

/* Of rows and columns of x: those that windows see. */
static int seen(int size, int before, int padded)
{
    return size < padded - before ? size : padded - before;
}

static void avx512_forward(struct convolution *c, int images, const real *x, real *y)
{
    const struct convolution_shape *s = &c->s;
    const struct window *w = &s->window;
    const size_t channels = (size_t)s->channels, block = (size_t)s->block, out_block = (size_t)s->out_block;
    const size_t line = (size_t)c->padded_width * channels;
    const int rows = seen(s->height, w->top, c->padded_height), columns = seen(s->width, w->left, c->padded_width);
    struct bfloat16_product p = {
        .lines = s->out_height,
        .rows = s->out_width,
        .outputs = s->out_channels,
        .x = c->x,
        .x_line = (size_t)w->stride_height * line,
        .x_row = (size_t)w->stride_width * channels,
        .runs = c->runs,
        .run_count = w->height,
        .length = w->width * s->channels,
        .w = c->packed,
        .y_line = (size_t)s->out_width * out_block,
        .y_row = out_block,
        .y_block = lanes_apart(s->out_channels, s->out_block, avx512_result_plane(c)),
    };

    for (size_t n = 0; n < (size_t)images; n++) {
        const real *image = x + n * avx512_image_size(c);

        for (int i = 0; i < rows; i++)
            bfloat16_avx512_round_pixels((size_t)columns, channels, block, avx512_image_plane(c),
                                         image + (size_t)(i * s->width) * block,
                                         c->x + (size_t)(w->top + i) * line + (size_t)w->left * channels);
        p.y = y + n * avx512_result_size(c);
        bfloat16_avx512_multiply(&p);
    }
}

static void backward_image(const struct convolution *c, real *dx)
{
    const struct convolution_shape *s = &c->s;
    const size_t block = (size_t)s->block, line = (size_t)s->width * block;
    const size_t height = (size_t)s->window.stride_height, width = (size_t)s->window.stride_width;

    for (int i = 0; i < c->phase_count; i++) {
        const struct phase *f = &c->phases[i];
        const struct bfloat16_product p = {
            .lines = f->lines,
            .rows = f->rows,
            .outputs = s->channels,
            .x = c->dy,
            .x_line = (size_t)c->gradient_width * (size_t)s->out_channels,
            .x_row = (size_t)s->out_channels,
            .runs = f->runs,
            .run_count = f->taps,
            .length = s->out_channels,
            .w = f->packed,
            .y = dx + (size_t)f->down * line + (size_t)f->right * block,
            .y_line = height * line,
            .y_row = width * block,
            .y_block = lanes_apart(s->channels, s->block, avx512_image_plane(c)),
        };

        bfloat16_avx512_multiply(&p);
    }
}

static void avx512_backward_data(struct convolution *c, int images, const real *dy, real *dx)
{
    const struct convolution_shape *s = &c->s;
    const size_t outputs = (size_t)s->out_channels, block = (size_t)s->out_block, width = (size_t)s->out_width;

    for (size_t n = 0; n < (size_t)images; n++) {
        const real *image = dy + n * avx512_result_size(c);

        for (int i = 0; i < s->out_height; i++) {
            const int first = (c->gradient_top + i) * c->gradient_width + c->gradient_left;

            bfloat16_avx512_round_pixels(width, outputs, block, avx512_result_plane(c),
                                         image + (size_t)i * width * block, c->dy + (size_t)first * outputs);
        }
        backward_image(c, dx + n * avx512_image_size(c));
    }
}

/* All channels of two pixels of an image whose blocks are `plane` reals apart. NULL: zeros. */
static void pair_pixels(size_t channels, size_t block, size_t plane, const real *a, const real *b, uint32_t *to)
{
    for (size_t k = 0; k < channels; k += block) {
        const size_t at = k / block * plane;

        bfloat16_avx512_pair(block, a ? a + at : NULL, b ? b + at : NULL, to + k);
    }
}

/* A row of the padded image as pairs of a column and the one that the next window has in its place. */
static void pair_row(const struct convolution *c, const real *row, int columns, uint32_t *to)
{
    const size_t channels = (size_t)c->s.channels, block = (size_t)c->s.block, plane = avx512_image_plane(c);
    const int left = c->s.window.left, stride = c->s.window.stride_width;

    for (int j = 0; j < c->padded_width; j++, to += channels) {
        const int first = j - left, second = first + stride;
        const int has_first = first >= 0 && first < columns, has_second = second >= 0 && second < columns;

        if (has_first || has_second)
            pair_pixels(channels, block, plane, has_first ? row + (size_t)first * block : NULL,
                        has_second ? row + (size_t)second * block : NULL, to);
    }
}

static void pair_result(const struct convolution *c, const real *dy)
{
    const size_t outputs = (size_t)c->s.out_channels, block = (size_t)c->s.out_block, plane = avx512_result_plane(c);
    uint32_t *to = c->dy_pairs;

    for (int i = 0; i < c->s.out_height; i++)
        for (int j = 0; j < c->s.out_width; j += 2, to += bfloat16_lanes(outputs)) {
            const real *at = dy + (size_t)(i * c->s.out_width + j) * block;

            pair_pixels(outputs, block, plane, at, j + 1 < c->s.out_width ? at + block : NULL, to);
        }
}

static void avx512_backward_weights(struct convolution *c, int images, const real *x, const real *dy)
{
    const struct convolution_shape *s = &c->s;
    const struct window *w = &s->window;
    const size_t channels = (size_t)s->channels, line = (size_t)c->padded_width * channels;
    const size_t row = (size_t)w->width * channels;
    const int rows = seen(s->height, w->top, c->padded_height), columns = seen(s->width, w->left, c->padded_width);

    for (size_t n = 0; n < (size_t)images; n++) {
        const real *image = x + n * avx512_image_size(c);

        for (int i = 0; i < rows; i++)
            pair_row(c, image + (size_t)(i * s->width * s->block), columns, c->x_pairs + (size_t)(w->top + i) * line);
        pair_result(c, dy + n * avx512_result_size(c));
        for (int r = 0; r < w->height; r++)
            bfloat16_avx512_add_outer(&(struct bfloat16_outer){
                .lines = s->out_height,
                .pairs = (int)bfloat16_pairs((size_t)s->out_width),
                .rows = (int)row,
                .outputs = s->out_channels,
                .x = c->x_pairs + (size_t)r * line,
                .x_line = (size_t)w->stride_height * line,
                .x_step = 2 * (size_t)w->stride_width * channels,
                .dy = c->dy_pairs,
                .sum = c->sum + (size_t)r * row * (size_t)s->out_channels,
            });
    }
}

static void avx512_weights_gradient(struct convolution *c, real *dw)
{
    memcpy(dw, c->sum,
           (size_t)(c->s.window.height * c->s.window.width) * (size_t)c->s.channels * (size_t)c->s.out_channels *
               sizeof *dw);
}

const struct convolution_backend convolution_avx512 = {
    "AVX512-BF16",
    avx512_load,
    NULL, /* one */
    avx512_block,
    avx512_make,
    avx512_release,
    avx512_prepare,
    avx512_forward,
    avx512_backward_data,
    avx512_backward_weights,
    avx512_weights_gradient,
    NULL,
};

#endif
