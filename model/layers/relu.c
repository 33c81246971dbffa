/* ReLU alone, in place; with a bias before it, network_builder_bias() does both at once. */
#include "model/network_internal.h"

#include "model/kernels/activation.h"
#include "model/layers/layers.h"

static void relu_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    (void)r;
    activation_relu_forward((size_t)s->count * shape_size(&l->in_shape), s->out);
}

static void relu_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    (void)r;
    activation_relu_backward((size_t)s->count * shape_size(&l->in_shape), s->out, s->gradient_out);
}

/* An activation before it that reads the sign finds 0 for what was negative; no gradient comes back there. */
static const struct layer_kind layer_relu = {
    .name = "ReLU",
    .flags = LAYER_IN_PLACE | LAYER_KEEPS_OUT | LAYER_KEEPS_SIGN,
    .forward = relu_forward,
    .backward = relu_backward,
};

int network_builder_relu(struct network_builder *b, int in)
{
    struct layer *l = network_builder_layer(b, &layer_relu, in, network_builder_shape(b, in), 0);

    if (!l)
        return VALUE_NONE;
    l->reads_sign = 1;
    network_builder_note(
        b, "", &(struct network_call){ .kind = &layer_call_relu, .inputs = { in }, .input_count = 1, .out = l->out });
    return l->out;
}

static int build_relu(struct network_builder *b, const int *in, int in_count, const char *name,
                      const struct argument *a)
{
    (void)in_count, (void)name, (void)a;
    return network_builder_relu(b, in[0]);
}

const struct layer_call layer_call_relu = {
    .name = "relu",
    .help = "ReLU alone; in place",
    .inputs_least = 1,
    .inputs_most = 1,
    .build = build_relu,
};
