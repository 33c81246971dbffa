/*
 * Batch norm with leaky ReLU as two layers, because its sums need the whole batch:
 *   statistics  runs right after the layer that makes x, on each slice while it is in the cache
 *   normalize   writes z = leaky(batch_norm(x)) after the barrier; z is cheap, so the backward pass makes it again
 * and backward in the opposite order: normalize turns dz into dy in place and sums, statistics writes dx after that.
 */
#include "model/kernels/batch_norm.h"
#include "model/layer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct batch_norm {
    size_t channels;
    double *sum, *square;        /* forward: of x - shift; backward: of dy and dy (x - mean) */
    real *shift, *mean;
    real *scale, *offset;        /* y = scale x + offset */
    real *slope_x, *constant;    /* dx = scale dy + slope_x x + constant */
    double *mean_exact, *inverse; /* 1 / sqrt(variance + epsilon) */
    int have_shift;
};

static int layer_batch_norm_make(struct layer *l, int slice, int batch, struct error *e)
{
    struct batch_norm *n = l->norm;
    const size_t c = n->channels;

    (void)slice, (void)batch;
    n->sum = calloc(c * 4, sizeof *n->sum);
    n->shift = calloc(c * 6, sizeof *n->shift);
    if (!n->sum || !n->shift)
        return error_set(e, ERR_NOMEM, "no memory for a batch norm of %zu channels", c);
    n->square = n->sum + c;
    n->mean_exact = n->sum + 2 * c;
    n->inverse = n->sum + 3 * c;
    n->mean = n->shift + c;
    n->scale = n->shift + 2 * c;
    n->offset = n->shift + 3 * c;
    n->slope_x = n->shift + 4 * c;
    n->constant = n->shift + 5 * c;
    return OK;
}

static void layer_batch_norm_release(struct layer *l)
{
    if (l->norm) {
        free(l->norm->sum);
        free(l->norm->shift);
        free(l->norm);
    }
}

struct batch_norm *layer_batch_norm_new(size_t channels)
{
    struct batch_norm *n = calloc(1, sizeof *n);

    if (n)
        n->channels = channels;
    return n;
}

static void clear_sums(struct batch_norm *n)
{
    memset(n->sum, 0, 2 * n->channels * sizeof *n->sum);
}

static void statistics_begin(struct layer *l, const struct run *r)
{
    (void)r;
    clear_sums(l->norm);
    l->norm->have_shift = 0;
}

/* The first slice's mean: near enough to the batch's that squared differences from it do not cancel. */
static void find_shift(struct batch_norm *n, const struct shape *x, const struct slice *s)
{
    const size_t plane = shape_pixels(x) * (size_t)x->block, planes = shape_planes(x);

    memset(n->shift, 0, n->channels * sizeof *n->shift);
    for (size_t k = 0; k < (size_t)s->count * planes; k++) {
        const size_t c = k % planes * (size_t)x->block;
        batch_norm_sums(shape_pixels(x), (size_t)x->block, s->in + k * plane, n->shift + c, n->sum + c, n->square + c);
    }
    for (size_t c = 0; c < n->channels; c++)
        n->shift[c] = (real)(n->sum[c] / ((double)s->count * (double)shape_pixels(x)));
    clear_sums(n);
    n->have_shift = 1;
}

static void statistics_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    struct batch_norm *n = l->norm;
    const struct shape *x = &l->in_shape;
    const size_t plane = shape_pixels(x) * (size_t)x->block, planes = shape_planes(x);

    (void)r;
    if (!n->have_shift)
        find_shift(n, x, s);
    for (size_t k = 0; k < (size_t)s->count * planes; k++) {
        const size_t c = k % planes * (size_t)x->block;
        batch_norm_sums(shape_pixels(x), (size_t)x->block, s->in + k * plane, n->shift + c, n->sum + c, n->square + c);
    }
}

/* y = scale x + offset from mean and variance. */
static void set_scale(struct layer *l, const struct run *r, size_t c, double mean, double variance)
{
    struct batch_norm *n = l->norm;
    const double beta = (double)r->parameters[l->parameter[0] + c], gamma = (double)r->parameters[l->parameter[1] + c];

    n->inverse[c] = 1 / sqrt(variance + l->epsilon);
    n->mean_exact[c] = mean;
    n->mean[c] = (real)mean;
    n->scale[c] = (real)(gamma * n->inverse[c]);
    n->offset[c] = (real)(beta - gamma * n->inverse[c] * mean);
}

