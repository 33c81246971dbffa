#include "model/kernels/pool.h"

#include "base/vector.h"

#include <float.h>
#include <string.h>

enum { POOL_NOBODY = POOL_MAX_WINDOW };

#ifdef REAL_DOUBLE
static const real lowest = -DBL_MAX;
#else
static const real lowest = -FLT_MAX;
#endif

/* The part of a window inside the plane: rows [first, last) of the window's own. */
static inline int window_first(int start)
{
    return start < 0 ? -start : 0;
}

static inline int window_last(int start, int length, int size)
{
    return start + length > size ? size - start : length;
}

/* winner NULL: nobody asks who it is, and the compiler leaves its part out. */
VECTOR_BODY void max_body(const struct pool_shape *s, size_t width, const real *restrict x, real *restrict y,
                          uint8_t *restrict winner)
{
    const struct window *w = &s->window;
    const size_t block = (size_t)s->block;

    for (int i = 0; i < s->out_height; i++)
        for (int j = 0; j < s->out_width; j++) {
            const int top = i * w->stride_height - w->top, left = j * w->stride_width - w->left;
            const int r0 = window_first(top), r1 = window_last(top, w->height, s->height);
            const int c0 = window_first(left), c1 = window_last(left, w->width, s->width);
            const size_t out = (size_t)(i * s->out_width + j) * block;
            real best[VECTOR_WIDTH_MAX], place[VECTOR_WIDTH_MAX]; /* an index as a real: one kind of vector for both */

            for (size_t k = 0; k < width; k++) {
                best[k] = lowest;
                place[k] = POOL_NOBODY;
            }
            for (int r = r0; r < r1; r++)
                for (int c = c0; c < c1; c++) {
                    const real *in = x + (size_t)((top + r) * s->width + left + c) * block;
                    const real here = (real)(r * w->width + c);
                    for (size_t k = 0; k < width; k++) {
                        place[k] = in[k] > best[k] ? here : place[k];
                        best[k] = in[k] > best[k] ? in[k] : best[k];
                    }
                }
            for (size_t k = 0; k < width; k++)
                y[out + k] = best[k];
            for (size_t k = 0; winner && k < width; k++)
                winner[out + k] = (uint8_t)place[k];
        }
}

VECTOR_CLONES void pool_max_infer(const struct pool_shape *s, const real *x, real *y)
{
    const size_t block = (size_t)s->block;
    size_t c = 0;

    VECTOR_EACH(c, block, width, max_body(s, width, x + c, y + c, NULL));
}

VECTOR_CLONES void pool_max_forward(const struct pool_shape *s, const real *x, real *y, uint8_t *winner)
{
    const size_t block = (size_t)s->block;
    size_t c = 0;

    VECTOR_EACH(c, block, width, max_body(s, width, x + c, y + c, winner + c));
}

/* Every pixel of the window checks whether it won: more comparisons than a jump to the winner, but no jumps. */
VECTOR_BODY void max_backward_body(const struct pool_shape *s, size_t width, const real *restrict dy,
                                   const uint8_t *restrict winner, real *restrict dx)
{
    const struct window *w = &s->window;
    const size_t block = (size_t)s->block;

    for (int i = 0; i < s->out_height; i++)
        for (int j = 0; j < s->out_width; j++) {
            const int top = i * w->stride_height - w->top, left = j * w->stride_width - w->left;
            const int r0 = window_first(top), r1 = window_last(top, w->height, s->height);
            const int c0 = window_first(left), c1 = window_last(left, w->width, s->width);
            const size_t out = (size_t)(i * s->out_width + j) * block;
            real g[VECTOR_WIDTH_MAX];
            int place[VECTOR_WIDTH_MAX];

            for (size_t k = 0; k < width; k++) {
                g[k] = dy[out + k];
                place[k] = winner[out + k];
            }
            for (int r = r0; r < r1; r++)
                for (int c = c0; c < c1; c++) {
                    real *in = dx + (size_t)((top + r) * s->width + left + c) * block;
                    const int here = r * w->width + c;
                    for (size_t k = 0; k < width; k++)
                        in[k] += place[k] == here ? g[k] : 0;
                }
        }
}

VECTOR_CLONES void pool_max_backward(const struct pool_shape *s, const real *dy, const uint8_t *winner, real *dx)
{
    const size_t block = (size_t)s->block;
    size_t c = 0;

    memset(dx, 0, (size_t)s->height * (size_t)s->width * block * sizeof *dx);
    VECTOR_EACH(c, block, width, max_backward_body(s, width, dy + c, winner + c, dx + c));
}

/* Number of pixels of the window of (i, j) inside the plane, and its bounds in the plane. */
static inline int window_pixels(const struct pool_shape *s, int i, int j, int bounds[4])
{
    const struct window *w = &s->window;
    const int top = i * w->stride_height - w->top, left = j * w->stride_width - w->left;

    bounds[0] = top + window_first(top);
    bounds[1] = top + window_last(top, w->height, s->height);
    bounds[2] = left + window_first(left);
    bounds[3] = left + window_last(left, w->width, s->width);
    return (bounds[1] - bounds[0]) * (bounds[3] - bounds[2]);
}

VECTOR_BODY void average_body(const struct pool_shape *s, size_t width, const real *restrict x, real *restrict y)
{
    const size_t block = (size_t)s->block;

    for (int i = 0; i < s->out_height; i++)
        for (int j = 0; j < s->out_width; j++) {
            real *out = y + (size_t)(i * s->out_width + j) * block, sum[VECTOR_WIDTH_MAX] = { 0 };
            int b[4];
            const real share = 1 / (real)window_pixels(s, i, j, b);

            for (int r = b[0]; r < b[1]; r++)
                for (int c = b[2]; c < b[3]; c++)
                    for (size_t k = 0; k < width; k++)
                        sum[k] += x[(size_t)(r * s->width + c) * block + k];
            for (size_t k = 0; k < width; k++)
                out[k] = sum[k] * share;
        }
}

VECTOR_CLONES void pool_average_forward(const struct pool_shape *s, const real *restrict x, real *restrict y)
{
    const size_t block = (size_t)s->block;
    size_t c = 0;

    VECTOR_EACH(c, block, width, average_body(s, width, x + c, y + c));
}

VECTOR_CLONES void pool_average_backward(const struct pool_shape *s, const real *restrict dy, real *restrict dx)
{
    const size_t block = (size_t)s->block;

    memset(dx, 0, (size_t)s->height * (size_t)s->width * block * sizeof *dx);
    for (int i = 0; i < s->out_height; i++)
        for (int j = 0; j < s->out_width; j++) {
            const real *out = dy + (size_t)(i * s->out_width + j) * block;
            int b[4];
            const real share = 1 / (real)window_pixels(s, i, j, b);

            for (int r = b[0]; r < b[1]; r++)
                for (int c = b[2]; c < b[3]; c++)
                    for (size_t k = 0; k < block; k++)
                        dx[(size_t)(r * s->width + c) * block + k] += out[k] * share;
        }
}
