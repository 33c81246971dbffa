/* Softmax cross entropy of logits and labels: the last layer of a classifier. */
#include "model/network_internal.h"

#include "model/kernels/softmax.h"

static void cross_entropy_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const int classes = l->in_shape.channels;

    for (int n = 0; n < s->count; n++) {
        const int32_t label = r->batch->labels[r->first_sample + s->first + n];
        const real *logits = s->in + (size_t)n * (size_t)classes;

        r->result->cross_entropy += softmax_cross_entropy(classes, logits, label, NULL);
        r->result->correct += softmax_correct(classes, logits, label, r->ties_are_correct);
    }
}

static void cross_entropy_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const int classes = l->in_shape.channels;

    for (int n = 0; n < s->count; n++)
        softmax_cross_entropy(classes, s->in + (size_t)n * (size_t)classes,
                              r->batch->labels[r->first_sample + s->first + n],
                              s->gradient_in + (size_t)n * (size_t)classes);
}

static const struct layer_kind layer_cross_entropy = {
    .name = "cross entropy", .flags = LAYER_KEEPS_IN | LAYER_SCORES, .forward = cross_entropy_forward,
    .backward = cross_entropy_backward,
};

void network_builder_cross_entropy(struct network_builder *b, int logits)
{
    const struct shape x = network_builder_shape(b, logits);
    struct layer *l;

    if (!b->error.code && (shape_pixels(&x) != 1 || x.channels != b->model->classes)) {
        network_builder_refuse(b, layer_cross_entropy.name, "its input is not one logit a class");
        return;
    }
    if (!(l = network_builder_layer(b, &layer_cross_entropy, logits, x, 0)))
        return;
    l->whole = 1;
    l->out = VALUE_NONE;
    b->plan.value_count--;
    b->plan.logits = logits;
}
