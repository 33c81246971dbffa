/* Convolution by each backend against a plain loop in double: values and both gradients, odd shapes included. */
#include "model/kernels/convolution.h"

#include "base/random.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sample {
    struct convolution_shape s;
    size_t x_size, y_size, w_size;
    double *x, *w, *dy, *y, *dx, *dw; /* NHWC, HWIO */
};

/* TensorFlow's padding; same as the network builder's, worked out apart. */
static int out_count(int n, int k, int stride, int same, int *before)
{
    const int out = same ? (n + stride - 1) / stride : (n - k + stride) / stride, total = (out - 1) * stride + k - n;

    *before = same && total > 0 ? total / 2 : 0;
    return out;
}

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

    memset(p->y, 0, p->y_size * sizeof *p->y);
    memset(p->dx, 0, p->x_size * sizeof *p->dx);
    memset(p->dw, 0, p->w_size * sizeof *p->dw);
    for (int n = 0; n < images; n++)
        for (int i = 0; i < s->out_height; i++)
            for (int j = 0; j < s->out_width; j++)
                for (int r = 0; r < s->kernel; r++)
                    for (int q = 0; q < s->kernel; q++) {
                        const int row = i * s->stride + r - s->before_height;
                        const int column = j * s->stride + q - s->before_width;
                        if (row < 0 || row >= s->height || column < 0 || column >= s->width)
                            continue;
                        for (int c = 0; c < s->channels; c++)
                            for (int o = 0; o < s->out_channels; o++) {
                                const int x = ((n * s->height + row) * s->width + column) * s->channels + c;
                                const int w = ((r * s->kernel + q) * s->channels + c) * s->out_channels + o;
                                const int y = ((n * s->out_height + i) * s->out_width + j) * s->out_channels + o;
                                p->y[y] += p->x[x] * p->w[w];
                                p->dx[x] += p->dy[y] * p->w[w];
                                p->dw[w] += p->x[x] * p->dy[y];
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

static void assert_images(const char *what, const double *want, const real *got, size_t n, int pixels, int channels,
                          int block)
{
    double square = 0;

    for (size_t i = 0; i < n; i++)
        square += want[i] * want[i];
    for (size_t i = 0; i < n; i++) {
        const double g = (double)got[place(i, pixels, channels, block)];
        if (!(fabs(g - want[i]) <= 2e-5 * sqrt(square / (double)n) + 1e-12))
            fail_msg("%s, element %zu: %g instead of %g", what, i, g, want[i]);
    }
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
        assert_images("y", p->y, y, y_size, out_pixels, s.out_channels, s.out_block);
        assert_images("dx", p->dx, dx, x_size, pixels, s.channels, s.block);
        assert_images("dw", p->dw, dw, p->w_size, 1, 1, 1);
    }
    backend->release(c);
    free(x), free(w), free(dy), free(y), free(dx), free(dw);
}

static void each_shape(void **state)
{
    static const struct { int images, height, width, channels, out_channels, kernel, stride, same; } cases[] = {
        { 3, 32, 32, 16, 16, 3, 1, 1 }, { 2, 32, 32, 16, 32, 3, 2, 1 }, { 2, 16, 16, 32, 64, 3, 2, 1 },
        { 5, 8, 8, 64, 64, 3, 1, 1 },   { 3, 9, 7, 16, 16, 3, 2, 1 },   { 2, 9, 7, 32, 16, 5, 1, 1 },
        { 2, 12, 12, 64, 64, 5, 1, 1 }, { 3, 32, 32, 3, 16, 3, 1, 1 },  { 2, 24, 24, 3, 64, 5, 1, 1 },
        { 4, 28, 28, 1, 10, 5, 1, 0 },  { 4, 12, 12, 10, 20, 5, 1, 0 }, { 2, 7, 11, 5, 3, 3, 2, 1 },
        { 2, 7, 11, 5, 3, 3, 2, 0 },    { 2, 5, 5, 2, 33, 5, 3, 1 },    { 3, 6, 6, 17, 48, 1, 1, 1 },
        { 2, 6, 6, 16, 16, 1, 2, 1 },   { 1, 3, 3, 4, 4, 5, 1, 1 },     { 2, 10, 10, 16, 16, 3, 1, 0 },
        { 40, 2, 2, 3, 7, 2, 1, 1 },
    };
    int onednn = 0;

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct sample p = { 0 };
        struct convolution_shape *s = &p.s;

        *s = (struct convolution_shape){ cases[k].images, cases[k].height, cases[k].width, cases[k].channels, 1, 0, 0,
                                         cases[k].out_channels, 0, cases[k].kernel, cases[k].stride, 0, 0, 1 };
        s->out_height = out_count(s->height, s->kernel, s->stride, cases[k].same, &s->before_height);
        s->out_width = out_count(s->width, s->kernel, s->stride, cases[k].same, &s->before_width);
        p.x_size = (size_t)(s->images * s->height * s->width * s->channels);
        p.y_size = (size_t)(s->images * s->out_height * s->out_width * s->out_channels);
        p.w_size = (size_t)(s->kernel * s->kernel * s->channels * s->out_channels);
        p.x = new_doubles(p.x_size, 1);
        p.w = new_doubles(p.w_size, 2);
        p.dy = new_doubles(p.y_size, 3);
        p.y = new_doubles(p.y_size, 0);
        p.dx = new_doubles(p.x_size, 0);
        p.dw = new_doubles(p.w_size, 0);
        for (int images = s->images; images >= 1; images -= images > 1 ? images - 1 : 1) { /* full, and one */
            plain_convolution(&p, images);
            check_backend(&convolution_blas, &p, images);
#if CONVOLUTION_ONEDNN
            if (convolution_onednn.block(s->channels, s->channels <= 4) &&
                convolution_onednn.block(s->out_channels, 0)) {
                check_backend(&convolution_onednn, &p, images);
                onednn++;
            }
#endif
        }
        free(p.x), free(p.w), free(p.dy), free(p.y), free(p.dx), free(p.dw);
    }
    print_message("oneDNN did %d of them\n", onednn);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(each_shape) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
