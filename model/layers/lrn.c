/* Local response normalisation. */
#include "model/network_internal.h"

#include "model/kernels/lrn.h"

static void lrn_layer_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const size_t size = shape_size(&l->in_shape);

    (void)r;
    for (size_t n = 0; n < (size_t)s->count; n++)
        lrn_forward(l->state, s->in + n * size, s->out + n * size);
}

static void lrn_layer_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const size_t size = shape_size(&l->in_shape);

    (void)r;
    if (!s->gradient_in)
        return;
    for (size_t n = 0; n < (size_t)s->count; n++)
        lrn_backward(l->state, s->in + n * size, s->gradient_out + n * size, s->gradient_in + n * size);
}

static const struct layer_kind layer_lrn = {
    .name = "local response norm",
    .flags = LAYER_KEEPS_IN,
    .forward = lrn_layer_forward,
    .backward = lrn_layer_backward,
};

int network_builder_lrn(struct network_builder *b, int in, int radius, double bias, double alpha, double beta)
{
    const struct shape x = network_builder_shape(b, in);
    struct layer *l;

    if (x.channels > LRN_CHANNELS_MAX || radius < 0 || radius > LRN_RADIUS_MAX)
        return network_builder_refuse(b, layer_lrn.name, "it has too many channels, or too wide a window");
    if (!(l = network_builder_layer(b, &layer_lrn, in, x, sizeof(struct lrn_shape))))
        return VALUE_NONE;
    *(struct lrn_shape *)l->state = (struct lrn_shape){ .pixels = shape_pixels(&x),
                                                        .channels = (size_t)x.channels,
                                                        .block = (size_t)x.block,
                                                        .step = shape_pixels(&x) * (size_t)x.block,
                                                        .radius = radius,
                                                        .bias = (real)bias,
                                                        .alpha = (real)alpha,
                                                        .beta = (real)beta };
    return l->out;
}
