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

#include <immintrin.h>
#include <stdlib.h>
#include <string.h>

/* Only what computes in bfloat16 uses its instructions. */
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#define INLINE static inline AVX512 __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

enum {
    LANES = 16,
    SIDE = 6, /* of a tile of x */
    POINTS = SIDE * SIDE,
    TILES = 32, /* computed together */
    WINDOW_MAX = 5,
};

/* Points whose squares are 1/2 and 2, and whose product is 1. */
#define NEAR 0.70710678118654752F
#define FAR 1.41421356237309505F

/* A convolution of x to y, or of dy to dx. */
struct direction {
    int height, width, channels; /* of what is read */
    int out_height, out_width, out_channels;
    int top, left;
    int tiles_down, tiles_right;
    float *w; /* (POINTS, channels, out_channels), or of pairs of channels; packed once prepared */
};

/* How a point of a tile is kept. PAIR_FIRST and PAIR_SECOND: of two tiles, in one element. */
enum form { WHOLE, ROUNDED, PAIR_FIRST, PAIR_SECOND };

struct convolution {
    struct convolution_shape s;
    int outputs; /* rows of a tile of y */
    struct direction forward, backward;
    float *left, *right; /* (POINTS, TILES, channels), or half as many pairs, with a gap after each point */
    float *sum;          /* weight gradient so far: (POINTS, channels, out_channels) */
    float *unpacked;     /* (channels, out_channels) */
};

/* Elements from one point to the next: a real or a pair each. Without the gap, points would be a power of two apart and
 * fall out of the cache. */
static size_t point_step(int channels)
{
    return (size_t)(TILES * channels + LANES);
}

/* ---- transforms of six numbers, or to six, each of 16 channels --------------------------------------------------- */

/*
 * Each is in two parts, of which the second starts anew from the same numbers: what a part needs of a whole tile stays
 * in the registers, and no operation is in both.
 */
enum { PARTS = 2, PART_POINTS = SIDE / PARTS };

INLINE __m512 times(float a, __m512 x, __m512 y) /* a x + y */
{
    return _mm512_fmadd_ps(_mm512_set1_ps(a), x, y);
}

INLINE void input_points(int part, const __m512 d[SIDE], __m512 to[PART_POINTS]) /* B' d */
{
    if (part == 0) {
        const __m512 even = times(-2, d[2], d[4]), odd = times(-2, d[1], d[3]);

        to[0] = _mm512_add_ps(d[0], times(-2.5F, d[2], d[4]));
        to[1] = times(NEAR, odd, even);
        to[2] = times(-NEAR, odd, even);
    } else {
        const __m512 even = times(-0.5F, d[2], d[4]), odd = times(-0.5F, d[1], d[3]);

        to[0] = times(FAR, odd, even);
        to[1] = times(-FAR, odd, even);
        to[2] = _mm512_add_ps(d[1], times(-2.5F, d[3], d[5]));
    }
}

/* A' m: rows part and part + 2 of four, or row part of two. */
INLINE void output_points(int outputs, int part, const __m512 m[SIDE], __m512 to[PARTS])
{
    if (part == 0) {
        const __m512 s = _mm512_add_ps(m[1], m[2]), u = _mm512_add_ps(m[3], m[4]);

        to[0] = _mm512_add_ps(_mm512_add_ps(m[0], s), u);
        if (outputs == 4)
            to[1] = times(2, u, _mm512_mul_ps(_mm512_set1_ps(0.5F), s));
    } else {
        const __m512 t = _mm512_sub_ps(m[1], m[2]), v = _mm512_sub_ps(m[3], m[4]);

        if (outputs == 4) {
            to[0] = times(FAR, v, _mm512_mul_ps(_mm512_set1_ps(NEAR), t));
            to[1] = times(2 * FAR, v, times(NEAR / 2, t, m[5]));
        } else
            to[0] = times(FAR, v, times(NEAR, t, m[5]));
    }
}

