/* Bias with ReLU, leaky ReLU, sums of two values, dropout: layers that work element by element, in place. */
#include "model/kernels/activation.h"

#include "base/random.h"
#include "model/layer.h"

#include <stdlib.h>
#include <string.h>

static int make_sums(struct layer *l, int slice, int batch, struct error *e)
{
    (void)slice, (void)batch;
    l->sums = calloc((size_t)l->in_shape.channels, sizeof *l->sums);
    return l->sums ? OK : error_set(e, ERR_NOMEM, "no memory for the sums of a bias");
}

static void release_sums(struct layer *l)
{
    free(l->sums);
}

static void bias_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct shape *x = &l->in_shape;
    const size_t plane = shape_pixels(x) * (size_t)x->block, planes = shape_planes(x);
    const real *bias = r->parameters + l->parameter[0];

    if (planes == 1) { /* then images follow each other as their pixels do */
        activation_bias_forward((size_t)s->count * shape_pixels(x), (size_t)x->block, bias, l->relu, s->out);
        return;
    }
    for (size_t k = 0; k < (size_t)s->count * planes; k++)
        activation_bias_forward(shape_pixels(x), (size_t)x->block, bias + k % planes * (size_t)x->block, l->relu,
                                s->out + k * plane);
}

static void bias_backward_begin(struct layer *l, const struct run *r)
{
    (void)r;
    memset(l->sums, 0, (size_t)l->in_shape.channels * sizeof *l->sums);
}

static void bias_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct shape *x = &l->in_shape;
    const size_t plane = shape_pixels(x) * (size_t)x->block, planes = shape_planes(x);

    (void)r;
    for (size_t k = 0; k < (size_t)s->count * planes; k++)
        activation_bias_backward(shape_pixels(x), (size_t)x->block, l->relu, s->out + k * plane,
                                 s->gradient_out + k * plane, l->sums + k % planes * (size_t)x->block);
}

static void bias_backward_end(struct layer *l, const struct run *r)
{
    for (size_t c = 0; c < (size_t)l->in_shape.channels; c++)
        r->exchange[l->parameter[0] + c] = (real)l->sums[c];
}

static void leaky_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    (void)r;
    activation_leaky_forward((size_t)s->count * shape_size(&l->in_shape), s->out, (real)l->slope, s->out);
}

/* In place: the output has the sign of the input, slope being positive. */
static void leaky_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    (void)r;
    activation_leaky_backward((size_t)s->count * shape_size(&l->in_shape), s->out, (real)l->slope,
                              (enum leaky_rule)l->leaky_rule, s->gradient_out);
}

static void add_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    (void)r;
    activation_add((size_t)s->count * shape_size(&l->in_shape), s->other, s->out);
}

static void add_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const size_t n = (size_t)s->count * shape_size(&l->in_shape);

    (void)r;
    if (!s->gradient_other || l->shares_other)
        return;
    if (l->accumulate_other)
        activation_add(n, s->gradient_out, s->gradient_other);
    else
        memcpy(s->gradient_other, s->gradient_out, n * sizeof *s->gradient_out);
}

/* x / keep or 0, by draws of (seed, step, sample): the backward pass draws the same again. */
static void drop(const struct layer *l, const struct run *r, const struct slice *s, real *x)
{
    const size_t size = shape_size(&l->in_shape);
    const uint32_t below = (uint32_t)(l->keep * 4294967296.0);

    for (size_t n = 0; n < (size_t)s->count; n++) {
        const int64_t place = r->first_sample + s->first + (int64_t)n;
        struct random random;

        random_init(&random, r->seed, RANDOM_DROPOUT, (uint64_t)r->step,
                    (uint64_t)(r->batch->samples ? r->batch->samples[place] : place));
        random.draw = (uint32_t)l->number << DROPOUT_BLOCKS; /* several dropouts of a network draw apart */
        for (size_t i = 0; i < size; i++)
            x[n * size + i] = random_u32(&random) < below ? x[n * size + i] / (real)l->keep : 0;
    }
}

static void dropout_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    drop(l, r, s, s->out);
}

static void dropout_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    drop(l, r, s, s->gradient_out);
}

const struct layer_kind layer_bias = {
    .name = "bias", .flags = LAYER_IN_PLACE | LAYER_KEEPS_OUT, .make = make_sums, .release = release_sums,
    .forward = bias_forward, .backward_begin = bias_backward_begin, .backward = bias_backward,
    .backward_end = bias_backward_end,
};
const struct layer_kind layer_leaky = {
    .name = "leaky ReLU", .flags = LAYER_IN_PLACE | LAYER_KEEPS_OUT | LAYER_KEEPS_SIGN, .forward = leaky_forward,
    .backward = leaky_backward,
};
const struct layer_kind layer_add = {
    .name = "add", .flags = LAYER_IN_PLACE, .forward = add_forward, .backward = add_backward,
};
const struct layer_kind layer_dropout = {
    .name = "dropout", .flags = LAYER_IN_PLACE | LAYER_TRAINING_ONLY | LAYER_KEEPS_SIGN, .forward = dropout_forward,
    .backward = dropout_backward,
};
