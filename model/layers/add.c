/* The sum of two values, in the place of the first. */
#include "model/network_internal.h"

#include "model/kernels/activation.h"
#include "model/layers/layers.h"

#include <string.h>

static void add_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    (void)r;
    activation_add((size_t)s->count * shape_size(&l->in_shape), s->ins[1], s->out);
}

static void add_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    (void)r;
    if (s->gradients_in[1])
        memcpy(s->gradients_in[1], s->gradient_out,
               (size_t)s->count * shape_size(&l->in_shape) * sizeof *s->gradient_out);
}

static int add_finish(const struct layer *l, struct layer_finish *f)
{
    (void)l;
    *f = (struct layer_finish){ 0 };
    return 1;
}

static const struct layer_kind layer_add = {
    .name = "add",
    .flags = LAYER_IN_PLACE,
    .forward = add_forward,
    .backward = add_backward,
    .finish = add_finish,
};

static int touches_gradient(const struct network_plan *p, const struct layer *l, int root)
{
    for (int k = 0; k < l->input_count; k++)
        if (p->values[l->inputs[k].value].gradient == root)
            return 1;
    return l->out >= 0 && p->values[l->out].gradient == root;
}

/* First and last layer before the sum that touch the gradient memory of the value root. */
static void gradient_span(const struct network_plan *p, int root, int *first, int *last)
{
    *first = p->layer_count;
    *last = -1;
    for (int i = 0; i < p->layer_count - 1; i++)
        if (touches_gradient(p, &p->layers[i], root)) {
            *first = i < *first ? i : *first;
            *last = i;
        }
}

/* Both inputs' gradient is the sum's. They can share its memory if every layer that adds to other's gradient later in
 * the backward pass comes before the first layer that reads changed's. So the gradient along a residual network's
 * shortcuts is one array to which every unit adds. */
static void share_gradient(struct network_plan *p, int changed, int other)
{
    const int to = p->values[changed].gradient, from = p->values[other].gradient;
    int first, last, unused;

    if (other == VALUE_IMAGES || to == from)
        return;
    gradient_span(p, to, &first, &unused);
    gradient_span(p, from, &unused, &last);
    if (last >= first)
        return;
    for (int i = 0; i < p->value_count; i++)
        if (p->values[i].gradient == from)
            p->values[i].gradient = to;
}

int network_builder_add(struct network_builder *b, int changed, int other)
{
    const struct shape x = network_builder_shape(b, changed), y = network_builder_shape(b, other);
    struct layer *l;

    if (x.height != y.height || x.width != y.width || x.channels != y.channels || x.block != y.block)
        return network_builder_refuse(b, layer_add.name, "its inputs differ in shape or layout");
    if (changed == other)
        return network_builder_refuse(b, layer_add.name, "its inputs are one value");
    if (!(l = network_builder_layer_of(b, &layer_add, (const int[]){ changed, other }, 2, x, 0)))
        return VALUE_NONE;
    share_gradient(&b->plan, changed, other);
    network_builder_note(b, "",
                         &(struct network_call){
                             .kind = &layer_call_add, .inputs = { changed, other }, .input_count = 2, .out = l->out });
    return l->out;
}

static int build_add(struct network_builder *b, const int *in, int in_count, const char *name, const struct argument *a)
{
    (void)in_count, (void)name, (void)a;
    return network_builder_add(b, in[0], in[1]);
}

const struct layer_call layer_call_add = {
    .name = "add",
    .help = "adds another value of the same shape, in the place of the first",
    .inputs_least = 2,
    .inputs_most = 2,
    .build = build_add,
};