INLINE void gradient_points(int outputs, int part, const __m512 *y, __m512 to[PART_POINTS]) /* A y */
{
    const float square = part == 0 ? 0.5F : 2, root = part == 0 ? NEAR : FAR;
    const __m512 even = outputs == 2 ? y[0] : times(square, y[2], y[0]);
    const __m512 odd = outputs == 2 ? y[1] : times(square, y[3], y[1]);
    const __m512 plus = times(root, odd, even), minus = times(-root, odd, even);

    if (part == 0) {
        to[0] = y[0];
        to[1] = plus;
        to[2] = minus;
    } else {
        to[0] = plus;
        to[1] = minus;
        to[2] = y[outputs - 1];
    }
}

/* Row `point` of G for a window of `size` rows. */
static void window_row(int point, int size, float row[WINDOW_MAX])
{
    static const float at[SIDE - 1] = { 0, NEAR, -NEAR, FAR, -FAR }, f[SIDE - 1] = { 1, -1.5F, -1.5F, 6, 6 };
    float power = 1;

    for (int k = 0; k < size; k++) {
        row[k] = point == SIDE - 1 ? (float)(k == size - 1) : power / f[point];
        power *= point == SIDE - 1 ? 1 : at[point];
    }
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

struct tile {
    size_t image;
    int row, column; /* of its first pixel of y */
};

static struct tile tile_at(const struct convolution *c, const struct direction *d, size_t index)
{
    const size_t right = (size_t)d->tiles_right, of_image = (size_t)d->tiles_down * right;

    return (struct tile){ index / of_image, (int)(index % of_image / right) * c->outputs,
                          (int)(index % right) * c->outputs };
}

static void next_tile(const struct convolution *c, const struct direction *d, struct tile *t)
{
    if ((t->column += c->outputs) < d->out_width)
        return;
    t->column = 0;
    if ((t->row += c->outputs) < d->out_height)
        return;
    t->row = 0;
    t->image++;
}

/* A square of pixels of a plane, some of which may be outside: a bit for each row and column that is inside. */
struct square {
    ptrdiff_t first, row; /* reals from the plane to its first pixel, and from row to row */
    unsigned rows, columns;
    int inside;            /* all of it */
    __mmask16 masks[SIDE]; /* of each row: all of 16 channels, or none */
};

/* Bits [first, first + side) of those in [0, size), shifted down. */
INLINE unsigned bits_inside(int side, int first, int size)
{
    const unsigned all = (1u << side) - 1;
    const unsigned low = first < 0 ? all << -first : all;
    const unsigned high = size - first < side ? (1u << (size - first)) - 1 : all;

    return low & high & all;
}

INLINE struct square square_at(int side, int height, int width, int row, int column)
{
    struct square s = {
        .first = ((ptrdiff_t)row * width + column) * LANES,
        .row = (ptrdiff_t)width * LANES,
        .rows = bits_inside(side, row, height),
        .columns = bits_inside(side, column, width),
    };

    s.inside = (s.rows & s.columns) + 1 == 1u << side;
    UNROLL for (int i = 0; i < side; i++) s.masks[i] = (__mmask16) - (int)(s.rows >> i & 1);
    return s;
}

/* The pixels of column j, zeros outside. */
INLINE void read_column(int side, int inside, const struct square *s, const float *plane, int j, __m512 to[SIDE])
{
    const float *at = plane + (s->first + j * LANES);

    if (inside) {
        UNROLL for (int i = 0; i < side; i++) to[i] = _mm512_load_ps(at + i * s->row);
        return;
    }
    UNROLL for (int i = 0; i < side; i++) to[i] = _mm512_setzero_ps();
    if (s->columns >> j & 1)
        UNROLL for (int i = 0; i < side; i++) to[i] = _mm512_maskz_load_ps(s->masks[i], at + i * s->row);
}

/* What tiles become: the left matrix of a product whose rows are tiles, or of one whose rows are channels, in blocks of
 * 16 then; or its right matrix, packed. */
enum side { TILES_LEFT, CHANNELS_LEFT, CHANNELS_RIGHT };

/* Where block b of tile t is among the elements of a point. */
INLINE size_t element_of(enum side side, enum form form, size_t t, size_t b, size_t blocks)
{
    const size_t k = form == WHOLE ? t : t / 2, length = form == WHOLE ? TILES : TILES / 2;

    if (side == CHANNELS_LEFT)
        return (b * length + k) * LANES;
    if (side == CHANNELS_RIGHT)
        return winograd_packed(length, blocks * LANES, k, b * LANES);

    return (t * blocks + b) * (form == WHOLE ? LANES : LANES / 2);
}

/* The next row of points. The barrier keeps the compiler from computing the addresses of all 36 at once, which are more
 * than there are registers. */
INLINE float *next_row(const float *row, size_t step)
{
    row += SIDE * step;
    __asm__("" : "+r"(row));
    return (float *)(uintptr_t)row;
}

INLINE void store_points(enum form form, const __m512 points[SIDE], size_t step, float *row)
{
    UNROLL for (size_t j = 0; j < SIDE; j++)
    {
        float *to = row + j * step;

        if (form == WHOLE) {
            _mm512_store_ps(to, points[j]);
            continue;
        }
        const __m256i rounded = (__m256i)_mm512_cvtneps_pbh(points[j]);

        if (form == ROUNDED)
            _mm256_store_si256((__m256i *)(void *)to, rounded);
        else if (form == PAIR_FIRST)
            _mm512_store_si512(to, _mm512_cvtepu16_epi32(rounded));
        else
            _mm512_store_si512(
                to, _mm512_or_si512(_mm512_load_si512(to), _mm512_slli_epi32(_mm512_cvtepu16_epi32(rounded), 16)));
    }
}

/* B' d B of 16 channels of a tile of x. */
INLINE void read_square(enum form form, int inside, const struct square *s, const float *plane, size_t step, float *to)
{
    UNROLL for (int part = 0; part < PARTS; part++)
    {
        __m512 half[PART_POINTS][SIDE];

        UNROLL for (int j = 0; j < SIDE; j++)
        {
            __m512 column[SIDE], points[PART_POINTS];

            read_column(SIDE, inside, s, plane, j, column);
            input_points(part, column, points);
            UNROLL for (int i = 0; i < PART_POINTS; i++) half[i][j] = points[i];
        }
        UNROLL for (int i = 0; i < PART_POINTS; i++)
        {
            __m512 points[SIDE];

            input_points(0, half[i], points);
            input_points(1, half[i], points + PART_POINTS);
            store_points(form, points, step, to);
            to = next_row(to, step);
        }
    }
}

/* A dy A' of 16 channels of a tile of y. */
INLINE void read_gradient_square(enum form form, int outputs, int inside, const struct square *s, const float *plane,
                                 size_t step, float *to)
{
    UNROLL for (int part = 0; part < PARTS; part++)
    {
        __m512 half[PART_POINTS][4];

        UNROLL for (int j = 0; j < outputs; j++)
        {
            __m512 column[SIDE], points[PART_POINTS];

            read_column(outputs, inside, s, plane, j, column);
            gradient_points(outputs, part, column, points);
            UNROLL for (int i = 0; i < PART_POINTS; i++) half[i][j] = points[i];
        }
        UNROLL for (int i = 0; i < PART_POINTS; i++)
        {
            __m512 points[SIDE];

            gradient_points(outputs, 0, half[i], points);
            gradient_points(outputs, 1, half[i], points + PART_POINTS);
            store_points(form, points, step, to);
            to = next_row(to, step);
        }
    }
}

/* All channels of tile t of those kept together. */
INLINE void read_tile(enum side side, enum form form, const struct direction *d, const struct tile *at, size_t t,
                      const float *x, float *to)
{
    const size_t plane = (size_t)d->height * (size_t)d->width * LANES, blocks = (size_t)d->channels / LANES;
    const struct square s = square_at(SIDE, d->height, d->width, at->row - d->top, at->column - d->left);

    for (size_t b = 0; b < blocks; b++) {
        const float *image = x + (at->image * blocks + b) * plane;
        float *points = to + element_of(side, form, t, b, blocks);

        if (s.inside)
            read_square(form, 1, &s, image, point_step(d->channels), points);
        else
            read_square(form, 0, &s, image, point_step(d->channels), points);
    }
}

INLINE void read_gradient(enum form form, int outputs, const struct direction *d, const struct tile *at, size_t t,
                          const float *dy, float *to)
{
    const size_t plane = (size_t)d->out_height * (size_t)d->out_width * LANES, blocks = (size_t)d->out_channels / LANES;
    const struct square s = square_at(outputs, d->out_height, d->out_width, at->row, at->column);

    for (size_t b = 0; b < blocks; b++) {
        const float *image = dy + (at->image * blocks + b) * plane;
        float *points = to + element_of(CHANNELS_RIGHT, form, t, b, blocks);

        if (s.inside)
            read_gradient_square(form, outputs, 1, &s, image, point_step(d->out_channels), points);
        else
            read_gradient_square(form, outputs, 0, &s, image, point_step(d->out_channels), points);
    }
}

/* Tiles [first, first + count) of x to `to`, each for itself. */
AVX512 static void read_tiles(const struct convolution *c, const struct direction *d, size_t first, int count,
                              const float *x, float *to)
{
    struct tile at = tile_at(c, d, first);

    for (size_t t = 0; t < (size_t)count; t++, next_tile(c, d, &at))
        if (c->s.bfloat16)
            read_tile(TILES_LEFT, ROUNDED, d, &at, t, x, to);
        else
            read_tile(TILES_LEFT, WHOLE, d, &at, t, x, to);
}

/* The same for the gradient of the window, whose pairs are of two tiles. */
AVX512 static void read_tiles_to_sum(const struct convolution *c, size_t first, int count, const float *x, float *to)
{
    struct tile at = tile_at(c, &c->forward, first);

    for (size_t t = 0; t < (size_t)count; t++, next_tile(c, &c->forward, &at))
        if (!c->s.bfloat16)
            read_tile(CHANNELS_LEFT, WHOLE, &c->forward, &at, t, x, to);
        else if (t % 2 == 0)
            read_tile(CHANNELS_LEFT, PAIR_FIRST, &c->forward, &at, t, x, to);
        else
            read_tile(CHANNELS_LEFT, PAIR_SECOND, &c->forward, &at, t, x, to);
}

INLINE void read_gradients(int outputs, const struct convolution *c, size_t first, int count, const float *dy,
                           float *to)
{
    struct tile at = tile_at(c, &c->forward, first);

    for (size_t t = 0; t < (size_t)count; t++, next_tile(c, &c->forward, &at))
        if (!c->s.bfloat16)
            read_gradient(WHOLE, outputs, &c->forward, &at, t, dy, to);
        else if (t % 2 == 0)
            read_gradient(PAIR_FIRST, outputs, &c->forward, &at, t, dy, to);
        else
            read_gradient(PAIR_SECOND, outputs, &c->forward, &at, t, dy, to);
}

enum finishing { LEFT_AS_IT_IS, SCALED, ADDED };

INLINE __m512 finished(enum finishing how, const struct convolution_finish *f, size_t channel, size_t place, __m512 y)
{
    if (how == ADDED)
        return _mm512_add_ps(y, _mm512_load_ps(f->sum + place));
    if (how == SCALED) {
        const __m512 z = _mm512_fmadd_ps(_mm512_load_ps(f->scale + channel), y, _mm512_load_ps(f->offset + channel));

        return _mm512_mask_mul_ps(z, _mm512_cmp_ps_mask(z, _mm512_setzero_ps(), _CMP_LT_OQ), z,
                                  _mm512_set1_ps(f->slope));
    }
    return y;
}

/* A' m A of 16 channels from `channel` to the rows x columns pixels of a tile of y, at `at`, that are inside. */
INLINE void write_square(int outputs, enum finishing how, const struct convolution_finish *f, size_t channel,
                         const float *from, size_t step, int rows, int columns, size_t width, float *y, size_t at)
{
    const int each = outputs / PARTS;

    UNROLL for (int part = 0; part < PARTS; part++)
    {
        __m512 half[PARTS][SIDE]; /* (column of y, point down) */
        const float *points_row = from;

        UNROLL for (int i = 0; i < SIDE; i++, points_row = next_row(points_row, step))
        {
            __m512 points[SIDE], some[PARTS];

            UNROLL for (size_t j = 0; j < SIDE; j++) points[j] = _mm512_load_ps(points_row + j * step);
            output_points(outputs, part, points, some);
            UNROLL for (int k = 0; k < each; k++) half[k][i] = some[k];
        }
        UNROLL for (int k = 0; k < each; k++) UNROLL for (int down = 0; down < PARTS; down++)
        {
            const int column = part + PARTS * k;
            __m512 pixels[PARTS];

            output_points(outputs, down, half[k], pixels);
            UNROLL for (int i = 0; i < each; i++)
            {
                const int row = down + PARTS * i;

                const size_t place = at + ((size_t)row * width + (size_t)column) * LANES;

                if (row < rows && column < columns)
                    _mm512_store_ps(y + place, finished(how, f, channel, place, pixels[i]));
            }
        }
    }
}

/* Tiles [first, first + count) of y. */
INLINE void write_tiles(int outputs, const struct convolution_finish *f, const struct convolution *c,
                        const struct direction *d, size_t first, int count, const float *from, float *y)
{
    const size_t plane = (size_t)d->out_height * (size_t)d->out_width * LANES, width = (size_t)d->out_width;
    const size_t blocks = (size_t)d->out_channels / LANES, step = point_step(d->out_channels);
    struct tile t = tile_at(c, d, first);

    for (size_t k = 0; k < (size_t)count * blocks; k++, from += LANES) {
        const int rows = d->out_height - t.row, columns = d->out_width - t.column;
        const size_t b = k % blocks;
        const size_t at = (t.image * blocks + b) * plane + ((size_t)t.row * width + (size_t)t.column) * LANES;

        if (!f)
            write_square(outputs, LEFT_AS_IT_IS, f, b * LANES, from, step, rows, columns, width, y, at);
        else if (f->scale)
            write_square(outputs, SCALED, f, b * LANES, from, step, rows, columns, width, y, at);
        else
            write_square(outputs, ADDED, f, b * LANES, from, step, rows, columns, width, y, at);
        if (b == blocks - 1)
            next_tile(c, d, &t);
    }
}

/* ---- the convolution --------------------------------------------------------------------------------------------- */

AVX512 static void convolve(struct convolution *c, const struct direction *d, int images, const float *x,
                            const struct convolution_finish *f, float *y)
{
    const size_t total = (size_t)images * (size_t)d->tiles_down * (size_t)d->tiles_right;
    const size_t out = (size_t)d->out_channels, length = (size_t)d->channels / (c->s.bfloat16 ? 2 : 1);

    for (size_t first = 0; first < total; first += TILES) {
        const int count = total - first < TILES ? (int)(total - first) : TILES;

        read_tiles(c, d, first, count, x, c->left);
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
            .x_point = point_step(d->channels),
            .w = d->w,
            .w_length = length,
            .w_point = length * out,
            .y = c->right,
            .y_row = out,
            .y_group = WINOGRAD_PRODUCT_COLUMNS,
            .y_point = point_step(d->out_channels),
        });
        if (c->outputs == 4)
            write_tiles(4, f, c, d, first, count, c->right, y);
        else
            write_tiles(2, f, c, d, first, count, c->right, y);
    }
}

