/* The kernels against plain loops in double, on planes whose channels are and are not whole vectors. */
#include "base/random.h"
#include "model/kernels/activation.h"
#include "model/kernels/batch_norm.h"
#include "model/kernels/blas.h"
#include "model/kernels/channels.h"
#include "model/kernels/lrn.h"
#include "model/kernels/lstm_cell.h"
#include "model/kernels/pool.h"
#include "model/task.h"
#include "tests/check.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 4096 };
static const size_t blocks[] = { 1, 3, 8, 10, 16, 20, 33, 64 };

static void fill(real *x, size_t n, uint64_t index)
{
    struct random r;

    random_init(&r, 2, RANDOM_TEST, 0, index);
    for (size_t i = 0; i < n; i++)
        x[i] = (real)random_normal(&r);
}

static void assert_near(double got, double want, double scale)
{
    if (!(fabs(got - want) <= 3e-6 * (fabs(want) + scale)))
        fail_msg("%.9g instead of %.9g", got, want);
}

static void batch_norm(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) {
        const size_t block = blocks[k], pixels = 37, n = block * pixels;
        real x[ROOM], z[ROOM], g[ROOM], dz[ROOM], dx[ROOM], c[6][64];
        double sum[64] = { 0 }, square[64] = { 0 }, dsum[64] = { 0 }, product[64] = { 0 };

        fill(x, n, 1), fill(dz, n, 2), fill(dx, n, 3);
        for (int i = 0; i < 6; i++)
            fill(c[i], block, 10 + (uint64_t)i);
        x[0] = 0, c[1][0] = 0; /* y exactly 0: the gradient there is 1 */
        memcpy(g, dz, sizeof g);
        batch_norm_sums(pixels, block, x, c[0], sum, square);
        batch_norm_apply(pixels, block, x, c[2], c[1], (real)0.1, z);
        batch_norm_reduce(pixels, block, x, c[2], c[1], (real)0.1, c[3], g, dsum, product);
        for (size_t q = 0; q < block; q++) {
            double s = 0, s2 = 0, t = 0, u = 0;
            for (size_t i = q; i < n; i += block) {
                const double d = (double)x[i] - (double)c[0][q];
                const double y = (double)c[2][q] * (double)x[i] + (double)c[1][q];
                const double dy = y < 0 ? 0.1 * (double)dz[i] : (double)dz[i];
                s += d, s2 += d * d, t += dy, u += dy * ((double)x[i] - (double)c[3][q]);
                assert_near((double)z[i], y < 0 ? 0.1 * y : y, 1);
                assert_near((double)g[i], dy, 0);
            }
            assert_near(sum[q], s, 10), assert_near(square[q], s2, 10);
            assert_near(dsum[q], t, 10), assert_near(product[q], u, 10);
        }
        for (int add = 0; add < 2; add++) {
            real out[ROOM];
            memcpy(out, dx, sizeof out);
            batch_norm_backward(pixels, block, x, g, c[2], c[4], c[5], add, out);
            for (size_t i = 0; i < n; i++) {
                const size_t q = i % block;
                assert_near((double)out[i],
                            (double)c[2][q] * (double)g[i] + (double)c[4][q] * (double)x[i] + (double)c[5][q] +
                                (add ? (double)dx[i] : 0),
                            4);
            }
        }
    }
}

/* Slope 0 is a ReLU, which stops the gradient of 0, too. */
static void batch_norm_relu(void **state)
{
    const real x[4] = { -2, 0, 3, (real)NAN }, one = 1, zero = 0;
    real z[4], g[4] = { 5, 6, 7, 8 };
    double sum = 0, product = 0;

    (void)state;
    batch_norm_apply(4, 1, x, &one, &zero, 0, z);
    batch_norm_reduce(3, 1, x, &one, &zero, 0, &zero, g, &sum, &product);
    assert_true(z[0] == 0 && z[1] == 0 && z[2] == 3 && isnan(z[3]));
    assert_true(g[0] == 0 && g[1] == 0 && g[2] == 7 && sum == 7 && product == 21);
}

