/*
 * Batch norm with leaky ReLU as two layers, because its sums need the whole batch:
 *   statistics  runs right after the layer that makes x, on each slice while it is in the cache
 *   normalize   writes z = leaky(batch_norm(x)) after the barrier; z is cheap, so the backward pass makes it again
 * and backward in the opposite order: normalize turns dz into dy in place and sums, statistics writes dx after that.
 */
#include "model/network_internal.h"

#include "model/kernels/batch_norm.h"
#include "model/layers/layers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* of both layers */
struct batch_norm {
    size_t channels;
    size_t beta, gamma; /* parameters; gamma SIZE_MAX: there is none */
    size_t moving_mean, moving_variance;
    double epsilon, slope;
    int unbiased;
    int frozen;           /* statistics and parameters stay: training, too, uses the moving ones */
    double *sum, *square; /* forward: of x - shift; backward: of dy and dy (x - mean) */
    real *shift, *mean;
    real *scale, *offset;         /* y = scale x + offset */
    real *slope_x, *constant;     /* dx = scale dy + slope_x x + constant */
    double *mean_exact, *inverse; /* 1 / sqrt(variance + epsilon) */
    int have_shift;
};

/* State of the statistics layer; normalize has a pointer to it. */
static struct batch_norm *norm_of(const struct layer *l)
{
    return *(struct batch_norm *const *)l->state;
}

static int layer_batch_norm_make(struct layer *l, int slice, int batch, struct error *e)
{
    struct batch_norm *n = l->state;
    const size_t c = n->channels;

    (void)slice, (void)batch;
    n->sum = calloc(c * 4, sizeof *n->sum);
    n->shift = reals_new(c * 6); /* which is aligned, and so is each part of whole blocks */
    if (!n->sum || !n->shift)
        return error_memory(e, NULL, "for a batch norm of %zu channels", c);
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
    struct batch_norm *n = l->state;

    free(n->sum);
    free(n->shift);
}

static void clear_sums(struct batch_norm *n)
{
    memset(n->sum, 0, 2 * n->channels * sizeof *n->sum);
}

static void statistics_begin(struct layer *l, const struct run *r)
{
    struct batch_norm *n = l->state;

    (void)r;
    clear_sums(n);
    n->have_shift = 0;
}

/* Adds x - shift and its squares to the sums. */
static void add_sums(struct batch_norm *n, const struct shape *x, const struct slice *s)
{
    const size_t plane = shape_pixels(x) * (size_t)x->block, planes = shape_planes(x);

    for (size_t k = 0; k < (size_t)s->count * planes; k++) {
        const size_t c = k % planes * (size_t)x->block;
        batch_norm_sums(shape_pixels(x), (size_t)x->block, s->in + k * plane, n->shift + c, n->sum + c, n->square + c);
    }
}

/* The first slice's mean: near enough to the batch's that squared differences from it do not cancel. */
static void find_shift(struct batch_norm *n, const struct shape *x, const struct slice *s)
{
    memset(n->shift, 0, n->channels * sizeof *n->shift);
    add_sums(n, x, s);
    for (size_t c = 0; c < n->channels; c++)
        n->shift[c] = (real)(n->sum[c] / ((double)s->count * (double)shape_pixels(x)));
    clear_sums(n);
    n->have_shift = 1;
}

static void statistics_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    struct batch_norm *n = l->state;

    (void)r;
    if (n->frozen)
        return;
    if (!n->have_shift)
        find_shift(n, &l->in_shape, s);
    add_sums(n, &l->in_shape, s);
}

static double gamma_of(const struct batch_norm *n, const struct run *r, size_t c)
{
    return n->gamma == SIZE_MAX ? 1 : (double)r->parameters[n->gamma + c];
}

/* y = scale x + offset from mean and variance. */
static void set_scale(struct batch_norm *n, const struct run *r, size_t c, double mean, double variance)
{
    const double beta = (double)r->parameters[n->beta + c], gamma = gamma_of(n, r, c);

    n->inverse[c] = 1 / sqrt(variance + n->epsilon);
    n->mean_exact[c] = mean;
    n->mean[c] = (real)mean;
    n->scale[c] = (real)(gamma * n->inverse[c]);
    n->offset[c] = (real)(beta - gamma * n->inverse[c] * mean);
}

static void statistics_end(struct layer *l, const struct run *r)
{
    struct batch_norm *n = l->state;
    const double count = (double)r->count * (double)shape_pixels(&l->in_shape);
    const double kept = n->unbiased && count > 1 ? count / (count - 1) : 1; /* of the variance, in the moving one */
    real *statistics = r->exchange + r->parameter_count;

    for (size_t c = 0; n->frozen && c < n->channels; c++) /* what a training does not change */
        n->slope_x[c] = n->constant[c] = 0;
    for (size_t c = 0; !n->frozen && c < n->channels; c++) {
        const double off = n->sum[c] / count, mean = (double)n->shift[c] + off;
        double variance = n->square[c] / count - off * off;

        if (variance < 0) /* against rounding; not fmax, which would drop a NaN */
            variance = 0;
        statistics[n->moving_mean + c] = (real)(mean * r->weight);
        statistics[n->moving_variance + c] = (real)(variance * kept * r->weight);
        set_scale(n, r, c, mean, variance);
    }
}