static int tiles_of(int size, int outputs)
{
    return (size + outputs - 1) / outputs;
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
    return s->window.height * s->window.width * pixels >= 2.2 * POINTS * tiles &&
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
    free(c->forward.w);
    free(c->backward.w);
    free(c->left);
    free(c->right);
    free(c->sum);
    free(c->unpacked);
    free(c);
}

static int winograd_make(struct convolution **out, const struct convolution_shape *s, struct error *e)
{
    const size_t w_size = (size_t)POINTS * (size_t)s->channels * (size_t)s->out_channels;
    const size_t most = POINTS * point_step(s->channels > s->out_channels ? s->channels : s->out_channels);
    const int backward = s->need_data_gradient && !s->forward_only;
    struct convolution *c = calloc(1, sizeof *c);

    if (!c)
        return error_memory(e, NULL, "for a convolution");
    c->s = *s;
    c->outputs = SIDE + 1 - s->window.height;
    c->forward = (struct direction){
        s->height,
        s->width,
        s->channels,
        s->out_height,
        s->out_width,
        s->out_channels,
        s->window.top,
        s->window.left,
        tiles_of(s->out_height, c->outputs),
        0,
        reals_new(w_size),
    };
    c->forward.tiles_right = tiles_of(s->out_width, c->outputs);
    c->backward = (struct direction){
        s->out_height,
        s->out_width,
        s->out_channels,
        s->height,
        s->width,
        s->channels,
        s->window.height - 1 - s->window.top,
        s->window.width - 1 - s->window.left,
        tiles_of(s->height, c->outputs),
        tiles_of(s->width, c->outputs),
        backward ? reals_new(w_size) : NULL,
    };
    c->left = reals_new(most);
    c->right = reals_new(most);
    c->sum = s->forward_only ? NULL : reals_new(w_size);
    c->unpacked = reals_new(w_size / POINTS);
    if (!c->forward.w || (backward && !c->backward.w) || !c->left || !c->right || !c->unpacked ||
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
        const float *from = c->forward.w + (inverse[p / SIDE] * SIDE + inverse[p % SIDE]) * in * out;
        const __m512 scale = _mm512_set1_ps(factor[p / SIDE] * factor[p % SIDE]);
        float *to = c->backward.w + p * in * out;

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

                if (!c->s.bfloat16) {
                    _mm512_store_ps(packed, _mm512_load_ps(from));
                    continue;
                }
                const __m256i a = (__m256i)_mm512_cvtneps_pbh(_mm512_load_ps(from));
                const __m256i b = (__m256i)_mm512_cvtneps_pbh(_mm512_load_ps(from + out_channels));

                _mm512_store_si512(
                    packed, _mm512_or_si512(_mm512_cvtepu16_epi32(a), _mm512_slli_epi32(_mm512_cvtepu16_epi32(b), 16)));
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
            _mm512_store_ps(c->forward.w + p * in * out + at, points[p]);
    }
    if (backward) {
        memset(c->sum, 0, POINTS * in * out * sizeof *c->sum);
        if (c->backward.w)
            turn_points(c);
    }
    pack(c, in, out, c->forward.w);
    if (backward && c->backward.w)
        pack(c, out, in, c->backward.w);
}