static void activation(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++)
        for (int relu = 0; relu < 2; relu++) {
            const size_t block = blocks[k], pixels = 29, n = block * pixels;
            real x[ROOM] = { 0 }, y[ROOM], g[ROOM], dy[ROOM] = { 0 }, bias[64];
            double sum[64] = { 0 }, want[64] = { 0 };

            fill(x, n, 1), fill(dy, n, 2), fill(bias, block, 3);
            bias[0] = 0, x[0] = 0; /* at 0 the gradient of ReLU is 0 */
            memcpy(y, x, sizeof y), memcpy(g, dy, sizeof g);
            activation_bias_forward(pixels, block, bias, relu, y);
            activation_bias_backward(pixels, block, relu, y, g, sum);
            for (size_t i = 0; i < n; i++) {
                const double v = (double)x[i] + (double)bias[i % block];
                assert_near((double)y[i], relu && v < 0 ? 0 : v, 1);
                assert_near((double)g[i], !relu || v > 0 ? (double)dy[i] : 0, 0);
                want[i % block] += (double)g[i];
            }
            for (size_t q = 0; q < block; q++)
                assert_near(sum[q], want[q], 10);
            y[0] = (real)NAN;
            activation_bias_forward(pixels, block, bias, relu, y);
            assert_true(isnan(y[0]));
        }
}

static void leaky(void **state)
{
    static const real x[] = { -2, (real)-0.0, 0, 3 };
    real z[4], one[4] = { 1, 1, 1, 1 }, slope[4] = { 1, 1, 1, 1 };

    (void)state;
    activation_leaky_forward(4, x, (real)0.1, z);
    activation_leaky_backward(4, z, (real)0.1, LEAKY_ONE_AT_ZERO, one);
    activation_leaky_backward(4, z, (real)0.1, LEAKY_SLOPE_AT_ZERO, slope);
    assert_near((double)z[0], -0.2, 0);
    assert_true(z[3] == 3 && one[0] == (real)0.1 && one[1] == 1 && one[2] == 1 && one[3] == 1);
    assert_true(slope[0] == (real)0.1 && slope[1] == (real)0.1 && slope[2] == (real)0.1 && slope[3] == 1);
}

/* One plane: the definition, window by window. */
static void check_pool(const struct pool_shape *s)
{
    const size_t block = (size_t)s->block, in = (size_t)(s->height * s->width);
    const size_t out = (size_t)(s->out_height * s->out_width);
    const struct window *w = &s->window;
    real x[ROOM], y[ROOM], alone[ROOM], mean[ROOM], dy[ROOM], dx[ROOM], dmean[ROOM];
    uint8_t winner[ROOM];
    double want[ROOM] = { 0 }, want_mean[ROOM] = { 0 };

    assert_true(in * block <= ROOM);
    fill(x, in * block, 1), fill(dy, out * block, 2);
    for (size_t i = 0; i < in * block; i++)
        x[i] = (real)floor(2 * (double)x[i]); /* many equals: the first of them wins */
    x[in * block / 2] = (real)NAN;
    pool_max_forward(s, x, y, winner);
    pool_max_infer(s, x, alone);
    assert_memory_equal(alone, y, out * block * sizeof *y);
    pool_max_backward(s, dy, winner, dx);
    x[in * block / 2] = 1;
    pool_average_forward(s, x, mean);
    pool_average_backward(s, dy, dmean);
    x[in * block / 2] = (real)NAN;
    for (int i = 0; i < s->out_height; i++)
        for (int j = 0; j < s->out_width; j++)
            for (size_t k = 0; k < block; k++) {
                const size_t o = (size_t)(i * s->out_width + j) * block + k;
                double best = -FLT_MAX, sum = 0;
                int place = -1, count = 0;
                for (int p = 0; p < s->height * s->width; p++) { /* row-major over the whole plane */
                    const int r = p / s->width - i * w->stride_height + w->top;
                    const int c = p % s->width - j * w->stride_width + w->left;
                    const double v = (double)x[(size_t)p * block + k];
                    if (r < 0 || r >= w->height || c < 0 || c >= w->width)
                        continue;
                    count++;
                    sum += isnan(v) ? 1 : v;
                    if (v > best)
                        best = v, place = p;
                }
                assert_near((double)y[o], best, 0);
                assert_near((double)mean[o], sum / count, 1);
                if (place >= 0)
                    want[(size_t)place * block + k] += (double)dy[o];
                for (int p = 0; p < s->height * s->width; p++) {
                    const int r = p / s->width - i * w->stride_height + w->top;
                    const int c = p % s->width - j * w->stride_width + w->left;
                    if (r >= 0 && r < w->height && c >= 0 && c < w->width)
                        want_mean[(size_t)p * block + k] += (double)dy[o] / count;
                }
            }
    for (size_t i = 0; i < in * block; i++) {
        assert_near((double)dx[i], want[i], 1);
        assert_near((double)dmean[i], want_mean[i], 1);
    }
}

