/*
 * Convolution by Winograd's algorithm. A tile of outputs x outputs pixels of y comes from 6x6 pixels d of x and the
 * window g as
 *   Y = A' ((G g G') * (B' d B)) A
 * where * multiplies number by number. It is the product of polynomials by their values at 0, +-sqrt(1/2), +-sqrt(2)
 * and infinity, whose powers, and so the rounding, stay small (+-1 and +-2 are used more often, but lose four times as
 * much). Row a of A and, over f(a), of G are the powers of a, as many as the tile's and the window's rows; f(a) is the
 * product of the differences from the other points. B is the same for all windows whose tiles have 6 rows. Summed over
 * channels, * is a matrix product at each of the 36 points: (tiles, channels) (channels, out_channels).
 *
 * The gradient of the data is the same convolution with the window turned around. The gradient of the window is the
 * transposed algorithm, dg = G' (sum over tiles of (A dy A') * (B' d B)) G, whose sum over all images stays at the
 * points until the step's end.
 *
 * Some tiles at a time go through all of this, so that what is between stays in the cache.
 *
 * In bfloat16 the two factors of * are rounded to it, at the points, and everything else is as in float32. The products
 * are then of pairs (bfloat16_avx512.h): of two channels, or in the gradient of the window of two tiles.
 */
#include "model/kernels/convolution_winograd.h"

#if CONVOLUTION_WINOGRAD
#include "model/kernels/bfloat16.h"
#include "model/kernels/library_onednn.h"
#include "model/kernels/winograd_product.h"
#include "model/kernels/winograd_tiles.h"

#include <immintrin.h>
#include <stdlib.h>
#include <string.h>

/* Only what computes in bfloat16 uses its instructions. */
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#define INLINE static inline AVX512 __attribute__((always_inline))

enum { LANES = 16, SIDE = WINOGRAD_SIDE, POINTS = WINOGRAD_POINTS, WINDOW_MAX = 5 };

struct convolution {
    struct convolution_shape s;
    struct winograd_tiles forward, backward;
    float *forward_w, *backward_w; /* (POINTS, channels, out_channels), or of pairs of channels; packed once prepared */
    float *left, *right;           /* (POINTS, WINOGRAD_TILES, channels), or half as many pairs, with gaps */
    float *sum;                    /* weight gradient so far: (POINTS, channels, out_channels) */
    float *unpacked;               /* (channels, out_channels) */
};

INLINE __m512 times(float a, __m512 x, __m512 y) /* a x + y */
{
    return _mm512_fmadd_ps(_mm512_set1_ps(a), x, y);
}

/* Row `point` of G for a window of `size` rows. */
static void window_row(int point, int size, float row[WINDOW_MAX])
{
    static const float at[SIDE - 1] = { 0, WINOGRAD_NEAR, -WINOGRAD_NEAR, WINOGRAD_FAR, -WINOGRAD_FAR },
                                 f[SIDE - 1] = { 1, -1.5F, -1.5F, 6, 6 };
    float power = 1;

    for (int k = 0; k < size; k++) {
        row[k] = point == SIDE - 1 ? (float)(k == size - 1) : power / f[point];
        power *= point == SIDE - 1 ? 1 : at[point];
    }
}

/* ---- the convolution --------------------------------------------------------------------------------------------- */

static void convolve(struct convolution *c, const struct winograd_tiles *d, const float *w, int images, const float *x,
                     const struct convolution_finish *f, float *y)
{
    const size_t total = (size_t)images * (size_t)d->tiles_down * (size_t)d->tiles_right;
    const size_t out = (size_t)d->out_channels, length = (size_t)d->channels / (c->s.bfloat16 ? 2 : 1);

    for (size_t first = 0; first < total; first += WINOGRAD_TILES) {
        const int count = total - first < WINOGRAD_TILES ? (int)(total - first) : WINOGRAD_TILES;

        winograd_read_tiles(d, first, count, x, c->left);
        winograd_multiply(&(struct winograd_product){
            .points = POINTS,
            .rows = (count + WINOGRAD_PRODUCT_ROWS - 1) / WINOGRAD_PRODUCT_ROWS *
                    WINOGRAD_PRODUCT_ROWS, /* those after the last are never looked at */
            .outputs = d->out_channels,
            .length = (int)length,
            .rounded = c->s.bfloat16,
            .x = c->left,
            .x_row = length,
            .x_step = 1,
            .x_block = LANES * length,
            .x_point = winograd_point_step(d->channels),
            .w = w,
            .w_length = length,
            .w_point = length * out,
            .y = c->right,
            .y_row = out,
            .y_point = winograd_point_step(d->out_channels),
        });
        winograd_write_tiles(d, first, count, c->right, f, y);
    }
}

