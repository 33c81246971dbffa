#include "model/kernels/winograd_tiles.h"

#if BFLOAT16_AVX512_BUILT
#include "model/kernels/winograd_product.h"

#include <immintrin.h>
#include <stdint.h>

/* Only what computes in bfloat16 uses its instructions. */
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#define INLINE static inline AVX512 __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

enum { LANES = 16, SIDE = WINOGRAD_SIDE };

/* How a point of a tile is kept. PAIR_FIRST and PAIR_SECOND: of two tiles, in one element. */
enum form { WHOLE, ROUNDED, PAIR_FIRST, PAIR_SECOND };

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

/* y - a x, from the register that a x + y needs, too */
INLINE __m512 minus_times(float a, __m512 x, __m512 y)
{
    return _mm512_fnmadd_ps(_mm512_set1_ps(a), x, y);
}

INLINE void input_points(int part, const __m512 d[SIDE], __m512 to[PART_POINTS]) /* B' d */
{
    if (part == 0) {
        const __m512 even = minus_times(2, d[2], d[4]), odd = minus_times(2, d[1], d[3]);

        to[0] = _mm512_add_ps(d[0], minus_times(2.5F, d[2], d[4]));
        to[1] = times(WINOGRAD_NEAR, odd, even);
        to[2] = minus_times(WINOGRAD_NEAR, odd, even);
    } else {
        const __m512 even = minus_times(0.5F, d[2], d[4]), odd = minus_times(0.5F, d[1], d[3]);

        to[0] = times(WINOGRAD_FAR, odd, even);
        to[1] = minus_times(WINOGRAD_FAR, odd, even);
        to[2] = _mm512_add_ps(d[1], minus_times(2.5F, d[3], d[5]));
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
            to[0] = times(WINOGRAD_FAR, v, _mm512_mul_ps(_mm512_set1_ps(WINOGRAD_NEAR), t));
            to[1] = times(2 * WINOGRAD_FAR, v, times(WINOGRAD_NEAR / 2, t, m[5]));
        } else
            to[0] = times(WINOGRAD_FAR, v, times(WINOGRAD_NEAR, t, m[5]));
    }
}