#define SQUARE(size, stride, before) \
    { \
        size, size, stride, stride, before, before, before, before, PADDING_EXPLICIT \
    }

static void pool(void **state)
{
    static const struct pool_shape shapes[] = {
        { 8, 8, 16, 4, 4, SQUARE(3, 2, 0) },
        { 9, 7, 10, 5, 4, SQUARE(3, 2, 1) },
        { 6, 6, 20, 3, 3, SQUARE(2, 2, 0) },
        { 5, 5, 3, 2, 2, SQUARE(2, 2, 0) },
        { 8, 8, 1, 1, 1, SQUARE(8, 8, 0) },
        { 6, 6, 16, 6, 6, SQUARE(3, 1, 1) },
        { 4, 9, 8, 4, 9, SQUARE(5, 1, 2) },
        { 5, 9, 16, 5, 9, { 1, 7, 1, 1, 0, 0, 3, 3, PADDING_EXPLICIT } },
        { 9, 5, 10, 9, 5, { 7, 1, 1, 1, 3, 3, 0, 0, PADDING_EXPLICIT } },
        { 8, 9, 20, 4, 8, { 3, 5, 2, 1, 1, 0, 3, 0, PADDING_EXPLICIT } },
        { 7, 6, 3, 7, 4, { 5, 2, 1, 2, 0, 4, 1, 1, PADDING_EXPLICIT } },
        { 15, 17, 1, 1, 1, { 15, 17, 1, 1, 0, 0, 0, 0, PADDING_EXPLICIT } }, /* 255 pixels, the most */
    };
    const struct pool_shape one = { 2, 2, 1, 1, 1, SQUARE(2, 2, 0) };
    const real nothing[] = { (real)NAN, (real)-INFINITY, (real)NAN, (real)-INFINITY }, dy = 1;
    real y, dx[4];
    uint8_t winner;

    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_pool(&shapes[i]);
    pool_max_forward(&one, nothing, &y, &winner);
    assert_true(y == -FLT_MAX);
    pool_max_backward(&one, &dy, &winner, dx);
    assert_true(dx[0] == 0 && dx[1] == 0 && dx[2] == 0 && dx[3] == 0);
}

static void lrn(void **state)
{
    static const struct {
        size_t channels, block;
        int radius;
        double beta;
    } cases[] = {
        { 64, 16, 4, 0.75 }, { 64, 64, 4, 0.75 }, { 20, 20, 2, 0.5 }, { 5, 5, 7, 0.75 }, { 32, 8, 0, 1.3 },
    };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const size_t pixels = 6, c = cases[k].channels, block = cases[k].block;
        const struct lrn_shape s = { pixels,          c, block,     pixels * block,
                                     cases[k].radius, 1, (real)0.1, (real)cases[k].beta };
        real x[ROOM], y[ROOM], dy[ROOM], dx[ROOM];

        fill(x, pixels * c, 1), fill(dy, pixels * c, 2);
        lrn_forward(&s, x, y);
        lrn_backward(&s, x, dy, dx);
        for (size_t p = 0; p < pixels; p++) {
            double n[64], v[64], g[64];
            for (size_t q = 0; q < c; q++) {
                v[q] = (double)x[q / block * s.step + p * block + q % block];
                g[q] = (double)dy[q / block * s.step + p * block + q % block];
            }
            for (size_t q = 0; q < c; q++) {
                n[q] = 1;
                for (size_t d = 0; d < c; d++)
                    if (abs((int)d - (int)q) <= cases[k].radius)
                        n[q] += (double)s.alpha * v[d] * v[d];
            }
            for (size_t q = 0; q < c; q++) {
                const size_t at = q / block * s.step + p * block + q % block;
                double want = g[q] * pow(n[q], -cases[k].beta);
                for (size_t d = 0; d < c; d++)
                    if (abs((int)d - (int)q) <= cases[k].radius)
                        want -= 2 * (double)s.alpha * cases[k].beta * v[q] * g[d] * v[d] *
                                pow(n[d], -cases[k].beta - 1);
                assert_near((double)y[at], v[q] * pow(n[q], -cases[k].beta), 1);
                assert_near((double)dx[at], want, 1);
            }
        }
    }
}