static int tiles_of(int size, int outputs)
{
    return (size + outputs - 1) / outputs;
}

static void count_tiles(struct winograd_tiles *d)
{
    d->tiles_down = tiles_of(d->out_height, d->outputs);
    d->tiles_right = tiles_of(d->out_width, d->outputs);
}

/* ---- the interface ----------------------------------------------------------------------------------------------- */

int convolution_winograd_can(const struct convolution_shape *s)
{
    const struct window *w = &s->window;

    return w->height == w->width && (w->height == 3 || w->height == 5) && w->stride_height == 1 &&
           w->stride_width == 1 && s->block == LANES && s->out_block == LANES &&
           (!s->bfloat16 || bfloat16_units() == BFLOAT16_AVX512);
}

/*
 * As measured on Zen 5 beside oneDNN 2.6: 1.5 times as fast forward and backward at 16 channels, up to 3 times at more,
 * where tiles do not reach far over the image's edge. What a step costs besides, by (channels, out_channels), has to be
 * little beside what each image saves, by pixel.
 */
int convolution_winograd_pays(const struct convolution_shape *s)
{
    const double pixels = (double)s->out_height * s->out_width;

    if (!convolution_winograd_can(s))
        return 0;
    const int side = SIDE + 1 - s->window.height;
    const int down = tiles_of(s->out_height, side), right = tiles_of(s->out_width, side);
    const double tiles = (double)down * right;

    if (s->bfloat16 && !s->forward_only && down * right % 2) /* a pair would be of two images */
        return 0;
    return s->window.height * s->window.width * pixels >= 2.2 * (double)POINTS * tiles &&
           (double)s->channels * s->out_channels <= 512 * pixels;
}

static int winograd_block(int channels, int input)
{
    return !input && convolution_onednn.block(channels, 0) == LANES && /* it wants 16 of AVX-512 alone */
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                   __builtin_cpu_supports("avx512dq")
               ? LANES
               : 0;
}

static void winograd_release(struct convolution *c)
{
    if (!c)
        return;
    free(c->forward_w);
    free(c->backward_w);
    free(c->left);
    free(c->right);
    free(c->sum);
    free(c->unpacked);
    free(c);
}

static int winograd_make(struct convolution **out, const struct convolution_shape *s, struct error *e)
{
    const size_t w_size = (size_t)POINTS * (size_t)s->channels * (size_t)s->out_channels;
    const size_t most = POINTS * winograd_point_step(s->channels > s->out_channels ? s->channels : s->out_channels);
    const int backward = s->need_data_gradient && !s->forward_only;
    struct convolution *c = calloc(1, sizeof *c);

    if (!c)
        return error_memory(e, NULL, "for a convolution");
    c->s = *s;
    c->forward = (struct winograd_tiles){
        .height = s->height,
        .width = s->width,
        .channels = s->channels,
        .out_height = s->out_height,
        .out_width = s->out_width,
        .out_channels = s->out_channels,
        .top = s->window.top,
        .left = s->window.left,
        .outputs = SIDE + 1 - s->window.height,
        .bfloat16 = s->bfloat16,
    };
    c->backward = (struct winograd_tiles){
        .height = s->out_height,
        .width = s->out_width,
        .channels = s->out_channels,
        .out_height = s->height,
        .out_width = s->width,
        .out_channels = s->channels,
        .top = s->window.height - 1 - s->window.top,
        .left = s->window.width - 1 - s->window.left,
        .outputs = c->forward.outputs,
        .bfloat16 = s->bfloat16,
    };
    count_tiles(&c->forward);
    count_tiles(&c->backward);
    c->forward_w = reals_new(w_size);
    c->backward_w = backward ? reals_new(w_size) : NULL;
    c->left = reals_new(most);
    c->right = reals_new(most);
    c->sum = s->forward_only ? NULL : reals_new(w_size);
    c->unpacked = reals_new(w_size / POINTS);
    if (!c->forward_w || (backward && !c->backward_w) || !c->left || !c->right || !c->unpacked ||
        (!c->sum && !s->forward_only)) {
        winograd_release(c);
        return error_memory(e, NULL, "for a convolution");
    }
    *out = c;
    return OK;
}

