/* Channels of zeros around those there are. */
#include "model/network_internal.h"

#include "model/kernels/convolution.h"

#include <string.h>

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

static const struct layer_kind layer_widen = {
    .name = "widen", .forward = widen_forward, .backward = widen_backward,
};

int network_builder_widen(struct network_builder *b, int in, int channels)
{
    const struct shape x = network_builder_shape(b, in);
    struct shape y = x;
    struct layer *l;

    if (channels < x.channels)
        return network_builder_refuse(b, layer_widen.name, "it can only add channels");
    y.channels = channels;
    y.block = x.block == x.channels ? channels : x.block;
#if CONVOLUTION_ONEDNN
    if (convolution_onednn.block(x.channels, 0) == x.block)
        y.block = convolution_onednn.block(channels, 0);
#endif
    if (!y.block || channels % y.block)
        return network_builder_refuse(b, layer_widen.name, "the new number of channels does not fit the layout");
    l = network_builder_layer(b, &layer_widen, in, y, 0);
    return l ? l->out : VALUE_NONE;
}
