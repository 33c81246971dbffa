/* Changes the layout of values: from blocks of channels to NHWC. */
#include "model/network_internal.h"

#include "model/kernels/channels.h"

static void reblock_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct shape *x = &l->in_shape;

    (void)r;
    for (size_t n = 0; n < (size_t)s->count; n++)
        channels_copy(shape_pixels(x), (size_t)x->channels, s->in + n * shape_size(x), (size_t)x->block, 0,
                      s->out + n * shape_size(x), (size_t)x->channels, 0);
}

static void reblock_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct shape *x = &l->in_shape;

    (void)r;
    if (!s->gradient_in)
        return;
    for (size_t n = 0; n < (size_t)s->count; n++)
        channels_copy(shape_pixels(x), (size_t)x->channels, s->gradient_out + n * shape_size(x), (size_t)x->channels, 0,
                      s->gradient_in + n * shape_size(x), (size_t)x->block, 0);
}

static const struct layer_kind layer_reblock = {
    .name = "reblock",
    .forward = reblock_forward,
    .backward = reblock_backward,
};

int network_builder_reblock(struct network_builder *b, int in)
{
    struct shape out = network_builder_shape(b, in);
    struct layer *l;

    out.block = out.channels;
    l = network_builder_layer(b, &layer_reblock, in, out, 0);
    return l ? l->out : VALUE_NONE;
}