static void normalize_begin(struct layer *l, const struct run *r)
{
    struct batch_norm *n = norm_of(l);

    if (!r->training || n->frozen)
        for (size_t c = 0; c < n->channels; c++)
            set_scale(n, r, c, (double)r->statistics[n->moving_mean + c],
                      (double)r->statistics[n->moving_variance + c]);
}

static void normalize_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct batch_norm *n = norm_of(l);
    const struct shape *x = &l->in_shape;
    const size_t plane = shape_pixels(x) * (size_t)x->block, planes = shape_planes(x);

    (void)r;
    for (size_t k = 0; k < (size_t)s->count * planes; k++) {
        const size_t c = k % planes * (size_t)x->block;
        batch_norm_apply(shape_pixels(x), (size_t)x->block, s->in + k * plane, n->scale + c, n->offset + c,
                         (real)n->slope, s->out + k * plane);
    }
}

static int normalize_finish(const struct layer *l, struct layer_finish *f)
{
    const struct batch_norm *n = norm_of(l);

    *f = (struct layer_finish){ n->scale, n->offset, (real)n->slope };
    return 1;
}

static void normalize_backward_begin(struct layer *l, const struct run *r)
{
    (void)r;
    clear_sums(norm_of(l));
}

static void normalize_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    struct batch_norm *n = norm_of(l);
    const struct shape *x = &l->in_shape;
    const size_t plane = shape_pixels(x) * (size_t)x->block, planes = shape_planes(x);

    (void)r;
    for (size_t k = 0; k < (size_t)s->count * planes; k++) {
        const size_t c = k % planes * (size_t)x->block;
        batch_norm_reduce(shape_pixels(x), (size_t)x->block, s->in + k * plane, n->scale + c, n->offset + c,
                          (real)n->slope, n->mean + c, s->gradient_out + k * plane, n->sum + c, n->square + c);
    }
}

static void normalize_backward_end(struct layer *l, const struct run *r)
{
    struct batch_norm *n = norm_of(l);
    const double count = (double)r->count * (double)shape_pixels(&l->in_shape);

    for (size_t c = 0; !n->frozen && c < n->channels; c++) {
        const double gamma = gamma_of(n, r, c), inverse = n->inverse[c];
        /* sum of dy (x - mean), with the exact mean */
        const double product = n->square[c] + ((double)n->mean[c] - n->mean_exact[c]) * n->sum[c];
        const double slope = -gamma * inverse * inverse * inverse * product / count;

        r->exchange[n->beta + c] = (real)n->sum[c];
        if (n->gamma != SIZE_MAX)
            r->exchange[n->gamma + c] = (real)(product * inverse);
        n->slope_x[c] = (real)slope;
        n->constant[c] = (real)(-gamma * inverse * n->sum[c] / count - slope * n->mean_exact[c]);
    }
}

static void statistics_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct batch_norm *n = l->state;
    const struct shape *x = &l->in_shape;
    const size_t plane = shape_pixels(x) * (size_t)x->block, planes = shape_planes(x);

    (void)r;
    if (!s->gradient_in)
        return;
    for (size_t k = 0; k < (size_t)s->count * planes; k++) {
        const size_t c = k % planes * (size_t)x->block;
        batch_norm_backward(shape_pixels(x), (size_t)x->block, s->in + k * plane, s->gradients_in[1] + k * plane,
                            n->scale + c, n->slope_x + c, n->constant + c, l->inputs[0].accumulate,
                            s->gradient_in + k * plane);
    }
}

static const struct layer_kind layer_statistics = {
    .name = "statistics",
    .flags = LAYER_KEEPS_IN | LAYER_TRAINING_ONLY | LAYER_ADDS,
    .make = layer_batch_norm_make,
    .release = layer_batch_norm_release,
    .forward_begin = statistics_begin,
    .forward = statistics_forward,
    .forward_end = statistics_end,
    .backward = statistics_backward,
};
static const struct layer_kind layer_normalize = {
    .name = "normalize",
    .flags = LAYER_KEEPS_IN | LAYER_AGAIN | LAYER_BARRIER | LAYER_NO_GRADIENT_IN,
    .forward_begin = normalize_begin,
    .forward = normalize_forward,
    .backward_begin = normalize_backward_begin,
    .backward = normalize_backward,
    .backward_end = normalize_backward_end,
    .finish = normalize_finish,
};

enum variable_name { NAME_BETA, NAME_GAMMA, NAME_MEAN, NAME_VARIANCE };