INLINE void gradient_points(int outputs, int part, const __m512 *y, __m512 to[PART_POINTS]) /* A y */
{
    const float square = part == 0 ? 0.5F : 2, root = part == 0 ? WINOGRAD_NEAR : WINOGRAD_FAR;
    const __m512 even = outputs == 2 ? y[0] : times(square, y[2], y[0]);
    const __m512 odd = outputs == 2 ? y[1] : times(square, y[3], y[1]);
    const __m512 plus = times(root, odd, even), minus = minus_times(root, odd, even);

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

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

struct tile {
    size_t image;
    int row, column; /* of its first pixel of y */
};

static struct tile tile_at(const struct winograd_tiles *d, size_t index)
{
    const size_t right = (size_t)d->tiles_right, of_image = (size_t)d->tiles_down * right;

    return (struct tile){ index / of_image, (int)(index % of_image / right) * d->outputs,
                          (int)(index % right) * d->outputs };
}

static void next_tile(const struct winograd_tiles *d, struct tile *t)
{
    if ((t->column += d->outputs) < d->out_width)
        return;
    t->column = 0;
    if ((t->row += d->outputs) < d->out_height)
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

/* Where the rows of the square begin. The barrier keeps the compiler from computing the addresses of all pixels, which
 * are more than there are registers. */
INLINE void find_rows(int side, const struct square *s, const float *plane, const float *rows[SIDE])
{
    UNROLL for (int i = 0; i < side; i++)
    {
        rows[i] = plane + (s->first + i * s->row);
        __asm__("" : "+r"(rows[i]));
    }
}

/* The pixels of column j, zeros outside. */
INLINE void read_column(int side, int inside, const struct square *s, const float *const rows[SIDE], int j,
                        __m512 to[SIDE])
{
    if (inside) {
        UNROLL for (int i = 0; i < side; i++) to[i] = _mm512_load_ps(rows[i] + j * LANES);
        return;
    }
    UNROLL for (int i = 0; i < side; i++) to[i] = _mm512_setzero_ps();
    if (s->columns >> j & 1)
        UNROLL for (int i = 0; i < side; i++) to[i] = _mm512_maskz_load_ps(s->masks[i], rows[i] + j * LANES);
}

/* What tiles become: the left matrix of a product whose rows are tiles, or of one whose rows are channels, in blocks of
 * 16 then; or its right matrix, packed. */
enum side { TILES_LEFT, CHANNELS_LEFT, CHANNELS_RIGHT };

/* Where block b of tile t is among the elements of a point. */
INLINE size_t element_of(enum side side, enum form form, size_t t, size_t b, size_t blocks)
{
    const size_t k = form == WHOLE ? t : t / 2, length = form == WHOLE ? WINOGRAD_TILES : WINOGRAD_TILES / 2;

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
    const float *rows[SIDE];

    find_rows(SIDE, s, plane, rows);
    UNROLL for (int part = 0; part < PARTS; part++)
    {
        __m512 half[PART_POINTS][SIDE];

        UNROLL for (int j = 0; j < SIDE; j++)
        {
            __m512 column[SIDE], points[PART_POINTS];

            read_column(SIDE, inside, s, rows, j, column);
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
    const float *rows[SIDE];

    find_rows(outputs, s, plane, rows);
    UNROLL for (int part = 0; part < PARTS; part++)
    {
        __m512 half[PART_POINTS][4];

        UNROLL for (int j = 0; j < outputs; j++)
        {
            __m512 column[SIDE], points[PART_POINTS];

            read_column(outputs, inside, s, rows, j, column);
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
INLINE void read_tile(enum side side, enum form form, const struct winograd_tiles *d, const struct tile *at, size_t t,
                      const float *x, float *to)
{
    const size_t plane = (size_t)d->height * (size_t)d->width * LANES, blocks = (size_t)d->channels / LANES;
    const struct square s = square_at(SIDE, d->height, d->width, at->row - d->top, at->column - d->left);

    for (size_t b = 0; b < blocks; b++) {
        const float *image = x + (at->image * blocks + b) * plane;
        float *points = to + element_of(side, form, t, b, blocks);

        if (s.inside)
            read_square(form, 1, &s, image, winograd_point_step(d->channels), points);
        else
            read_square(form, 0, &s, image, winograd_point_step(d->channels), points);
    }
}

INLINE void read_gradient(enum form form, int outputs, const struct winograd_tiles *d, const struct tile *at, size_t t,
                          const float *dy, float *to)
{
    const size_t plane = (size_t)d->out_height * (size_t)d->out_width * LANES, blocks = (size_t)d->out_channels / LANES;
    const struct square s = square_at(outputs, d->out_height, d->out_width, at->row, at->column);

    for (size_t b = 0; b < blocks; b++) {
        const float *image = dy + (at->image * blocks + b) * plane;
        float *points = to + element_of(CHANNELS_RIGHT, form, t, b, blocks);

        if (s.inside)
            read_gradient_square(form, outputs, 1, &s, image, winograd_point_step(d->out_channels), points);
        else
            read_gradient_square(form, outputs, 0, &s, image, winograd_point_step(d->out_channels), points);
    }
}

AVX512 void winograd_read_tiles(const struct winograd_tiles *d, size_t first, int count, const float *x, float *to)
{
    struct tile at = tile_at(d, first);

    for (size_t t = 0; t < (size_t)count; t++, next_tile(d, &at))
        if (d->bfloat16)
            read_tile(TILES_LEFT, ROUNDED, d, &at, t, x, to);
        else
            read_tile(TILES_LEFT, WHOLE, d, &at, t, x, to);
}

AVX512 void winograd_read_tiles_to_sum(const struct winograd_tiles *d, size_t first, int count, const float *x,
                                       float *to)
{
    struct tile at = tile_at(d, first);

    for (size_t t = 0; t < (size_t)count; t++, next_tile(d, &at))
        if (!d->bfloat16)
            read_tile(CHANNELS_LEFT, WHOLE, d, &at, t, x, to);
        else if (t % 2 == 0)
            read_tile(CHANNELS_LEFT, PAIR_FIRST, d, &at, t, x, to);
        else
            read_tile(CHANNELS_LEFT, PAIR_SECOND, d, &at, t, x, to);
}

INLINE void read_gradients(int outputs, const struct winograd_tiles *d, size_t first, int count, const float *dy,
                           float *to)
{
    struct tile at = tile_at(d, first);

    for (size_t t = 0; t < (size_t)count; t++, next_tile(d, &at))
        if (!d->bfloat16)
            read_gradient(WHOLE, outputs, d, &at, t, dy, to);
        else if (t % 2 == 0)
            read_gradient(PAIR_FIRST, outputs, d, &at, t, dy, to);
        else
            read_gradient(PAIR_SECOND, outputs, d, &at, t, dy, to);
}

AVX512 void winograd_read_gradients(const struct winograd_tiles *d, size_t first, int count, const float *dy, float *to)
{
    if (d->outputs == 4)
        read_gradients(4, d, first, count, dy, to);
    else
        read_gradients(2, d, first, count, dy, to);
}

enum finishing { LEFT_AS_IT_IS, SCALED, ADDED };

/* A finish of 16 channels, in registers. */
struct channels_finish {
    __m512 scale, offset, slope;
};

INLINE struct channels_finish finish_of_channels(enum finishing how, const struct convolution_finish *f, size_t channel)
{
    struct channels_finish c = { 0 };

    if (how == SCALED) {
        c.scale = _mm512_load_ps(f->scale + channel);
        c.offset = _mm512_load_ps(f->offset + channel);
        c.slope = _mm512_set1_ps(f->slope);
    }
    return c;
}

/* sum: what is added to y. */
INLINE __m512 finished(enum finishing how, const struct channels_finish *f, const float *sum, __m512 y)
{
    if (how == ADDED)
        return _mm512_add_ps(y, _mm512_load_ps(sum));
    if (how == SCALED) {
        const __m512 z = _mm512_fmadd_ps(f->scale, y, f->offset);

        return _mm512_max_ps(_mm512_mul_ps(f->slope, z), z); /* leaky, as slope <= 1; if one is NaN, z */
    }
    return y;
}

/* A' m A of 16 channels from `channel` to the pixels of a tile of y, from `at`, that are in the image. */
INLINE void write_square(int outputs, enum finishing how, int inside, const struct convolution_finish *f,
                         size_t channel, const float *from, size_t step, const struct square *s, float *y, size_t at)
{
    const int each = outputs / PARTS;
    const struct channels_finish finish = finish_of_channels(how, f, channel);
    const float *rows[SIDE], *sum_rows[SIDE];

    find_rows(outputs, s, y + at, rows);
    if (how == ADDED)
        find_rows(outputs, s, f->sum + at, sum_rows);
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

                if (inside || (s->rows >> row & s->columns >> column & 1))
                    _mm512_store_ps(
                        (float *)(uintptr_t)rows[row] + column * LANES,
                        finished(how, &finish, how == ADDED ? sum_rows[row] + column * LANES : NULL, pixels[i]));
            }
        }
    }
}

INLINE void write_tiles(int outputs, enum finishing how, const struct convolution_finish *f,
                        const struct winograd_tiles *d, size_t first, int count, const float *from, float *y)
{
    const size_t plane = (size_t)d->out_height * (size_t)d->out_width * LANES;
    const size_t blocks = (size_t)d->out_channels / LANES, step = winograd_point_step(d->out_channels);
    struct tile t = tile_at(d, first);

    for (int k = 0; k < count; k++, next_tile(d, &t)) {
        const struct square s = square_at(outputs, d->out_height, d->out_width, t.row, t.column);

        for (size_t b = 0; b < blocks; b++, from += LANES)
            if (s.inside)
                write_square(outputs, how, 1, f, b * LANES, from, step, &s, y, (t.image * blocks + b) * plane);
            else
                write_square(outputs, how, 0, f, b * LANES, from, step, &s, y, (t.image * blocks + b) * plane);
    }
}

INLINE void write_finished(int outputs, const struct convolution_finish *f, const struct winograd_tiles *d,
                           size_t first, int count, const float *from, float *y)
{
    if (!f)
        write_tiles(outputs, LEFT_AS_IT_IS, f, d, first, count, from, y);
    else if (f->scale)
        write_tiles(outputs, SCALED, f, d, first, count, from, y);
    else
        write_tiles(outputs, ADDED, f, d, first, count, from, y);
}

AVX512 void winograd_write_tiles(const struct winograd_tiles *d, size_t first, int count, const float *from,
                                 const struct convolution_finish *f, float *y)
{
    if (d->outputs == 4)
        write_finished(4, f, d, first, count, from, y);
    else
        write_finished(2, f, d, first, count, from, y);
}
#endif
