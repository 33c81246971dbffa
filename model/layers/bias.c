/* Adds a bias to each channel, followed by ReLU if wanted, in place. */
#include "model/network_internal.h"

#include "model/kernels/activation.h"
#include "model/layers/layers.h"

#include <stdlib.h>
#include <string.h>

struct bias {
    size_t parameter;
    int relu;
    double *sums; /* (channels) */
};

static int bias_make(struct layer *l, int slice, int batch, struct error *e)
{
    struct bias *own = l->state;

    (void)slice, (void)batch;
    own->sums = calloc((size_t)l->in_shape.channels, sizeof *own->sums);
    return own->sums ? OK : error_memory(e, NULL, "for the sums of a bias");
}

static void bias_release(struct layer *l)
{
    free(((struct bias *)l->state)->sums);
}

static void bias_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct bias *own = l->state;
    const struct shape *x = &l->in_shape;
    const size_t plane = shape_pixels(x) * (size_t)x->block, planes = shape_planes(x);
    const real *bias = r->parameters + own->parameter;

    if (planes == 1) { /* then images are adjacent, like their pixels */
        activation_bias_forward((size_t)s->count * shape_pixels(x), (size_t)x->block, bias, own->relu, s->out);
        return;
    }
    for (size_t k = 0; k < (size_t)s->count * planes; k++)
        activation_bias_forward(shape_pixels(x), (size_t)x->block, bias + k % planes * (size_t)x->block, own->relu,
                                s->out + k * plane);
}

static void bias_backward_begin(struct layer *l, const struct run *r)
{
    const struct bias *own = l->state;

    (void)r;
    memset(own->sums, 0, (size_t)l->in_shape.channels * sizeof *own->sums);
}

static void bias_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct bias *own = l->state;
    const struct shape *x = &l->in_shape;
    const size_t plane = shape_pixels(x) * (size_t)x->block, planes = shape_planes(x);

    (void)r;
    for (size_t k = 0; k < (size_t)s->count * planes; k++)
        activation_bias_backward(shape_pixels(x), (size_t)x->block, own->relu, s->out + k * plane,
                                 s->gradient_out + k * plane, own->sums + k % planes * (size_t)x->block);
}

static void bias_backward_end(struct layer *l, const struct run *r)
{
    const struct bias *own = l->state;

    for (size_t c = 0; c < (size_t)l->in_shape.channels; c++)
        r->exchange[own->parameter + c] = (real)own->sums[c];
}

static const struct layer_kind layer_bias = {
    .name = "bias",
    .flags = LAYER_IN_PLACE | LAYER_KEEPS_OUT,
    .make = bias_make,
    .release = bias_release,
    .forward = bias_forward,
    .backward_begin = bias_backward_begin,
    .backward = bias_backward,
    .backward_end = bias_backward_end,
};

int network_builder_bias(struct network_builder *b, int in, const char *name, double initial, enum relu relu)
{
    const struct kernel_options constant = { INITIAL_CONSTANT, initial, 0 };

    return network_builder_bias_drawn(b, in, name, &constant, relu);
}

int network_builder_bias_drawn(struct network_builder *b, int in, const char *name,
                               const struct kernel_options *options, enum relu relu)
{
    const struct shape x = network_builder_shape(b, in);
    struct layer *l = network_builder_layer(b, &layer_bias, in, x, sizeof(struct bias));
    const int64_t shape[1] = { x.channels };
    struct bias *own;

    if (!l)
        return VALUE_NONE;
    own = l->state;
    own->relu = l->reads_sign = relu == RELU;
    own->parameter = l->low = network_builder_kernel(b, name, 1, shape, options);
    network_builder_note(b, name,
                         &(struct network_call){ .kind = &layer_call_bias,
                                                 .inputs = { in },
                                                 .input_count = 1,
                                                 .out = l->out,
                                                 .arguments = { INITIAL_ARGUMENT(options), { { relu == RELU } } } });
    return l->out;
}

static int build_bias(struct network_builder *b, const int *in, int in_count, const char *name,
                      const struct argument *a)
{
    const struct kernel_options options = { (enum initial_kind)(int)a[0].v[0], a[0].v[1], 0 };

    (void)in_count;
    return network_builder_bias_drawn(b, in[0], name, &options, a[1].v[0] != 0 ? RELU : RELU_NONE);
}

const struct layer_call layer_call_bias = {
    .name = "bias",
    .help = "adds a variable to each channel, then ReLU if wanted; in place",
    .named = "variable",
    .inputs_least = 1,
    .inputs_most = 1,
    .parameters = {
        { "initial", PARAMETER_INITIAL, NULL, -1e6, 1e6, "0", "how the variable begins" },
        { "relu", PARAMETER_FLAG, NULL, 0, 0, "no", "follow it with ReLU" },
    },
    .build = build_bias,
};
