/* Softmax cross entropy of logits and labels, of which a sample may have several: the last layer of a classifier. */
#include "model/network_internal.h"

#include "model/layers/layers.h"
#include "model/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cross_entropy {
    double *softmax; /* (classes) of the current row */
};

static int cross_entropy_make(struct layer *l, int slice, int batch, struct error *e)
{
    struct cross_entropy *x = l->state;

    (void)slice, (void)batch;
    x->softmax = malloc((size_t)l->in_shape.channels * sizeof *x->softmax);
    return x->softmax ? OK : error_memory(e, NULL, "for %d classes", l->in_shape.channels);
}

static void cross_entropy_release(struct layer *l)
{
    free(((struct cross_entropy *)l->state)->softmax);
}

static size_t rows_of(const struct layer *l, const struct slice *s)
{
    return (size_t)s->count * shape_pixels(&l->in_shape);
}

/* The label of row n of the slice, and its weight; 0: padding, whose label may be anything. */
static int32_t label_of(const struct layer *l, const struct run *r, const struct slice *s, size_t n, real *weight)
{
    const size_t place = ((size_t)r->first_sample + (size_t)s->first) * shape_pixels(&l->in_shape) + n;

    *weight = r->weights ? (real)r->weights[place] : 1;
    return (int32_t)field_integer(&r->batch->fields[FIELD_LABELS], place);
}

static void cross_entropy_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const int classes = l->in_shape.channels;
    real weight;

    for (size_t n = 0; n < rows_of(l, s); n++) {
        const int32_t label = label_of(l, r, s, n, &weight);
        const real *logits = s->in + n * (size_t)classes;

        if (weight == 0)
            continue;
        r->score->loss += (double)weight * task_cross_entropy(classes, logits, label, NULL);
        r->score->weight += (double)weight;
        r->score->hits += task_correct(classes, logits, label, r->ties_are_correct);
        r->score->units++;
    }
}

static void cross_entropy_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const int classes = l->in_shape.channels;
    double *softmax = ((struct cross_entropy *)l->state)->softmax;
    real weight;

    for (size_t n = 0; n < rows_of(l, s); n++) {
        const int32_t label = label_of(l, r, s, n, &weight);
        real *gradient = s->gradient_in + n * (size_t)classes;

        memset(gradient, 0, (size_t)classes * sizeof *gradient);
        if (weight == 0)
            continue;
        task_cross_entropy(classes, s->in + n * (size_t)classes, label, softmax);
        for (int c = 0; c < classes; c++)
            gradient[c] = (real)(softmax[c] - (c == label)) * weight;
    }
}

static const struct layer_kind layer_cross_entropy = {
    .name = "cross entropy",
    .flags = LAYER_KEEPS_IN | LAYER_SCORES,
    .make = cross_entropy_make,
    .release = cross_entropy_release,
    .forward = cross_entropy_forward,
    .backward = cross_entropy_backward,
};

void network_builder_cross_entropy(struct network_builder *b, int logits)
{
    struct shape x = network_builder_shape(b, logits);
    struct layer *l;

    if (!b->error.code && (shape_pixels(&x) != (size_t)model_labels(b->model) || x.channels != b->model->classes)) {
        const int labels = model_labels(b->model);
        char why[120];

        snprintf(why, sizeof why, "its input is not one logit a class for each label (%d label%s, %d classes)", labels,
                 labels == 1 ? "" : "s", b->model->classes);
        network_builder_refuse(b, layer_cross_entropy.name, why);
        return;
    }
    if (x.block != x.channels && shape_pixels(&x) > 1) {
        logits = network_builder_reblock(b, logits);
        x = network_builder_shape(b, logits);
    }
    if (!(l = network_builder_layer(b, &layer_cross_entropy, logits, x, sizeof(struct cross_entropy))))
        return;
    l->whole = 1;
    l->out = VALUE_NONE;
    b->plan.value_count--;
    b->plan.logits = logits;
    network_builder_note(
        b, "",
        &(struct network_call){
            .kind = &layer_call_cross_entropy, .inputs = { logits }, .input_count = 1, .out = VALUE_NONE });
}

static int build_cross_entropy(struct network_builder *b, const int *in, int in_count, const char *name,
                               const struct argument *a)
{
    (void)in_count, (void)name, (void)a;
    network_builder_cross_entropy(b, in[0]);
    return VALUE_NONE;
}

const struct layer_call layer_call_cross_entropy = {
    .name = "cross_entropy",
    .help = "softmax cross entropy of one logit a class; the last layer",
    .inputs_least = 1,
    .inputs_most = 1,
    .build = build_cross_entropy,
};
