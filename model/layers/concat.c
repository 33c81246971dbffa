/* Concatenates the channels of several values, from any layouts into the one that convolutions use. */
#include "model/network_internal.h"

#include "model/kernels/channels.h"
#include "model/layers/layers.h"

#include <string.h>

static void concat_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct shape *y = &l->out_shape;
    size_t first = 0;

    (void)r;
    for (int k = 0; k < l->input_count; k++) {
        const struct shape *x = &l->in_shapes[k];

        for (size_t n = 0; n < (size_t)s->count; n++)
            channels_copy(shape_pixels(y), (size_t)x->channels, s->ins[k] + n * shape_size(x), (size_t)x->block, 0,
                          s->out + n * shape_size(y), (size_t)y->block, first);
        first += (size_t)x->channels;
    }
}

static void concat_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct shape *y = &l->out_shape;
    size_t first = 0;

    (void)r;
    for (int k = 0; k < l->input_count; k++) {
        const struct shape *x = &l->in_shapes[k];

        for (size_t n = 0; s->gradients_in[k] && n < (size_t)s->count; n++)
            channels_copy(shape_pixels(y), (size_t)x->channels, s->gradient_out + n * shape_size(y), (size_t)y->block,
                          first, s->gradients_in[k] + n * shape_size(x), (size_t)x->block, 0);
        first += (size_t)x->channels;
    }
}

static const struct layer_kind layer_concat = {
    .name = "concat",
    .forward = concat_forward,
    .backward = concat_backward,
};

int network_builder_concat(struct network_builder *b, const int *inputs, int count)
{
    struct shape y = { 0 };
    struct layer *l;

    if (count < 1 || count > LAYER_INPUTS_MAX)
        return network_builder_refuse(b, layer_concat.name, "it has no inputs, or too many");
    for (int k = 0; k < count; k++) {
        const struct shape x = network_builder_shape(b, inputs[k]);

        if (k > 0 && (x.height != y.height || x.width != y.width))
            return network_builder_refuse(b, layer_concat.name, "its inputs differ in height or width");
        y = (struct shape){ x.height, x.width, y.channels + x.channels, y.channels + x.channels };
    }
    if (network_builder_block(b, y.channels))
        y.block = network_builder_block(b, y.channels);
    if (!(l = network_builder_layer_of(b, &layer_concat, inputs, count, y, 0)))
        return VALUE_NONE;
    struct network_call call = { .kind = &layer_call_concat, .input_count = count, .out = l->out };
    memcpy(call.inputs, inputs, (size_t)count * sizeof *inputs);
    network_builder_note(b, "", &call);
    return l->out;
}

static int build_concat(struct network_builder *b, const int *in, int in_count, const char *name,
                        const struct argument *a)
{
    (void)name, (void)a;
    return network_builder_concat(b, in, in_count);
}

const struct layer_call layer_call_concat = {
    .name = "concat",
    .help = "the channels of several values side by side",
    .inputs_least = 1,
    .inputs_most = CALL_INPUTS_MAX,
    .build = build_concat,
};
