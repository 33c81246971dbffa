/* Leaky ReLU, in place. */
#include "model/network_internal.h"

#include "model/kernels/activation.h"

struct leaky {
    double slope;
    enum leaky_rule rule;
};

static void leaky_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct leaky *own = l->state;

    (void)r;
    activation_leaky_forward((size_t)s->count * shape_size(&l->in_shape), s->out, (real)own->slope, s->out);
}

/* In place: the output has the sign of the input, since slope > 0. */
static void leaky_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct leaky *own = l->state;

    (void)r;
    activation_leaky_backward((size_t)s->count * shape_size(&l->in_shape), s->out, (real)own->slope, own->rule,
                              s->gradient_out);
}

static const struct layer_kind layer_leaky = {
    .name = "leaky ReLU",
    .flags = LAYER_IN_PLACE | LAYER_KEEPS_OUT | LAYER_KEEPS_SIGN,
    .forward = leaky_forward,
    .backward = leaky_backward,
};

int network_builder_leaky(struct network_builder *b, int in, double slope, enum leaky_gradient gradient)
{
    struct layer *l = network_builder_layer(b, &layer_leaky, in, network_builder_shape(b, in), sizeof(struct leaky));

    if (!l)
        return VALUE_NONE;
    if (!(slope > 0))
        return network_builder_refuse(b, l->kind->name, "its slope must be positive; for ReLU give it to the bias");
    l->reads_sign = 1;
    *(struct leaky *)l->state = (struct leaky){ slope, gradient == LEAKY_GRADIENT_SLOPE ? LEAKY_SLOPE_AT_ZERO
                                                                                        : LEAKY_ONE_AT_ZERO };
    return l->out;
}
