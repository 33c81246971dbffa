/* Convolution by each backend against a plain loop in double: values and both gradients, odd shapes included. */
#include "model/kernels/convolution.h"

#include "base/random.h"
#include "model/kernels/bfloat16.h"
#include "model/kernels/convolution_winograd.h"
#include "model/network.h"
#include "model/network_builder.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sample {
    struct convolution_shape s;
    int beside;       /* 1: all channels side by side, whatever block the backend asks for */
    double tolerance; /* |got - want| / |want| of all elements; 0: each of them as near as float32 is */
    size_t x_size, y_size, w_size;
    double *x, *w, *dy, *y, *dx, *dw; /* NHWC, HWIO */
};

static double *new_doubles(size_t n, uint64_t index)
{
    double *a = malloc(n * sizeof *a);
    struct random r;

    assert_non_null(a);
    random_init(&r, 1, RANDOM_TEST, 0, index);
    for (size_t i = 0; i < n; i++)
        a[i] = (double)(float)random_normal(&r);
    return a;
}

/* The loop of convolution.h's formula; each product goes to y, dx and dw at once. */
static void plain_convolution(struct sample *p, int images)
{
    const struct convolution_shape *s = &p->s;
    const struct window *w = &s->window;

    memset(p->y, 0, p->y_size * sizeof *p->y);
    memset(p->dx, 0, p->x_size * sizeof *p->dx);
    memset(p->dw, 0, p->w_size * sizeof *p->dw);
    for (int n = 0; n < images; n++)
        for (int i = 0; i < s->out_height; i++)
            for (int j = 0; j < s->out_width; j++)
                for (int r = 0; r < w->height; r++)
                    for (int q = 0; q < w->width; q++) {
                        const int row = i * w->stride_height + r - w->top;
                        const int column = j * w->stride_width + q - w->left;
                        if (row < 0 || row >= s->height || column < 0 || column >= s->width)
                            continue;
                        for (int c = 0; c < s->channels; c++)
                            for (int o = 0; o < s->out_channels; o++) {
                                const int x = ((n * s->height + row) * s->width + column) * s->channels + c;
                                const int k = ((r * w->width + q) * s->channels + c) * s->out_channels + o;
                                const int y = ((n * s->out_height + i) * s->out_width + j) * s->out_channels + o;
                                p->y[y] += p->x[x] * p->w[k];
                                p->dx[x] += p->dy[y] * p->w[k];
                                p->dw[k] += p->x[x] * p->dy[y];
                            }
                    }
}

/* Between NHWC doubles and (images, channels / block, pixels, block) reals. */
static size_t place(size_t i, int pixels, int channels, int block)
{
    const size_t c = i % (size_t)channels, p = i / (size_t)channels % (size_t)pixels;
    const size_t n = i / (size_t)channels / (size_t)pixels, b = (size_t)block;

    return ((n * (size_t)(channels / block) + c / b) * (size_t)pixels + p) * b + c % b;
}

static real *new_images(const double *from, size_t n, int pixels, int channels, int block)
{
    void *memory;
    real *a;

    assert_int_equal(posix_memalign(&memory, 64, n * sizeof(real)), 0);
    a = memory;
    for (size_t i = 0; i < n; i++)
        a[place(i, pixels, channels, block)] = from ? (real)from[i] : (real)NAN;
    return a;
}

static void assert_images(const char *what, double tolerance, const double *want, const real *got, size_t n, int pixels,
                          int channels, int block)
{
    double square = 0, off = 0;

    for (size_t i = 0; i < n; i++)
        square += want[i] * want[i];
    for (size_t i = 0; i < n; i++) {
        const double g = (double)got[place(i, pixels, channels, block)], d = fabs(g - want[i]);

        if (tolerance <= 0 && !(d <= 2e-5 * sqrt(square / (double)n) + 1e-12))
            fail_msg("%s, element %zu: %g instead of %g", what, i, g, want[i]);
        off += d * d;
    }
    if (tolerance > 0 && !(sqrt(off) <= tolerance * sqrt(square)))
        fail_msg("%s is off by %g %%", what, 100 * sqrt(off / square));
}

