/*
 * The long short-term memory of TensorFlow's LSTMCell over the rows of an image, from the first to the last; it gives
 * h of the last one, of all, or of all but the first. Source: specification of the seed models, sections 4 and 8. For
 * B images of T rows of I values and U units, with c and h 0 at first:
 *   [i j f o] = [x_t, h] kernel + bias          kernel (I + U, 4 U), bias (4 U)
 *   c = sigmoid(f + forget) c + sigmoid(i) tanh(j);   h = sigmoid(o) tanh(c)
 * All images of a batch at once. What x gives the gates is one product for all steps, unless as many small ones take no
 * longer; so are the gradients of x and of the kernel. The products with h and its gradient go step by step.
 */
#include "model/network_internal.h"

#include "model/kernels/activation.h"
#include "model/kernels/channels.h"
#include "model/kernels/lstm_cell.h"
#include "model/kernels/product.h"
#include "model/layers/layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lstm {
    size_t kernel, bias; /* places */
    size_t steps, inputs, units;
    size_t together; /* steps whose products with x are one; 1: they are in the cache when the cells read them */
    enum lstm_gives gives;
    double forget;
    int bfloat16;
    struct product *of_x, *of_h; /* with their rows of the kernel: of all steps; of one */
    struct product *of_every_h;  /* of all steps but the first, for the gradient of the kernel alone; may be of_h */
    real *memory;
    real *flat;       /* (B, T, I) of an input in another layout */
    real *x;          /* (T, B, I); once its gradient is wanted, that */
    real *h;          /* (T, B, U) before each step */
    real *gates;      /* (T, B, 4 U) i, j, f, o after their functions; then their gradients before these */
    real *recurrent;  /* (B, 4 U) what h gives the gates of one step */
    real *cells;      /* (T + 1, B, U) c before each step, and after the last */
    real *bent;       /* (T, B, U) tanh(c) after each step */
    real *gradient_h; /* (B, U) of one step */
    real *gradient_c;
    double *sums; /* (4 U) of the bias */
};

static int lstm_make(struct layer *l, int slice, int batch, struct error *e)
{
    struct lstm *own = l->state;
    const size_t b = (size_t)batch, t = own->steps, i = own->inputs, u = own->units;
    const size_t sizes[] = { b * t * i,       t * b * i, t * b * u, t * b * 4 * u, b * 4 * u,
                             (t + 1) * b * u, t * b * u, b * u,     b * u };
    real **const arrays[] = { &own->flat,  &own->x,    &own->h,          &own->gates,     &own->recurrent,
                              &own->cells, &own->bent, &own->gradient_h, &own->gradient_c };
    size_t total = 0;
    int rc;

    (void)slice;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        total += sizes[k];
    own->sums = calloc(4 * u, sizeof *own->sums);
    if (!(own->memory = reals_new(total)) || !own->sums)
        return error_memory(e, NULL, "for %zu steps of %zu units", t, u);
    total = 0;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        *arrays[k] = own->memory + total;
        total += sizes[k];
    }
    if ((rc = product_new(&own->of_x, (int)(t * b), (int)t, (int)i, (int)(4 * u), own->bfloat16, e)) < 0 ||
        (rc = product_new(&own->of_h, batch, (int)t, (int)u, (int)(4 * u), own->bfloat16, e)) < 0)
        return rc;
    own->together = product_takes_any_rows(own->of_x) ? 1 : t;
    own->of_every_h = own->of_h;
    if (product_takes_any_rows(own->of_h))
        return OK;
    return product_new(&own->of_every_h, (int)(t * b), 1, (int)u, (int)(4 * u), own->bfloat16, e);
}

static void lstm_release(struct layer *l)
{
    struct lstm *own = l->state;

    product_free(own->of_x);
    if (own->of_every_h != own->of_h)
        product_free(own->of_every_h);
    product_free(own->of_h);
    free(own->memory);
    free(own->sums);
}

static void lstm_forward_begin(struct layer *l, const struct run *r)
{
    const struct lstm *own = l->state;

    product_prepare(own->of_x, r->parameters + own->kernel);
    product_prepare(own->of_h, r->parameters + own->kernel + own->inputs * 4 * own->units);
}

/* 1: the layout is not (pixels, channels) yet. */
static int needs_flat(const struct layer *l)
{
    return shape_planes(&l->in_shape) > 1 && shape_pixels(&l->in_shape) > 1;
}

