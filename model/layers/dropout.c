/* Dropout, in place; in training only. */
#include "model/network_internal.h"

#include "base/random.h"
#include "model/layers/layers.h"

/* A sample has 2^24 blocks of four random numbers (base/random.h): 2^DROPOUT_BLOCKS for each dropout. */
enum { DROPOUT_BLOCKS = 18, DROPOUTS_MAX = 1 << (24 - DROPOUT_BLOCKS), DROPOUT_SIZE_MAX = 4 << DROPOUT_BLOCKS };

struct dropout {
    double keep;
    int number; /* index among the network's dropouts */
};

/* x / keep or 0, drawn from (seed, step, sample): the backward pass draws the same again. */
static void drop(const struct layer *l, const struct run *r, const struct slice *s, real *x)
{
    const struct dropout *own = l->state;
    const size_t size = shape_size(&l->in_shape);
    const uint32_t below = (uint32_t)(own->keep * 4294967296.0);

    for (size_t n = 0; n < (size_t)s->count; n++) {
        const int64_t place = r->first_sample + s->first + (int64_t)n;
        struct random random;

        random_init(&random, r->seed, RANDOM_DROPOUT, (uint64_t)r->batch->step,
                    (uint64_t)(r->batch->samples ? r->batch->samples[place] : place));
        random.draw = (uint32_t)own->number << DROPOUT_BLOCKS; /* dropouts of one network draw different numbers */
        for (size_t i = 0; i < size; i++)
            x[n * size + i] = random_u32(&random) < below ? x[n * size + i] / (real)own->keep : 0;
    }
}

static void dropout_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    drop(l, r, s, s->out);
}

static void dropout_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    drop(l, r, s, s->gradient_out);
}

static const struct layer_kind layer_dropout = {
    .name = "dropout",
    .flags = LAYER_IN_PLACE | LAYER_TRAINING_ONLY | LAYER_KEEPS_SIGN,
    .forward = dropout_forward,
    .backward = dropout_backward,
};

int network_builder_dropout(struct network_builder *b, int in, double keep)
{
    const struct shape x = network_builder_shape(b, in);
    struct layer *l;

    if (b->plan.dropouts == DROPOUTS_MAX || shape_size(&x) > DROPOUT_SIZE_MAX)
        return network_builder_refuse(b, layer_dropout.name, "there are too many, or it is too large");
    if (!(keep > 0 && keep <= 1))
        return network_builder_refuse(b, layer_dropout.name, "what it keeps must be in (0, 1]");
    if (!(l = network_builder_layer(b, &layer_dropout, in, x, sizeof(struct dropout))))
        return VALUE_NONE;
    *(struct dropout *)l->state = (struct dropout){ keep, b->plan.dropouts++ };
    network_builder_note(b, "",
                         &(struct network_call){ .kind = &layer_call_dropout,
                                                 .inputs = { in },
                                                 .input_count = 1,
                                                 .out = l->out,
                                                 .arguments = { { { keep } } } });
    return l->out;
}

static int build_dropout(struct network_builder *b, const int *in, int in_count, const char *name,
                         const struct argument *a)
{
    (void)in_count, (void)name;
    return network_builder_dropout(b, in[0], a[0].v[0]);
}

const struct layer_call layer_call_dropout = {
    .name = "dropout",
    .help = "in training, keeps part of the values and makes the others 0; in place",
    .inputs_least = 1,
    .inputs_most = 1,
    .parameters = { { "keep", PARAMETER_REAL, NULL, 1e-6, 1, "0.5", "the share that is kept" } },
    .build = build_dropout,
};