static void check_backend(const struct convolution_backend *backend, struct sample *p, int images)
{
    struct convolution_shape s = p->s;
    const int pixels = s.height * s.width, out_pixels = s.out_height * s.out_width;
    const size_t x_size = p->x_size / (size_t)s.images * (size_t)images;
    const size_t y_size = p->y_size / (size_t)s.images * (size_t)images;
    struct convolution *c;
    struct error e = { 0 };

    s.block = p->s.block ? backend->block(s.channels, s.channels <= 4) : 0;
    s.out_block = backend->block(s.out_channels, 0);
    if (p->beside) {
        s.block = s.channels;
        s.out_block = s.out_channels;
    }
#if CONVOLUTION_ONEDNN
    s.bfloat16 = p->s.bfloat16 || backend == &convolution_bfloat16;
#endif
    if (backend->make(&c, &s, &e) < 0)
        fail_msg("%s", e.message);
    real *x = new_images(p->x, x_size, pixels, s.channels, s.block), *w = new_images(p->w, p->w_size, 1, 1, 1);
    real *dy = new_images(p->dy, y_size, out_pixels, s.out_channels, s.out_block);
    real *y = new_images(NULL, y_size, out_pixels, s.out_channels, s.out_block);
    real *dx = new_images(NULL, x_size, pixels, s.channels, s.block), *dw = new_images(NULL, p->w_size, 1, 1, 1);

    for (int round = 0; round < 2; round++) { /* the second must not see the first's sums */
        backend->prepare(c, w, 1);
        backend->forward(c, images, x, y);
        backend->backward_data(c, images, dy, dx);
        backend->backward_weights(c, images, x, dy);
        backend->weights_gradient(c, dw);
        assert_images("y", p->tolerance, p->y, y, y_size, out_pixels, s.out_channels, s.out_block);
        assert_images("dx", p->tolerance, p->dx, dx, x_size, pixels, s.channels, s.block);
        assert_images("dw", p->tolerance, p->dw, dw, p->w_size, 1, 1, 1);
    }
    backend->release(c);
    free(x), free(w), free(dy), free(y), free(dx), free(dw);
}

#if CONVOLUTION_WINOGRAD
/* Returns 0 if it does not compute such convolutions, or not on this processor. */
static int check_winograd(struct sample *p, int images)
{
    struct convolution_shape s = p->s;

    s.block = convolution_winograd.block(s.channels, s.channels <= 4);
    s.out_block = convolution_winograd.block(s.out_channels, 0);
    if (!convolution_winograd_can(&s))
        return 0;
    check_backend(&convolution_winograd, p, images);
    return 1;
}
#endif

#if CONVOLUTION_ONEDNN || CONVOLUTION_AVX512
static void round_all(double *a, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)bfloat16_of((real)a[i]) << 16;
        float rounded;

        memcpy(&rounded, &bits, sizeof rounded);
        a[i] = (double)rounded;
    }
}

/* Products of bfloat16 are exact in float32, so once the operands are rounded the tolerance is float32's. Returns 0 if
 * this processor, or the backend, cannot do it. */
static int check_rounded(const struct convolution_backend *backend, struct sample *p, int images)
{
    const struct convolution_shape *s = &p->s;

    if (!backend->block(s->channels, s->channels <= 4) || !backend->block(s->out_channels, 0))
        return 0;
    round_all(p->x, p->x_size);
    round_all(p->w, p->w_size);
    round_all(p->dy, p->y_size);
    plain_convolution(p, images);
    check_backend(backend, p, images);
    return 1;
}
#endif

