#include "model/layer.h"

static int layer_convolution_make(struct layer *l, int slice, int batch, struct error *e)
{
    (void)batch;
    l->convolution_shape.images = slice;
    l->convolution_shape.need_data_gradient = l->wants_gradient;
    return l->backend->make(&l->convolution, &l->convolution_shape, e);
}

static void layer_convolution_release(struct layer *l)
{
    if (l->convolution)
        l->backend->release(l->convolution);
}

static void forward_begin(struct layer *l, const struct run *r)
{
    l->backend->prepare(l->convolution, r->parameters + l->parameter[0], r->training);
}

static void layer_convolution_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    (void)r;
    l->backend->forward(l->convolution, s->count, s->in, s->out);
}

static void layer_convolution_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    (void)r;
    l->backend->backward_weights(l->convolution, s->count, s->in, s->gradient_out);
    if (s->gradient_in)
        l->backend->backward_data(l->convolution, s->count, s->gradient_out, s->gradient_in);
}

static void backward_end(struct layer *l, const struct run *r)
{
    l->backend->weights_gradient(l->convolution, r->exchange + l->parameter[0]);
}

const struct layer_kind layer_convolution = {
    .name = "convolution", .flags = LAYER_KEEPS_IN, .make = layer_convolution_make,
    .release = layer_convolution_release, .forward_begin = forward_begin, .forward = layer_convolution_forward,
    .backward = layer_convolution_backward, .backward_end = backward_end,
};