/* Puts the input of all steps where they read it. */
static void take_input(const struct layer *l, const struct slice *s)
{
    const struct lstm *own = l->state;
    const struct shape *x = &l->in_shape;
    const size_t size = shape_size(x), b = (size_t)s->count, width = own->inputs;
    const real *from = s->in;

    if (needs_flat(l)) {
        for (size_t n = 0; n < b; n++)
            channels_copy(shape_pixels(x), (size_t)x->channels, s->in + n * size, (size_t)x->block, 0,
                          own->flat + n * size, (size_t)x->channels, 0);
        from = own->flat;
    }
    for (size_t t = 0; t < own->steps; t++)
        for (size_t n = 0; n < b; n++)
            memcpy(own->x + (t * b + n) * width, from + n * size + t * width, width * sizeof *from);
}

/* The first step that gives something. */
static size_t first_given(const struct lstm *own)
{
    return own->gives == LSTM_GIVES_LAST ? own->steps - 1 : own->gives == LSTM_GIVES_LATER;
}

/* Where what step t of image n gives is in the output. */
static size_t place_in_output(const struct lstm *own, size_t t, size_t n)
{
    return (n * (own->steps - first_given(own)) + t - first_given(own)) * own->units;
}

/* Where h of a step is read: by the next step, or as the output. */
static real *place_of_h(const struct lstm *own, const struct slice *s, size_t t, size_t n)
{
    if (t + 1 < own->steps)
        return own->h + ((t + 1) * (size_t)s->count + n) * own->units;
    return s->out + place_in_output(own, t, n);
}

/* What the steps before the last give, for which the next step has read it. */
static void give_every_step(const struct lstm *own, const struct slice *s)
{
    for (size_t t = first_given(own); t + 1 < own->steps; t++)
        for (size_t n = 0; n < (size_t)s->count; n++)
            memcpy(s->out + place_in_output(own, t, n), place_of_h(own, s, t, n), own->units * sizeof *s->out);
}

static void lstm_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct lstm *own = l->state;
    const size_t b = (size_t)s->count, u = own->units;

    take_input(l, s);
    memset(own->cells, 0, b * u * sizeof *own->cells);
    memset(own->h, 0, b * u * sizeof *own->h);
    for (size_t t = 0; t < own->steps; t++) {
        if (t % own->together == 0)
            product_forward(own->of_x, (int)(own->together * b), own->x + t * b * own->inputs,
                            own->gates + t * b * 4 * u);
        if (t)
            product_forward(own->of_h, s->count, own->h + t * b * u, own->recurrent);
        for (size_t n = 0; n < b; n++) {
            const size_t row = t * b + n;
            lstm_cell(u, own->forget, r->parameters + own->bias, t ? own->recurrent + n * 4 * u : NULL,
                      own->gates + row * 4 * u, own->cells + row * u, own->cells + (row + b) * u, own->bent + row * u,
                      place_of_h(own, s, t, n));
        }
    }
    give_every_step(own, s);
}

/* The gradient of what step t gives: what came back from the next step, and of the output. */
static const real *gradient_of_h(const struct lstm *own, const struct slice *s, size_t t, size_t n)
{
    const int given = t >= first_given(own);
    const real *out = given ? s->gradient_out + place_in_output(own, t, n) : NULL;
    real *h = own->gradient_h + n * own->units;

    if (t + 1 == own->steps)
        return out;
    for (size_t k = 0; given && k < own->units; k++)
        h[k] += out[k];
    return h;
}

/* The gradient of the input goes to where it came from. */
static void give_gradient(const struct layer *l, const struct slice *s)
{
    const struct lstm *own = l->state;
    const struct shape *x = &l->in_shape;
    const size_t size = shape_size(x), b = (size_t)s->count, width = own->inputs;
    real *to = needs_flat(l) ? own->flat : s->gradient_in;

    for (size_t t = 0; t < own->steps; t++)
        for (size_t n = 0; n < b; n++)
            memcpy(to + n * size + t * width, own->x + (t * b + n) * width, width * sizeof *to);
    for (size_t n = 0; needs_flat(l) && n < b; n++)
        channels_copy(shape_pixels(x), (size_t)x->channels, own->flat + n * size, (size_t)x->channels, 0,
                      s->gradient_in + n * size, (size_t)x->block, 0);
}