/* G g G' of 16 output channels from w, whose taps are tap_step apart. */
INLINE void window_points(int size, const float *w, size_t tap_step, __m512 to[POINTS])
{
    float rows[SIDE][WINDOW_MAX];
    __m512 half[SIDE][WINDOW_MAX];

    for (int point = 0; point < SIDE; point++)
        window_row(point, size, rows[point]);
    for (int point = 0; point < SIDE; point++)
        for (int q = 0; q < size; q++) {
            half[point][q] = _mm512_setzero_ps();
            for (int r = 0; r < size; r++)
                half[point][q] = times(rows[point][r], _mm512_loadu_ps(w + (size_t)(r * size + q) * tap_step),
                                       half[point][q]);
        }
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            to[i * SIDE + j] = _mm512_setzero_ps();
            for (int q = 0; q < size; q++)
                to[i * SIDE + j] = times(rows[j][q], half[i][q], to[i * SIDE + j]);
        }
}

/*
 * The points of the turned window from those of the window: the turned polynomial's value at a is that of the other one
 * at 1 / a times a power of a. So point and product change by a table, and only (channels, out_channels) is transposed.
 */
AVX512 static void turn_points(struct convolution *c)
{
    static const size_t inverse[SIDE] = { 5, 3, 4, 1, 2, 0 };
    static const float factors[2][SIDE] = { { 1, -2, -2, -0.5F, -0.5F, 1 }, { 1, -1, -1, -1, -1, 1 } };
    const float *factor = factors[c->s.window.height == WINDOW_MAX];
    const size_t in = (size_t)c->s.channels, out = (size_t)c->s.out_channels;
    const __m512i rows = _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                            _mm512_set1_epi32(c->s.out_channels));

    for (size_t p = 0; p < POINTS; p++) {
        const float *from = c->forward_w + (inverse[p / SIDE] * SIDE + inverse[p % SIDE]) * in * out;
        const __m512 scale = _mm512_set1_ps(factor[p / SIDE] * factor[p % SIDE]);
        float *to = c->backward_w + p * in * out;

        for (size_t i = 0; i < in; i += LANES)
            for (size_t o = 0; o < out; o++)
                _mm512_store_ps(to + o * in + i,
                                _mm512_mul_ps(scale, _mm512_i32gather_ps(rows, from + i * out + o, sizeof *from)));
    }
}

/* Packs (channels, out_channels) of each point for a product, rounded in pairs of channels if those are wanted. */
AVX512 static void pack(struct convolution *c, size_t channels, size_t out_channels, float *w)
{
    const size_t size = channels * out_channels, step = c->s.bfloat16 ? 2 : 1, length = channels / step;

    for (size_t point = 0; point < POINTS; point++) {
        float *to = w + point * size / step;

        memcpy(c->unpacked, w + point * size, size * sizeof *w);
        for (size_t k = 0; k < length; k++)
            for (size_t o = 0; o < out_channels; o += LANES) {
                const float *from = c->unpacked + k * step * out_channels + o;
                float *packed = to + winograd_packed(length, out_channels, k, o);

                if (c->s.bfloat16)
                    bfloat16_avx512_pair(LANES, from, from + out_channels, (uint32_t *)packed);
                else
                    _mm512_store_ps(packed, _mm512_load_ps(from));
            }
    }
}