#if CONVOLUTION_AVX512
/* Images all in one call, and each in its own: the same bits. */
static void check_calls(const struct convolution_backend *backend, const struct convolution_shape *s)
{
    const size_t images = (size_t)s->images, pixels = (size_t)(s->height * s->width);
    const size_t in = pixels * (size_t)s->channels, out = pixels * (size_t)s->out_channels;
    const size_t kernel = (size_t)(s->window.height * s->window.width * s->channels * s->out_channels);
    double *values = new_doubles(images * (in + out) + kernel, 1);
    real *x = new_images(values, images * in, 1, 1, 1), *dy = new_images(values + images * in, images * out, 1, 1, 1);
    real *w = new_images(values + images * (in + out), kernel, 1, 1, 1);
    real *y[2], *dx[2], *dw[2];

    for (int apart = 0; apart < 2; apart++) {
        struct convolution *c;

        y[apart] = new_images(NULL, images * out, 1, 1, 1);
        dx[apart] = new_images(NULL, images * in, 1, 1, 1);
        dw[apart] = new_images(NULL, kernel, 1, 1, 1);
        assert_int_equal(backend->make(&c, s, NULL), OK);
        backend->prepare(c, w, 1);
        for (size_t n = 0, count = apart ? 1 : images; n < images; n += count) {
            backend->forward(c, (int)count, x + n * in, y[apart] + n * out);
            backend->backward_weights(c, (int)count, x + n * in, dy + n * out);
            backend->backward_data(c, (int)count, dy + n * out, dx[apart] + n * in);
        }
        backend->weights_gradient(c, dw[apart]);
        backend->release(c);
    }
    assert_memory_equal(y[0], y[1], images * out * sizeof(real));
    assert_memory_equal(dx[0], dx[1], images * in * sizeof(real));
    assert_memory_equal(dw[0], dw[1], kernel * sizeof(real));
    for (int i = 0; i < 2; i++)
        free(y[i]), free(dx[i]), free(dw[i]);
    free(values), free(x), free(dy), free(w);
}

static void any_calls(void **state)
{
    const struct window small = { 3, 3, 1, 1, 1, 1, 1, 1, PADDING_EXPLICIT };
    const struct convolution_shape rounded = { 3, 9, 9, 16, 16, 9, 9, 20, 20, small, 1, 1, 0 };

    (void)state;
    if (bfloat16_units() == BFLOAT16_AVX512)
        check_calls(&convolution_avx512, &rounded);
#if CONVOLUTION_WINOGRAD
    const struct window large = { 5, 5, 1, 1, 2, 2, 2, 2, PADDING_EXPLICIT };
    const struct convolution_shape blocked[] = {
        { 3, 18, 13, 16, 16, 18, 13, 48, 16, small, 1, 0, 0 },
        { 5, 8, 8, 32, 16, 8, 8, 16, 16, large, 1, 0, 0 },
    };

    assert_int_equal(convolution_onednn.load(NULL), OK);
    for (size_t i = 0; i < 2 && convolution_winograd.block(16, 0); i++) {
        struct convolution_shape also = blocked[i];

        check_calls(&convolution_winograd, &blocked[i]);
        also.bfloat16 = 1;
        if (convolution_winograd_can(&also))
            check_calls(&convolution_winograd, &also);
    }
#endif
}
#endif

static struct window rectangle(int height, int width, int down, int right, int top, int bottom, int before, int after)
{
    return (struct window){ height, width, down, right, top, bottom, before, after, PADDING_EXPLICIT };
}

static struct window same_rectangle(int height, int width, int down, int right)
{
    return (struct window){
        .height = height, .width = width, .stride_height = down, .stride_width = right, .padding = PADDING_SAME
    };
}