static void statistics_end(struct layer *l, const struct run *r)
{
    struct batch_norm *n = l->norm;
    const double count = (double)r->count * (double)shape_pixels(&l->in_shape);
    real *statistics = r->exchange + r->parameter_count;

    for (size_t c = 0; c < n->channels; c++) {
        const double off = n->sum[c] / count, mean = (double)n->shift[c] + off;
        double variance = n->square[c] / count - off * off;

        if (variance < 0) /* rounding; and not fmax, which would drop a NaN */
            variance = 0;
        statistics[l->statistic[0] + c] = (real)(mean * r->count);
        statistics[l->statistic[1] + c] = (real)(variance * r->count);
        set_scale(l, r, c, mean, variance);
    }
}

static void normalize_begin(struct layer *l, const struct run *r)
{
    if (!r->training)
        for (size_t c = 0; c < l->norm->channels; c++)
            set_scale(l, r, c, (double)r->statistics[l->statistic[0] + c],
                      (double)r->statistics[l->statistic[1] + c]);
}

static void normalize_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct batch_norm *n = l->norm;
    const struct shape *x = &l->in_shape;
    const size_t plane = shape_pixels(x) * (size_t)x->block, planes = shape_planes(x);

    (void)r;
    for (size_t k = 0; k < (size_t)s->count * planes; k++) {
        const size_t c = k % planes * (size_t)x->block;
        batch_norm_apply(shape_pixels(x), (size_t)x->block, s->in + k * plane, n->scale + c, n->offset + c,
                         (real)l->slope, s->out + k * plane);
    }
}

static void normalize_backward_begin(struct layer *l, const struct run *r)
{
    (void)r;
    clear_sums(l->norm);
}

static void normalize_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    struct batch_norm *n = l->norm;
    const struct shape *x = &l->in_shape;
    const size_t plane = shape_pixels(x) * (size_t)x->block, planes = shape_planes(x);

    (void)r;
    for (size_t k = 0; k < (size_t)s->count * planes; k++) {
        const size_t c = k % planes * (size_t)x->block;
        batch_norm_reduce(shape_pixels(x), (size_t)x->block, s->in + k * plane, n->scale + c, n->offset + c,
                          (real)l->slope, n->mean + c, s->gradient_out + k * plane, n->sum + c, n->square + c);
    }
}

static void normalize_backward_end(struct layer *l, const struct run *r)
{
    struct batch_norm *n = l->norm;
    const double count = (double)r->count * (double)shape_pixels(&l->in_shape);

    for (size_t c = 0; c < n->channels; c++) {
        const double gamma = (double)r->parameters[l->parameter[1] + c], inverse = n->inverse[c];
        /* sum of dy (x - mean), with the mean as exact as we have it */
        const double product = n->square[c] + ((double)n->mean[c] - n->mean_exact[c]) * n->sum[c];
        const double slope = -gamma * inverse * inverse * inverse * product / count;

        r->exchange[l->parameter[0] + c] = (real)n->sum[c];
        r->exchange[l->parameter[1] + c] = (real)(product * inverse);
        n->slope_x[c] = (real)slope;
        n->constant[c] = (real)(-gamma * inverse * n->sum[c] / count - slope * n->mean_exact[c]);
    }
}

static void statistics_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct batch_norm *n = l->norm;
    const struct shape *x = &l->in_shape;
    const size_t plane = shape_pixels(x) * (size_t)x->block, planes = shape_planes(x);

    (void)r;
    if (!s->gradient_in)
        return;
    for (size_t k = 0; k < (size_t)s->count * planes; k++) {
        const size_t c = k % planes * (size_t)x->block;
        batch_norm_backward(shape_pixels(x), (size_t)x->block, s->in + k * plane, s->gradient_other + k * plane,
                            n->scale + c, n->slope_x + c, n->constant + c, l->accumulate, s->gradient_in + k * plane);
    }
}

const struct layer_kind layer_statistics = {
    .name = "statistics", .flags = LAYER_KEEPS_IN | LAYER_TRAINING_ONLY | LAYER_OTHER_GRADIENT | LAYER_ADDS,
    .make = layer_batch_norm_make, .release = layer_batch_norm_release, .forward_begin = statistics_begin,
    .forward = statistics_forward, .forward_end = statistics_end, .backward = statistics_backward,
};
const struct layer_kind layer_normalize = {
    .name = "normalize", .flags = LAYER_KEEPS_IN | LAYER_AGAIN | LAYER_BARRIER | LAYER_NO_GRADIENT_IN,
    .forward_begin = normalize_begin, .forward = normalize_forward, .backward_begin = normalize_backward_begin,
    .backward = normalize_backward, .backward_end = normalize_backward_end,
};
