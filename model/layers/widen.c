/* Adds channels of zeros around the existing ones. */
#include "model/network_internal.h"

#include "model/kernels/channels.h"
#include "model/layers/layers.h"

#include <string.h>

static size_t zeros_before(const struct layer *l)
{
    return (size_t)(l->out_shape.channels - l->in_shape.channels) / 2;
}

static void widen_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct shape *x = &l->in_shape, *y = &l->out_shape;

    (void)r;
    memset(s->out, 0, (size_t)s->count * shape_size(y) * sizeof *s->out);
    for (size_t n = 0; n < (size_t)s->count; n++)
        channels_copy(shape_pixels(x), (size_t)x->channels, s->in + n * shape_size(x), (size_t)x->block, 0,
                      s->out + n * shape_size(y), (size_t)y->block, zeros_before(l));
}

static void widen_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct shape *x = &l->in_shape, *y = &l->out_shape;

    (void)r;
    if (!s->gradient_in)
        return;
    for (size_t n = 0; n < (size_t)s->count; n++)
        channels_copy(shape_pixels(x), (size_t)x->channels, s->gradient_out + n * shape_size(y), (size_t)y->block,
                      zeros_before(l), s->gradient_in + n * shape_size(x), (size_t)x->block, 0);
}

static const struct layer_kind layer_widen = {
    .name = "widen",
    .forward = widen_forward,
    .backward = widen_backward,
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
    if (network_builder_block(b, x.channels) == x.block)
        y.block = network_builder_block(b, channels);
    if (!y.block || channels % y.block)
        return network_builder_refuse(b, layer_widen.name, "the new number of channels does not fit the layout");
    if (!(l = network_builder_layer(b, &layer_widen, in, y, 0)))
        return VALUE_NONE;
    network_builder_note(b, "",
                         &(struct network_call){ .kind = &layer_call_widen,
                                                 .inputs = { in },
                                                 .input_count = 1,
                                                 .out = l->out,
                                                 .arguments = { { { channels } } } });
    return l->out;
}

static int build_widen(struct network_builder *b, const int *in, int in_count, const char *name,
                       const struct argument *a)
{
    (void)in_count, (void)name;
    return network_builder_widen(b, in[0], (int)a[0].v[0]);
}

const struct layer_call layer_call_widen = {
    .name = "widen",
    .help = "adds channels of zeros, half of them before",
    .inputs_least = 1,
    .inputs_most = 1,
    .parameters = { { "channels", PARAMETER_INTEGER, NULL, 1, 65536, NULL, "of the result" } },
    .build = build_widen,
};