static void each_shape(void **state)
{
    const struct {
        int images, height, width, channels, out_channels;
        struct window window;
    } cases[] = {
        { 3, 32, 32, 16, 16, window_same(3, 1) },
        { 2, 32, 32, 16, 32, window_same(3, 2) },
        { 2, 16, 16, 32, 64, window_same(3, 2) },
        { 5, 8, 8, 64, 64, window_same(3, 1) },
        { 3, 9, 7, 16, 16, window_same(3, 2) },
        { 2, 9, 7, 32, 16, window_same(5, 1) },
        { 2, 12, 12, 64, 64, window_same(5, 1) },
        { 3, 32, 32, 3, 16, window_same(3, 1) },
        { 2, 24, 24, 3, 64, window_same(5, 1) },
        { 4, 28, 28, 1, 10, window_valid(5, 1) },
        { 4, 12, 12, 10, 20, window_valid(5, 1) },
        { 2, 7, 11, 5, 3, window_same(3, 2) },
        { 2, 7, 11, 5, 3, window_valid(3, 2) },
        { 2, 5, 5, 2, 33, window_same(5, 3) },
        { 3, 6, 6, 17, 48, window_same(1, 1) },
        { 2, 6, 6, 16, 16, window_same(1, 2) },
        { 1, 3, 3, 4, 4, window_same(5, 1) },
        { 2, 10, 10, 16, 16, window_valid(3, 1) },
        { 3, 11, 14, 48, 16, rectangle(3, 3, 1, 1, 0, 2, 2, 1) },
        { 2, 14, 13, 16, 48, rectangle(5, 5, 1, 1, 4, 0, 1, 3) },
        { 40, 2, 2, 3, 7, window_same(2, 1) },
        { 2, 11, 8, 16, 16, window_valid(3, 2) },
        /* Of 5 channels for OpenBLAS, of 3 as the network's input, of 16 and 32 in blocks. */
        { 3, 9, 11, 5, 6, same_rectangle(1, 7, 1, 1) },
        { 3, 9, 11, 16, 32, same_rectangle(1, 7, 1, 1) },
        { 3, 9, 11, 5, 6, same_rectangle(7, 1, 1, 1) },
        { 3, 9, 11, 32, 16, same_rectangle(7, 1, 1, 1) },
        { 3, 9, 11, 3, 16, same_rectangle(7, 1, 1, 2) },
        { 2, 10, 8, 3, 16, same_rectangle(3, 5, 2, 1) },
        { 2, 10, 8, 5, 6, same_rectangle(3, 5, 2, 1) },
        { 2, 10, 8, 16, 16, same_rectangle(3, 5, 2, 1) },
        { 2, 10, 8, 5, 6, rectangle(3, 5, 2, 1, 0, 0, 0, 0) },
        { 2, 10, 8, 16, 16, rectangle(3, 5, 2, 1, 0, 0, 0, 0) },
        { 2, 10, 8, 5, 6, rectangle(3, 5, 2, 1, 2, 1, 3, 0) },
        { 2, 10, 8, 16, 32, rectangle(3, 5, 2, 1, 2, 1, 3, 0) },
        { 2, 8, 10, 5, 6, rectangle(3, 3, 1, 2, 0, 2, 0, 1) },
        { 2, 8, 10, 16, 16, rectangle(3, 3, 1, 2, 0, 2, 0, 1) },
        { 2, 8, 10, 3, 16, rectangle(4, 2, 3, 2, 3, 0, 1, 1) },
        { 2, 2, 3, 16, 16, rectangle(3, 5, 1, 1, 2, 2, 4, 4) },
    };
    int onednn = 0, winograd = 0, rounded = 0, pairs = 0, rounded_winograd = 0;

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct sample p = { 0 };
        struct convolution_shape *s = &p.s;

        *s = (struct convolution_shape){ cases[k].images,
                                         cases[k].height,
                                         cases[k].width,
                                         cases[k].channels,
                                         1,
                                         0,
                                         0,
                                         cases[k].out_channels,
                                         0,
                                         cases[k].window,
                                         1,
                                         0,
                                         0 };
        assert_true(window_fit(&s->window, s->height, s->width));
        s->out_height = window_rows(&s->window, s->height);
        s->out_width = window_columns(&s->window, s->width);
        p.x_size = (size_t)(s->images * s->height * s->width * s->channels);
        p.y_size = (size_t)(s->images * s->out_height * s->out_width * s->out_channels);
        p.w_size = (size_t)(s->window.height * s->window.width * s->channels * s->out_channels);
        p.x = new_doubles(p.x_size, 1);
        p.w = new_doubles(p.w_size, 2);
        p.dy = new_doubles(p.y_size, 3);
        p.y = new_doubles(p.y_size, 0);
        p.dx = new_doubles(p.x_size, 0);
        p.dw = new_doubles(p.w_size, 0);
        assert_int_equal(convolution_blas.load(NULL), OK);
        for (int images = s->images; images >= 1; images -= images > 1 ? images - 1 : 1) { /* full, and one */
            plain_convolution(&p, images);
            check_backend(&convolution_blas, &p, images);
#if CONVOLUTION_ONEDNN
            assert_int_equal(convolution_onednn.load(NULL), OK);
            if (convolution_onednn.block(s->channels, s->channels <= 4) &&
                convolution_onednn.block(s->out_channels, 0)) {
                check_backend(&convolution_onednn, &p, images);
                onednn++;
            }
#if CONVOLUTION_WINOGRAD
            winograd += check_winograd(&p, images);
#endif
            rounded += check_rounded(&convolution_bfloat16, &p, images); /* from here on the sample is rounded */
#endif
#if CONVOLUTION_AVX512
            pairs += check_rounded(&convolution_avx512, &p, images);
            p.beside = 1; /* it reads and writes both layouts */
            pairs += check_rounded(&convolution_avx512, &p, images);
            p.beside = 0;
#if CONVOLUTION_WINOGRAD
            s->bfloat16 = 1; /* it rounds in between, too */
            p.tolerance = 0.02;
            rounded_winograd += check_winograd(&p, images);
            s->bfloat16 = 0;
            p.tolerance = 0;
#endif
#endif
        }
        free(p.x), free(p.w), free(p.dy), free(p.y), free(p.dx), free(p.dw);
    }
    print_message("oneDNN did %d of them, and %d in bfloat16, AVX512-BF16 %d, Winograd %d, and %d in bfloat16\n",
                  onednn, rounded, pairs, winograd, rounded_winograd);
}