/* Between all layouts, all or some of the channels, to another place or the same; the others stay as they are. */
static void channels(void **state)
{
    enum { PIXELS = 3, FROM = 48, TO = 96, FROM_BLOCKS = 4, TO_BLOCKS = 5, LAYOUTS = FROM_BLOCKS * TO_BLOCKS };
    static const size_t from_blocks[FROM_BLOCKS] = { 1, 8, 16, 48 }, to_blocks[TO_BLOCKS] = { 1, 8, 16, 32, 96 };
    static const struct {
        size_t count, from, to;
    } parts[] = {
        { 48, 0, 0 }, { 48, 0, 24 }, { 16, 16, 48 }, { 17, 5, 30 }, { 1, 47, 95 }, { 0, 3, 4 },
    };

    (void)state;
    for (size_t k = 0; k < sizeof parts / sizeof *parts * LAYOUTS; k++) {
        const size_t a = from_blocks[k % FROM_BLOCKS], b = to_blocks[k / FROM_BLOCKS % TO_BLOCKS];
        const size_t count = parts[k / LAYOUTS].count, first = parts[k / LAYOUTS].from;
        const size_t to_first = parts[k / LAYOUTS].to;
        real from[PIXELS * FROM], to[PIXELS * TO];

        for (size_t i = 0; i < PIXELS * FROM; i++)
            from[i] = (real)i;
        for (size_t i = 0; i < PIXELS * TO; i++)
            to[i] = -1;
        channels_copy(PIXELS, count, from, a, first, to, b, to_first);
        for (size_t p = 0; p < PIXELS; p++)
            for (size_t c = 0; c < TO; c++) {
                const size_t f = first + c - to_first;
                assert_true(to[c / b * b * PIXELS + p * b + c % b] ==
                            (c < to_first || c >= to_first + count ? -1 : (real)(f / a * a * PIXELS + p * a + f % a)));
            }
    }
}

static void task(void **state)
{
    static const struct {
        real z[3];
        int label, argmax, ties;
    } cases[] = {
        { { 1, 2, 3 }, 2, 1, 1 },
        { { 1, 2, 3 }, 1, 0, 0 },
        { { 3, 1, 3 }, 0, 1, 1 },
        { { 3, 1, 3 }, 2, 0, 1 }, /* argmax takes the lowest of equals, in_top_k every one */
        { { 1, 2, (real)NAN }, 1, 1, 0 },
        { { 1, 2, (real)INFINITY }, 2, 1, 0 },
    };
    const real big[] = { 1000, 1001, -1000 };
    double softmax[3];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(task_correct(3, cases[i].z, cases[i].label, 0), cases[i].argmax);
        assert_int_equal(task_correct(3, cases[i].z, cases[i].label, 1), cases[i].ties);
    }
    assert_near(task_cross_entropy(3, big, 0, softmax), 1 + log1p(exp(-1)), 0);
    assert_near(softmax[0], 1 / (1 + exp(1)), 0);
    assert_near(softmax[1], 1 / (1 + exp(-1)), 0);
    assert_true(softmax[2] == 0);
    assert_true(isnan(task_cross_entropy(3, cases[4].z, 0, NULL)));
    assert_int_equal(task_in_top(3, cases[0].z, 0, 2), 0);
    assert_int_equal(task_in_top(3, cases[0].z, 0, 3), 1);
}

/* By the formula in double. gates, bias: of one unit; recurrent may be NULL. */
static void expected_cell(const float *gates, const float *recurrent, const float *bias, double forget, double c,
                          double *out)
{
    double sum[4];

    for (int k = 0; k < 4; k++)
        sum[k] = (double)(gates[k] + (recurrent ? recurrent[k] : 0) + bias[k]) + (k == 2 ? forget : 0);
    out[0] = 1 / (1 + exp(-sum[0]));
    out[1] = tanh(sum[1]);
    out[2] = 1 / (1 + exp(-sum[2]));
    out[3] = 1 / (1 + exp(-sum[3]));
    out[4] = out[2] * c + out[0] * out[1];
    out[5] = out[3] * tanh(out[4]);
}

