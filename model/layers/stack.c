/* Stacks several values: their rows, such as the steps of sequences, one value below the other. */
#include "model/network_internal.h"

#include "model/layers/layers.h"

#include <string.h>

static void stack_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const size_t whole = shape_size(&l->out_shape);
    size_t first = 0;

    (void)r;
    for (int k = 0; k < l->input_count; k++) {
        const size_t size = shape_size(&l->in_shapes[k]);

        for (size_t n = 0; n < (size_t)s->count; n++)
            memcpy(s->out + n * whole + first, s->ins[k] + n * size, size * sizeof *s->out);
        first += size;
    }
}

static void stack_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const size_t whole = shape_size(&l->out_shape);
    size_t first = 0;

    (void)r;
    for (int k = 0; k < l->input_count; k++) {
        const size_t size = shape_size(&l->in_shapes[k]);

        for (size_t n = 0; s->gradients_in[k] && n < (size_t)s->count; n++)
            memcpy(s->gradients_in[k] + n * size, s->gradient_out + n * whole + first, size * sizeof *s->out);
        first += size;
    }
}

static const struct layer_kind layer_stack = {
    .name = "stack",
    .flags = LAYER_MAKES_ROWS,
    .forward = stack_forward,
    .backward = stack_backward,
};

int network_builder_stack(struct network_builder *b, const int *inputs, int count)
{
    struct shape y = { 0 };
    struct layer *l;
    int in[LAYER_INPUTS_MAX];

    if (count < 1 || count > LAYER_INPUTS_MAX)
        return network_builder_refuse(b, layer_stack.name, "it has no inputs, or too many");
    for (int k = 0; k < count; k++) {
        const struct shape x = network_builder_shape(b, inputs[k]);

        if (k > 0 && (x.width != y.width || x.channels != y.channels))
            return network_builder_refuse(b, layer_stack.name, "its inputs differ in width or channels");
        in[k] = x.block == x.channels ? inputs[k] : network_builder_reblock(b, inputs[k]);
        y = (struct shape){ y.height + x.height, x.width, x.channels, x.channels };
    }
    if (!(l = network_builder_layer_of(b, &layer_stack, in, count, y, 0)))
        return VALUE_NONE;
    struct network_call call = { .kind = &layer_call_stack, .input_count = count, .out = l->out };
    memcpy(call.inputs, inputs, (size_t)count * sizeof *inputs);
    network_builder_note(b, "", &call);
    return l->out;
}

static int build_stack(struct network_builder *b, const int *in, int in_count, const char *name,
                       const struct argument *a)
{
    (void)name, (void)a;
    return network_builder_stack(b, in, in_count);
}

const struct layer_call layer_call_stack = {
    .name = "stack",
    .help = "the rows of several values, such as the steps of sequences, one value below the other",
    .inputs_least = 1,
    .inputs_most = CALL_INPUTS_MAX,
    .build = build_stack,
};