static void lstm_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct lstm *own = l->state;
    const size_t b = (size_t)s->count, u = own->units, rows = own->steps * b;
    real *kernel = r->exchange + own->kernel;

    memset(own->gradient_c, 0, b * u * sizeof *own->gradient_c);
    memset(own->sums, 0, 4 * u * sizeof *own->sums);
    for (size_t t = own->steps; t-- > 0;) {
        for (size_t n = 0; n < b; n++)
            lstm_cell_gradient(u, own->gates + (t * b + n) * 4 * u, own->cells + (t * b + n) * u,
                               own->bent + (t * b + n) * u, gradient_of_h(own, s, t, n), own->gradient_c + n * u);
        activation_bias_backward(b, 4 * u, 0, NULL, own->gates + t * b * 4 * u, own->sums);
        if (t) /* h is 0 before the first step */
            product_backward(own->of_h, s->count, NULL, own->gates + t * b * 4 * u, NULL, own->gradient_h);
    }
    for (size_t k = 0; k < 4 * u; k++)
        r->exchange[own->bias + k] = (real)own->sums[k];
    if (own->steps > 1)
        product_backward(own->of_every_h, (int)(rows - b), own->h + b * u, own->gates + b * 4 * u,
                         kernel + own->inputs * 4 * u, NULL);
    product_backward(own->of_x, (int)rows, own->x, own->gates, kernel, s->gradient_in ? own->x : NULL);
    if (s->gradient_in)
        give_gradient(l, s);
}

static const struct layer_kind layer_lstm = {
    .name = "lstm",
    .flags = LAYER_MAKES_ROWS,
    .make = lstm_make,
    .release = lstm_release,
    .forward_begin = lstm_forward_begin,
    .forward = lstm_forward,
    .backward = lstm_backward,
};

int network_builder_lstm(struct network_builder *b, int in, const char *scope, int units, enum lstm_gives gives,
                         double forget, const struct kernel_options *options)
{
    const struct shape x = network_builder_shape(b, in);
    const int steps = gives == LSTM_GIVES_LAST ? 1 : x.height - (gives == LSTM_GIVES_LATER);
    const struct shape out = { steps, 1, units, units };
    const int64_t shape[2] = { (int64_t)x.width * x.channels + units, 4 * (int64_t)units };
    char kernel[sizeof((struct variable *)0)->name];
    struct lstm *own;
    struct layer *l;

    if ((size_t)snprintf(kernel, sizeof kernel, "%s/kernel", scope) >= sizeof kernel)
        return network_builder_refuse(b, layer_lstm.name, "its name is too long");
    if (!(l = network_builder_layer(b, &layer_lstm, in, out, sizeof *own)))
        return VALUE_NONE;
    l->whole = 1;
    own = l->state;
    *own = (struct lstm){ .steps = (size_t)x.height,
                          .inputs = (size_t)x.width * (size_t)x.channels,
                          .units = (size_t)units,
                          .gives = gives,
                          .forget = forget,
                          .bfloat16 = network_builder_computes(b) == PRECISION_BFLOAT16 };
    own->kernel = l->low = network_builder_kernel(b, kernel, 2, shape, options);
    own->bias = network_builder_constant(b, scope, "bias", VARIABLE_WEIGHT, 4 * units, 0, "");
    network_builder_note(
        b, scope,
        &(struct network_call){ .kind = &layer_call_lstm,
                                .inputs = { in },
                                .input_count = 1,
                                .out = l->out,
                                .arguments = { { { units } },
                                               { { forget } },
                                               INITIAL_ARGUMENT(options),
                                               { { options->decay } },
                                               { { gives } } },
                                .multiplications = (double)x.height * (double)shape[0] * (double)shape[1] });
    return l->out;
}

static int build_lstm(struct network_builder *b, const int *in, int in_count, const char *name,
                      const struct argument *a)
{
    const struct kernel_options options = network_builder_kernel_options(&a[2], &a[3]);

    (void)in_count;
    return network_builder_lstm(b, in[0], name, (int)a[0].v[0], (enum lstm_gives)(int)a[4].v[0], a[1].v[0], &options);
}

const struct layer_call layer_call_lstm = {
    .name = "lstm",
    .help = "a long short-term memory that reads row by row; gives its last step, every one, or all but the first",
    .named = "scope",
    .inputs_least = 1,
    .inputs_most = 1,
    .parameters = {
        { "units", PARAMETER_INTEGER, NULL, 1, 16384, NULL, "channels of the result" },
        { "forget", PARAMETER_REAL, NULL, -1e3, 1e3, "1", "added to the forget gate" },
        { "initial", PARAMETER_INITIAL, NULL, 0, 1e6, "glorot", "how the kernel begins" },
        { "decay", PARAMETER_REAL, NULL, 0, 1e6, "0", "weight decay of the kernel" },
        { "gives", PARAMETER_WORD, "last|every|later", 0, 0, "last",
          "which steps: one pixel, one for each, or for each after the first" },
    },
    .build = build_lstm,
};
