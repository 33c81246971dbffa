/* Leaky ReLU, in place. */
#include "model/network_internal.h"

#include "model/kernels/activation.h"
#include "model/layers/layers.h"

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
    network_builder_note(
        b, "",
        &(struct network_call){ .kind = &layer_call_leaky,
                                .inputs = { in },
                                .input_count = 1,
                                .out = l->out,
                                .arguments = { { { slope } }, { { gradient == LEAKY_GRADIENT_SLOPE } } } });
    return l->out;
}

static int build_leaky(struct network_builder *b, const int *in, int in_count, const char *name,
                       const struct argument *a)
{
    (void)in_count, (void)name;
    return network_builder_leaky(b, in[0], a[0].v[0], a[1].v[0] != 0 ? LEAKY_GRADIENT_SLOPE : LEAKY_GRADIENT_ONE);
}

const struct layer_call layer_call_leaky = {
    .name = "leaky",
    .help = "leaky ReLU: negative values times a slope; in place",
    .inputs_least = 1,
    .inputs_most = 1,
    .parameters = {
        { "slope", PARAMETER_REAL, NULL, 1e-6, 1, "0.2", "of negative values" },
        { "gradient", PARAMETER_WORD, "one|slope", 0, 0, "slope", "at 0: one, or slope as tf.nn.leaky_relu" },
    },
    .build = build_leaky,
};