static void assert_within(double got, double expected, double relative)
{
    if (!(fabs(got - expected) <= relative * fabs(expected)))
        fail_msg("%.9g instead of %.9g", got, expected);
}

/* Values of all sizes, in every number of units that is cut into vectors in another way. */
static void lstm_cell_values(void **state)
{
    static const float sizes[] = { 0, 1e-30F, 1e-6F, 0.01F, 0.3F, 0.34F, 0.35F, 1, 3, 9, 9.1F, 20, 60, 86 };
    enum { SIZES = sizeof sizes / sizeof *sizes, VALUES = 2 * SIZES };

    (void)state;
    for (size_t units = 1; units <= VALUES; units++)
        for (int with = 0; with < 2; with++) {
            float gates[4 * VALUES], recurrent[4 * VALUES], given[4 * VALUES], c[VALUES], bent[VALUES], h[VALUES];
            float bias[4 * VALUES];

            for (size_t k = 0; k < 4 * units; k++) {
                const size_t i = (k * 7 + units) % VALUES;
                given[k] = gates[k] = i < SIZES ? sizes[i] : -sizes[i - SIZES];
                recurrent[k] = 0.001F * (float)k;
                bias[k] = 0.002F * (float)(k % 5);
            }
            for (size_t k = 0; k < units; k++)
                c[k] = 0.1F * (float)k - 1;
            lstm_cell(units, 1, bias, with ? recurrent : NULL, gates, c, c, bent, h);
            for (size_t k = 0; k < units; k++) {
                const float of[4] = { given[k], given[units + k], given[2 * units + k], given[3 * units + k] };
                const float add[4] = { recurrent[k], recurrent[units + k], recurrent[2 * units + k],
                                       recurrent[3 * units + k] };
                const float biases[4] = { bias[k], bias[units + k], bias[2 * units + k], bias[3 * units + k] };
                double expected[6];

                expected_cell(of, with ? add : NULL, biases, 1, 0.1F * (float)k - 1, expected);
                for (size_t g = 0; g < 4; g++)
                    assert_within((double)gates[g * units + k], expected[g], g == 1 ? 4e-7 : 1e-5);
                assert_near((double)c[k], expected[4], 0.1);
                assert_near((double)h[k], expected[5], 0.1);
            }
        }
}

static void lstm_cell_extremes(void **state)
{
    static const float extremes[] = { INFINITY, -INFINITY, 1e30F, -1e30F, NAN };

    (void)state;
    for (size_t k = 0; k < sizeof extremes / sizeof *extremes; k++) {
        const float bias[4] = { 0 }, x = extremes[k];
        float gates[4] = { x, x, x, x }, c = 0.5F, bent, h;

        lstm_cell(1, 1, bias, NULL, gates, &c, &c, &bent, &h);
        for (int g = 0; g < 4; g++)
            if (isnan(x))
                assert_true(isnan(gates[g]));
            else
                assert_near((double)gates[g], x > 0 ? 1 : g == 1 ? -1 : 0, 1e-30);
        assert_true(isnan(x) == isnan(h));
    }
}

/* Also on a processor that OpenBLAS does not know, its kernels are not those of the oldest one. */
static void blas_kernels_fit(void **state)
{
    (void)state;
    assert_int_equal(blas_load(NULL), OK);
#ifdef __x86_64__
    if (!getenv("OPENBLAS_CORETYPE") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        assert_string_not_equal(blas_kernels(), "Prescott");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_norm),
        cmocka_unit_test(batch_norm_relu),
        cmocka_unit_test(activation),
        cmocka_unit_test(leaky),
        cmocka_unit_test(pool),
        cmocka_unit_test(lrn),
        cmocka_unit_test(channels),
        cmocka_unit_test(task),
        cmocka_unit_test(lstm_cell_values),
        cmocka_unit_test(lstm_cell_extremes),
        cmocka_unit_test(blas_kernels_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
