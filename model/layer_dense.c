/* The dense layer, and softmax cross entropy on top: layers that want the whole batch at once. */
#include "model/kernels/dense.h"
#include "model/kernels/softmax.h"
#include "model/layer.h"

#include <stdlib.h>
#include <string.h>

/* Inputs whose layout is not the flat (pixels, channels) yet are copied to it. */
static int needs_flat(const struct layer *l)
{
    return shape_planes(&l->in_shape) > 1 && shape_pixels(&l->in_shape) > 1;
}

static int layer_dense_make(struct layer *l, int slice, int batch, struct error *e)
{
    (void)slice;
    if (!needs_flat(l))
        return OK;
    l->flat = malloc((size_t)batch * shape_size(&l->in_shape) * sizeof *l->flat);
    return l->flat ? OK : error_set(e, ERR_NOMEM, "no memory for the input of a dense layer");
}

static void layer_dense_release(struct layer *l)
{
    free(l->flat);
}

static const real *flatten(const struct layer *l, const struct slice *s)
{
    const struct shape *x = &l->in_shape;

    if (!needs_flat(l))
        return s->in;
    for (size_t n = 0; n < (size_t)s->count; n++)
        dense_flatten(shape_pixels(x), (size_t)x->channels, (size_t)x->block, s->in + n * shape_size(x),
                      l->flat + n * shape_size(x));
    return l->flat;
}

static void layer_dense_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    dense_forward(s->count, (int)shape_size(&l->in_shape), l->out_shape.channels, flatten(l, s),
                  r->parameters + l->parameter[0], s->out);
}

static void layer_dense_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct shape *x = &l->in_shape;
    const int inputs = (int)shape_size(x), outputs = l->out_shape.channels;
    const real *w = r->parameters + l->parameter[0];

    /* l->flat still holds this batch's input. */
    dense_backward_weights(s->count, inputs, outputs, needs_flat(l) ? l->flat : s->in, s->gradient_out,
                           r->exchange + l->parameter[0]);
    if (!s->gradient_in)
        return;
    if (!needs_flat(l)) {
        dense_backward_data(s->count, inputs, outputs, s->gradient_out, w, s->gradient_in);
        return;
    }
    dense_backward_data(s->count, inputs, outputs, s->gradient_out, w, l->flat);
    for (size_t n = 0; n < (size_t)s->count; n++)
        dense_unflatten(shape_pixels(x), (size_t)x->channels, (size_t)x->block, l->flat + n * shape_size(x),
                        s->gradient_in + n * shape_size(x));
}

static void cross_entropy_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const int classes = l->in_shape.channels;

    for (int n = 0; n < s->count; n++) {
        const int32_t label = r->batch->labels[r->first_sample + s->first + n];
        const real *logits = s->in + (size_t)n * (size_t)classes;

        r->result->cross_entropy += softmax_cross_entropy(classes, logits, label, NULL);
        r->result->correct += softmax_correct(classes, logits, label, r->ties_are_correct);
    }
}

static void cross_entropy_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const int classes = l->in_shape.channels;

    for (int n = 0; n < s->count; n++)
        softmax_cross_entropy(classes, s->in + (size_t)n * (size_t)classes,
                              r->batch->labels[r->first_sample + s->first + n],
                              s->gradient_in + (size_t)n * (size_t)classes);
}

const struct layer_kind layer_dense = {
    .name = "dense", .flags = LAYER_KEEPS_IN, .make = layer_dense_make, .release = layer_dense_release,
    .forward = layer_dense_forward, .backward = layer_dense_backward,
};
const struct layer_kind layer_cross_entropy = {
    .name = "cross entropy", .flags = LAYER_KEEPS_IN | LAYER_SCORES, .forward = cross_entropy_forward,
    .backward = cross_entropy_backward,
};