/* Which convolutions are computed by Winograd's algorithm: a rule of their shapes alone. */
static void winograd_pays(void **state)
{
    (void)state;
#if CONVOLUTION_WINOGRAD
    static const struct {
        int side, channels, out_channels, window, stride, pays;
    } cases[] = {
        { 32, 16, 16, 3, 1, 1 },  { 8, 64, 64, 3, 1, 1 },  { 12, 64, 64, 5, 1, 1 }, { 14, 256, 256, 3, 1, 1 },
        { 7, 512, 512, 3, 1, 0 }, { 32, 16, 32, 3, 2, 0 }, { 5, 64, 64, 5, 1, 0 },  { 2, 64, 64, 3, 1, 0 },
        { 32, 16, 16, 1, 1, 0 },  { 16, 16, 16, 7, 1, 0 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct convolution_shape s = { .height = cases[i].side,
                                       .width = cases[i].side,
                                       .channels = cases[i].channels,
                                       .block = 16,
                                       .out_channels = cases[i].out_channels,
                                       .out_block = 16,
                                       .window = window_same(cases[i].window, cases[i].stride) };

        assert_true(window_fit(&s.window, s.height, s.width));
        s.out_height = window_rows(&s.window, s.height);
        s.out_width = window_columns(&s.window, s.width);
        assert_int_equal(convolution_winograd_pays(&s), cases[i].pays);
        s.bfloat16 = 1;
        assert_int_equal(convolution_winograd_pays(&s), cases[i].pays && bfloat16_units() == BFLOAT16_AVX512);
    }
    if (bfloat16_units() == BFLOAT16_AVX512) { /* in training pairs of tiles are never of two images */
        struct convolution_shape odd = { 1, 12, 12, 64, 16, 12, 12, 64, 16, window_same(3, 1), 1, 1, 1 };

        assert_true(window_fit(&odd.window, 12, 12));
        assert_int_equal(convolution_winograd_pays(&odd), 1);
        odd.forward_only = 0;
        assert_int_equal(convolution_winograd_pays(&odd), 0);
    }
#endif
}

/* Windows by counting, and TensorFlow's rule worked out apart; each axis with its own numbers. */
static void windows(void **state)
{
    (void)state;
    for (int n = 1; n < 12; n++)
        for (int size = 1; size < 8; size++)
            for (int stride = 1; stride < 5; stride++) {
                struct window tall = same_rectangle(size, 1, stride, 1), wide = same_rectangle(1, size, 1, stride);
                const int out = (n + stride - 1) / stride, missing = (out - 1) * stride + size - n;
                const int total = missing > 0 ? missing : 0;

                assert_true(window_fit(&tall, n, 13) && window_fit(&wide, 14, n));
                assert_true(tall.padding == PADDING_EXPLICIT && wide.padding == PADDING_EXPLICIT);
                assert_true(tall.top == total / 2 && tall.top + tall.bottom == total && !tall.left && !tall.right);
                assert_true(wide.left == total / 2 && wide.left + wide.right == total && !wide.top && !wide.bottom);
                assert_true(window_rows(&tall, n) == out && window_columns(&tall, 13) == 13);
                assert_true(window_columns(&wide, n) == out && window_rows(&wide, 14) == 14);
                for (int before = 0; before < size; before++)
                    for (int after = 0; after < size; after++) {
                        struct window high = rectangle(size, 1, stride, 1, before, after, 0, 0);
                        struct window broad = rectangle(1, size, 1, stride, 0, 0, before, after);
                        int count = 0;

                        for (int first = -before; first + size <= n + after; first += stride)
                            count++;
                        assert_true(window_fit(&high, n, 1) && window_rows(&high, n) == count);
                        assert_true(window_fit(&broad, 1, n) && window_columns(&broad, n) == count);
                        assert_true(high.top == before && high.bottom == after);
                        assert_true(broad.left == before && broad.right == after);
                    }
            }
}

static void no_windows(void **state)
{
    const struct window wrong[] = {
        rectangle(0, 3, 1, 1, 0, 0, 0, 0),
        rectangle(3, 0, 1, 1, 0, 0, 0, 0),
        rectangle(3, 3, 0, 1, 0, 0, 0, 0),
        rectangle(3, 3, 1, 0, 0, 0, 0, 0),
        rectangle(3, 5, 1, 1, 3, 0, 0, 0),
        rectangle(3, 5, 1, 1, 0, 3, 0, 0),
        rectangle(5, 3, 1, 1, 0, 0, 3, 0),
        rectangle(5, 3, 1, 1, 0, 0, 0, 3),
        rectangle(3, 3, 1, 1, -1, 0, 0, 0),
        rectangle(3, 3, 1, 1, 0, -1, 0, 0),
        rectangle(3, 3, 1, 1, 0, 0, -1, 0),
        rectangle(3, 3, 1, 1, 0, 0, 0, -1),
        window_same(0, 1),
        window_same(1, 0),
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct window w = wrong[i];
        if (window_fit(&w, 6, 6))
            fail_msg("window %zu fits", i);
    }
}

static const struct kernel_options plain = { INITIAL_NORMAL, 0.1, 0 };

static int too_much_padding(struct network_builder *b, struct error *e)
{
    (void)e;
    network_builder_average_pool(b, network_builder_images(b), rectangle(3, 5, 1, 1, 3, 0, 0, 0));
    return OK;
}

static int too_small(struct network_builder *b, struct error *e)
{
    (void)e;
    network_builder_convolution(b, network_builder_images(b), "w", 4, rectangle(1, 9, 1, 1, 0, 0, 1, 1), &plain);
    return OK;
}

static int too_large(struct network_builder *b, struct error *e)
{
    (void)e;
    network_builder_max_pool(b, network_builder_images(b), same_rectangle(2, 128, 1, 1));
    return OK;
}

static int large_enough(struct network_builder *b, struct error *e)
{
    int x = network_builder_max_pool(b, network_builder_images(b), same_rectangle(5, 51, 1, 1));

    (void)e;
    x = network_builder_average_pool(b, x, same_rectangle(2, 128, 1, 1));
    x = network_builder_convolution(b, x, "w", 4, rectangle(3, 5, 2, 1, 1, 0, 4, 0), &plain);
    network_builder_cross_entropy(b, network_builder_dense(b, x, "d", 3, &plain));
    return OK;
}

/* What a model may ask for, and the shape of a kernel's variable. */
static void builder(void **state)
{
    static const struct {
        int (*build)(struct network_builder *b, struct error *e);
        const char *says;
    } cases[] = {
        { too_much_padding, "less padding" },
        { too_small, "no pixels" },
        { too_large, "too large" },
        { large_enough, NULL },
    };
    static const int64_t want[4] = { 3, 5, 2, 4 };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct model m = {
            .name = "windows", .height = 6, .width = 6, .channels = 2, .classes = 3, .build = cases[i].build
        };
        struct network *n = NULL;
        struct error e = { 0 };
        size_t count;

        assert_int_equal(network_new(&n, &m, 1, &e), cases[i].says ? ERR_ARG : OK);
        if (cases[i].says && !strstr(e.message, cases[i].says))
            fail_msg("case %zu says: %s", i, e.message);
        if (n)
            assert_memory_equal(network_variables(n, &count)[0].shape, want, sizeof want);
        network_free(n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows),
        cmocka_unit_test(no_windows),
        cmocka_unit_test(each_shape),
#if CONVOLUTION_AVX512
        cmocka_unit_test(any_calls),
#endif
        cmocka_unit_test(winograd_pays),
        cmocka_unit_test(builder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