/* Returns its offset. */
static size_t add_variable(struct network_builder *b, const char *scope, enum variable_name which,
                           const struct batch_norm_options *options, int channels)
{
    static const struct {
        const char *name, *torch;
        enum variable_kind kind;
        double initial;
    } variables[] = { { "beta", "bias", VARIABLE_WEIGHT, 0 },
                      { "gamma", "weight", VARIABLE_WEIGHT, 1 },
                      { "moving_mean", "running_mean", VARIABLE_STATISTIC, 0 },
                      { "moving_variance", "running_var", VARIABLE_STATISTIC, 1 } };
    const char *debias_scope = options->debias && variables[which].kind == VARIABLE_STATISTIC ? scope : "";
    char full[128];

    if (options->names == BATCH_NORM_TENSORFLOW)
        return network_builder_constant(b, scope, variables[which].name, variables[which].kind, channels,
                                        variables[which].initial, debias_scope);
    if (snprintf(full, sizeof full, "%s.%s", scope, variables[which].torch) >= (int)sizeof full)
        network_builder_fail(b, ERR_ARG, "the name %s.%s is too long", scope, variables[which].torch);
    return network_builder_constant(b, full, "", variables[which].kind, channels, variables[which].initial,
                                    debias_scope);
}

int network_builder_batch_norm(struct network_builder *b, int in, const char *scope,
                               const struct batch_norm_options *options)
{
    const struct shape x = network_builder_shape(b, in);
    struct layer *l = network_builder_layer(b, &layer_statistics, in, x, sizeof(struct batch_norm));
    struct batch_norm *n;
    size_t first;
    int whole, out;

    if (!l)
        return VALUE_NONE;
    n = l->state;
    whole = l->whole;
    out = l->out; /* written by the second half; backward of this one needs its gradient */
    network_builder_input(b, l, out, 1);
    l->out = VALUE_NONE;
    if (!(l = network_builder_layer_to(b, &layer_normalize, in, out, sizeof n)))
        return VALUE_NONE;
    *(struct batch_norm **)l->state = n;
    l->whole = whole;
    n->channels = (size_t)x.channels;
    n->epsilon = options->epsilon;
    n->slope = options->slope;
    n->unbiased = options->unbiased;
    n->gamma = SIZE_MAX;
    first = b->variable_count;
    n->beta = l->low = add_variable(b, scope, NAME_BETA, options, x.channels);
    if (!options->leave_gamma)
        n->gamma = add_variable(b, scope, NAME_GAMMA, options, x.channels);
    n->moving_mean = add_variable(b, scope, NAME_MEAN, options, x.channels);
    n->moving_variance = add_variable(b, scope, NAME_VARIANCE, options, x.channels);
    n->frozen = 1;
    for (size_t i = first; i < b->variable_count; i++)
        n->frozen &= b->variables[i].frozen;
    network_builder_note(b, scope,
                         &(struct network_call){ .kind = &layer_call_batch_norm,
                                                 .inputs = { in },
                                                 .input_count = 1,
                                                 .out = out,
                                                 .arguments = { { { options->epsilon } },
                                                                { { options->slope } },
                                                                { { options->debias != 0 } },
                                                                { { options->unbiased != 0 } },
                                                                { { !options->leave_gamma } },
                                                                { { options->names } } } });
    return out;
}

static int build_batch_norm(struct network_builder *b, const int *in, int in_count, const char *name,
                            const struct argument *a)
{
    const struct batch_norm_options options = { .epsilon = a[0].v[0],
                                                .slope = a[1].v[0],
                                                .debias = a[2].v[0] != 0,
                                                .unbiased = a[3].v[0] != 0,
                                                .leave_gamma = a[4].v[0] == 0,
                                                .names = (enum batch_norm_names)(int)a[5].v[0] };

    (void)in_count;
    return network_builder_batch_norm(b, in[0], name, &options);
}

const struct layer_call layer_call_batch_norm = {
    .name = "batch_norm",
    .help = "batch normalization with beta, and gamma unless left out, then leaky ReLU if wanted",
    .named = "scope",
    .inputs_least = 1,
    .inputs_most = 1,
    .parameters = {
        { "epsilon", PARAMETER_REAL, NULL, 1e-12, 1, "0.001", "added to the variance" },
        { "slope", PARAMETER_REAL, NULL, 0, 1, "1", "of the leaky ReLU after it; 0: of a ReLU; 1: none" },
        { "debias", PARAMETER_FLAG, NULL, 0, 0, "no", "zero-debias the moving averages" },
        { "unbiased", PARAMETER_FLAG, NULL, 0, 0, "no", "keep the moving average of the unbiased variance" },
        { "gamma", PARAMETER_FLAG, NULL, 0, 0, "yes", "scale by a variable gamma" },
        { "names", PARAMETER_WORD, "tensorflow|torch", 0, 0, "tensorflow", "of its variables" },
    },
    .build = build_batch_norm,
};
