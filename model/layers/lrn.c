/* Local response normalisation. */
#include "model/network_internal.h"

#include "model/kernels/lrn.h"
#include "model/layers/layers.h"

static void layer_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const size_t size = shape_size(&l->in_shape);

    (void)r;
    for (size_t n = 0; n < (size_t)s->count; n++)
        lrn_forward(l->state, s->in + n * size, s->out + n * size);
}

static void layer_backward(struct layer *l, const struct run *r, const struct slice *s)
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
    .forward = layer_forward,
    .backward = layer_backward,
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
    network_builder_note(
        b, "",
        &(struct network_call){ .kind = &layer_call_lrn,
                                .inputs = { in },
                                .input_count = 1,
                                .out = l->out,
                                .arguments = { { { radius } }, { { bias } }, { { alpha } }, { { beta } } } });
    return l->out;
}

static int build_lrn(struct network_builder *b, const int *in, int in_count, const char *name, const struct argument *a)
{
    (void)in_count, (void)name;
    return network_builder_lrn(b, in[0], (int)a[0].v[0], a[1].v[0], a[2].v[0], a[3].v[0]);
}

const struct layer_call layer_call_lrn = {
    .name = "lrn",
    .help = "local response normalization over neighboring channels",
    .inputs_least = 1,
    .inputs_most = 1,
    .parameters = {
        { "radius", PARAMETER_INTEGER, NULL, 0, 65536, "5", "channels on each side" },
        { "bias", PARAMETER_REAL, NULL, 1e-6, 1e6, "1", "added to the sum of squares" },
        { "alpha", PARAMETER_REAL, NULL, 0, 1e6, "1", "factor of the sum of squares" },
        { "beta", PARAMETER_REAL, NULL, 0, 10, "0.5", "power by which is divided" },
    },
    .build = build_lrn,
};