static void winograd_forward(struct convolution *c, int images, const real *x, real *y)
{
    convolve(c, &c->forward, images, x, NULL, y);
}

static void winograd_forward_and_finish(struct convolution *c, int images, const real *x,
                                        const struct convolution_finish *f, real *y)
{
    convolve(c, &c->forward, images, x, f, y);
}

static void winograd_backward_data(struct convolution *c, int images, const real *dy, real *dx)
{
    convolve(c, &c->backward, images, dy, NULL, dx);
}

/* Each product begins with the sum so far and goes on in the tiles' order, whatever their number. */
AVX512 static void winograd_backward_weights(struct convolution *c, int images, const real *x, const real *dy)
{
    const struct direction *d = &c->forward;
    const size_t total = (size_t)images * (size_t)d->tiles_down * (size_t)d->tiles_right;
    const size_t in = (size_t)d->channels, out = (size_t)d->out_channels, most = c->s.bfloat16 ? TILES / 2 : TILES;

    for (size_t first = 0; first < total; first += TILES) {
        const int count = total - first < TILES ? (int)(total - first) : TILES;

        read_tiles_to_sum(c, first, count, x, c->left);
        if (c->outputs == 4)
            read_gradients(4, c, first, count, dy, c->right);
        else
            read_gradients(2, c, first, count, dy, c->right);
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
            .x_point = point_step(d->channels),
            .w = c->right,
            .w_length = most,
            .w_point = point_step(d->out_channels),
            .y = c->sum,
            .y_row = out,
            .y_group = WINOGRAD_PRODUCT_COLUMNS,
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