AVX512 static void winograd_prepare(struct convolution *c, const real *w, int backward)
{
    const size_t in = (size_t)c->s.channels, out = (size_t)c->s.out_channels;
    __m512 points[POINTS];

    for (size_t at = 0; at < in * out; at += LANES) {
        window_points(c->s.window.height, w + at, in * out, points);
        for (size_t p = 0; p < POINTS; p++)
            _mm512_store_ps(c->forward_w + p * in * out + at, points[p]);
    }
    if (backward) {
        memset(c->sum, 0, POINTS * in * out * sizeof *c->sum);
        if (c->backward_w)
            turn_points(c);
    }
    pack(c, in, out, c->forward_w);
    if (backward && c->backward_w)
        pack(c, out, in, c->backward_w);
}

static void winograd_forward(struct convolution *c, int images, const real *x, real *y)
{
    convolve(c, &c->forward, c->forward_w, images, x, NULL, y);
}

static void winograd_forward_and_finish(struct convolution *c, int images, const real *x,
                                        const struct convolution_finish *f, real *y)
{
    convolve(c, &c->forward, c->forward_w, images, x, f, y);
}

static void winograd_backward_data(struct convolution *c, int images, const real *dy, real *dx)
{
    convolve(c, &c->backward, c->backward_w, images, dy, NULL, dx);
}

/* Each product begins with the sum so far and goes on in the tiles' order, whatever their number. */
static void winograd_backward_weights(struct convolution *c, int images, const real *x, const real *dy)
{
    const struct winograd_tiles *d = &c->forward;
    const size_t total = (size_t)images * (size_t)d->tiles_down * (size_t)d->tiles_right;
    const size_t in = (size_t)d->channels, out = (size_t)d->out_channels,
                 most = c->s.bfloat16 ? WINOGRAD_TILES / 2 : WINOGRAD_TILES;

    for (size_t first = 0; first < total; first += WINOGRAD_TILES) {
        const int count = total - first < WINOGRAD_TILES ? (int)(total - first) : WINOGRAD_TILES;

        winograd_read_tiles_to_sum(d, first, count, x, c->left);
        winograd_read_gradients(d, first, count, dy, c->right);
        winograd_multiply(&(struct winograd_product){
            .points = POINTS,
            .rows = d->channels,
            .outputs = d->out_channels,
            .length = c->s.bfloat16 ? (count + 1) / 2 : count,
            .add = 1,
            .rounded = c->s.bfloat16,
            .x = c->left,
            .x_row = 1,
            .x_step = LANES,
            .x_block = LANES * most,
            .x_point = winograd_point_step(d->channels),
            .w = c->right,
            .w_length = most,
            .w_point = winograd_point_step(d->out_channels),
            .y = c->sum,
            .y_row = out,
            .y_point = in * out,
        });
    }
}

AVX512 static void winograd_weights_gradient(struct convolution *c, real *dw)
{
    const size_t in = (size_t)c->s.channels, out = (size_t)c->s.out_channels;
    const int size = c->s.window.height;
    float rows[SIDE][WINDOW_MAX];

    for (int point = 0; point < SIDE; point++)
        window_row(point, size, rows[point]);
    for (size_t at = 0; at < in * out; at += LANES) {
        __m512 half[WINDOW_MAX][SIDE];

        for (int r = 0; r < size; r++)
            for (int j = 0; j < SIDE; j++) {
                half[r][j] = _mm512_setzero_ps();
                for (int i = 0; i < SIDE; i++)
                    half[r][j] = times(rows[i][r], _mm512_load_ps(c->sum + (size_t)(i * SIDE + j) * in * out + at),
                                       half[r][j]);
            }
        for (int r = 0; r < size; r++)
            for (int q = 0; q < size; q++) {
                __m512 tap = _mm512_setzero_ps();

                for (int j = 0; j < SIDE; j++)
                    tap = times(rows[j][q], half[r][j], tap);
                _mm512_storeu_ps(dw + (size_t)(r * size + q) * in * out + at, tap);
            }
    }
}

const struct convolution_backend convolution_winograd = {
    "Winograd",
    library_onednn_load, /* which knows the processor */
    NULL,
    winograd_block,
    winograd_make,
    winograd_release,
    winograd_prepare,
    winograd_forward,
    winograd_backward_data,
    winograd_backward_weights,
    winograd_weights_gradient,
    winograd_forward_and_finish,
};
#endif
