/* Pooling, local response normalisation, channels of zeros, another layout: layers that see one image at a time. */
#include "model/kernels/dense.h"
#include "model/layer.h"

#include <stdlib.h>
#include <string.h>

static int make_winners(struct layer *l, int slice, int batch, struct error *e)
{
    (void)slice;
    l->winner = malloc((size_t)batch * shape_size(&l->out_shape));
    return l->winner ? OK : error_set(e, ERR_NOMEM, "no memory for the winners of a max pool");
}

static void release_winners(struct layer *l)
{
    free(l->winner);
}

static size_t in_plane(const struct layer *l)
{
    return shape_pixels(&l->in_shape) * (size_t)l->in_shape.block;
}

static size_t out_plane(const struct layer *l)
{
    return shape_pixels(&l->out_shape) * (size_t)l->out_shape.block;
}

static size_t slice_planes(const struct layer *l, const struct slice *s)
{
    return (size_t)s->count * shape_planes(&l->in_shape);
}

static uint8_t *slice_winners(const struct layer *l, const struct slice *s)
{
    return l->winner + (size_t)s->first * shape_size(&l->out_shape);
}

static void max_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    (void)r;
    for (size_t k = 0; k < slice_planes(l, s); k++)
        pool_max_forward(&l->pool, s->in + k * in_plane(l), s->out + k * out_plane(l),
                         slice_winners(l, s) + k * out_plane(l));
}

static void max_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    (void)r;
    if (!s->gradient_in)
        return;
    for (size_t k = 0; k < slice_planes(l, s); k++)
        pool_max_backward(&l->pool, s->gradient_out + k * out_plane(l), slice_winners(l, s) + k * out_plane(l),
                          s->gradient_in + k * in_plane(l));
}

static void average_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    (void)r;
    for (size_t k = 0; k < slice_planes(l, s); k++)
        pool_average_forward(&l->pool, s->in + k * in_plane(l), s->out + k * out_plane(l));
}

static void average_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    (void)r;
    if (!s->gradient_in)
        return;
    for (size_t k = 0; k < slice_planes(l, s); k++)
        pool_average_backward(&l->pool, s->gradient_out + k * out_plane(l), s->gradient_in + k * in_plane(l));
}

/* Where channel c of pixel 0 is in an image of that shape. */
static size_t channel_place(const struct shape *s, int c)
{
    return (size_t)(c / s->block) * shape_pixels(s) * (size_t)s->block + (size_t)(c % s->block);
}

/* Copies the narrow image's channels to or from the middle of the wide one's. */
static void copy_channels(const struct layer *l, const real *from, real *to, int to_wide)
{
    const struct shape *narrow = &l->in_shape, *wide = &l->out_shape;
    const int before = (wide->channels - narrow->channels) / 2;

    for (int c = 0; c < narrow->channels; c++) {
        const size_t n = channel_place(narrow, c), w = channel_place(wide, c + before);
        for (size_t p = 0; p < shape_pixels(narrow); p++)
            if (to_wide)
                to[w + p * (size_t)wide->block] = from[n + p * (size_t)narrow->block];
            else
                to[n + p * (size_t)narrow->block] = from[w + p * (size_t)wide->block];
    }
}

static void widen_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    (void)r;
    memset(s->out, 0, (size_t)s->count * shape_size(&l->out_shape) * sizeof *s->out);
    for (size_t n = 0; n < (size_t)s->count; n++)
        copy_channels(l, s->in + n * shape_size(&l->in_shape), s->out + n * shape_size(&l->out_shape), 1);
}

static void widen_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    (void)r;
    if (!s->gradient_in)
        return;
    for (size_t n = 0; n < (size_t)s->count; n++)
        copy_channels(l, s->gradient_out + n * shape_size(&l->out_shape),
                      s->gradient_in + n * shape_size(&l->in_shape), 0);
}

static void reblock_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct shape *x = &l->in_shape;

    (void)r;
    for (size_t n = 0; n < (size_t)s->count; n++)
        dense_flatten(shape_pixels(x), (size_t)x->channels, (size_t)x->block, s->in + n * shape_size(x),
                      s->out + n * shape_size(x));
}

static void reblock_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct shape *x = &l->in_shape;

    (void)r;
    if (!s->gradient_in)
        return;
    for (size_t n = 0; n < (size_t)s->count; n++)
        dense_unflatten(shape_pixels(x), (size_t)x->channels, (size_t)x->block, s->gradient_out + n * shape_size(x),
                        s->gradient_in + n * shape_size(x));
}

static void lrn_layer_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const size_t size = shape_size(&l->in_shape);

    (void)r;
    for (size_t n = 0; n < (size_t)s->count; n++)
        lrn_forward(&l->lrn, s->in + n * size, s->out + n * size);
}

static void lrn_layer_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const size_t size = shape_size(&l->in_shape);

    (void)r;
    if (!s->gradient_in)
        return;
    for (size_t n = 0; n < (size_t)s->count; n++)
        lrn_backward(&l->lrn, s->in + n * size, s->gradient_out + n * size, s->gradient_in + n * size);
}

const struct layer_kind layer_max_pool = {
    .name = "max pool", .make = make_winners, .release = release_winners, .forward = max_forward,
    .backward = max_backward,
};
const struct layer_kind layer_average_pool = {
    .name = "average pool", .forward = average_forward, .backward = average_backward,
};
const struct layer_kind layer_widen = {
    .name = "widen", .forward = widen_forward, .backward = widen_backward,
};
const struct layer_kind layer_reblock = {
    .name = "reblock", .forward = reblock_forward, .backward = reblock_backward,
};
const struct layer_kind layer_lrn = {
    .name = "local response norm", .flags = LAYER_KEEPS_IN, .forward = lrn_layer_forward,
    .backward = lrn_layer_backward,
};
