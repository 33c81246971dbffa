/*
 * The dense layer: all images of a batch at once, as matrix products. Row-major, no padding:
 *   x (rows, inputs)  w (inputs, outputs)  y, dy (rows, outputs)
 *   y = x w;  dx = dy w^T;  dw += x^T dy
 * A row is an image, or with `each` a pixel.
 */
#include "model/network_internal.h"

#include "model/kernels/channels.h"
#include "model/kernels/product.h"
#include "model/layers/layers.h"

#include <stdlib.h>

struct dense {
    size_t parameter;
    int inputs, rows_of_image; /* of the product */
    int bfloat16;
    struct product *product;
    real *flat; /* (batch, size) of an input in another layout */
};

/* Inputs whose layout is not the flat (pixels, channels) yet are copied to it. */
static int needs_flat(const struct layer *l)
{
    return shape_planes(&l->in_shape) > 1 && shape_pixels(&l->in_shape) > 1; /* of `each` no input has planes */
}

static int layer_dense_make(struct layer *l, int slice, int batch, struct error *e)
{
    struct dense *own = l->state;
    int rc;

    (void)slice;
    rc = product_new(&own->product, batch * own->rows_of_image, 1, own->inputs, l->out_shape.channels, own->bfloat16,
                     e);
    if (rc < 0 || !needs_flat(l))
        return rc;
    own->flat = malloc((size_t)batch * shape_size(&l->in_shape) * sizeof *own->flat);
    return own->flat ? OK : error_memory(e, NULL, "for the input of a dense layer");
}

static void layer_dense_release(struct layer *l)
{
    struct dense *own = l->state;

    product_free(own->product);
    free(own->flat);
}

static void layer_dense_forward_begin(struct layer *l, const struct run *r)
{
    struct dense *own = l->state;

    product_prepare(own->product, r->parameters + own->parameter);
}

static const real *flatten(const struct layer *l, const struct slice *s)
{
    const struct dense *own = l->state;
    const struct shape *x = &l->in_shape;

    if (!needs_flat(l))
        return s->in;
    for (size_t n = 0; n < (size_t)s->count; n++)
        channels_copy(shape_pixels(x), (size_t)x->channels, s->in + n * shape_size(x), (size_t)x->block, 0,
                      own->flat + n * shape_size(x), (size_t)x->channels, 0);
    return own->flat;
}

static void layer_dense_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct dense *own = l->state;

    (void)r;
    product_forward(own->product, s->count * own->rows_of_image, flatten(l, s), s->out);
}

static void layer_dense_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct dense *own = l->state;
    const struct shape *x = &l->in_shape;
    const int flat = needs_flat(l), rows = s->count * own->rows_of_image;
    real *dx = s->gradient_in && flat ? own->flat : s->gradient_in;

    /* own->flat still holds this batch's input; dx is made after it was read. */
    product_backward(own->product, rows, flat ? own->flat : s->in, s->gradient_out,
                     l->frozen ? NULL : r->exchange + own->parameter, dx);
    for (size_t n = 0; dx && flat && n < (size_t)s->count; n++)
        channels_copy(shape_pixels(x), (size_t)x->channels, own->flat + n * shape_size(x), (size_t)x->channels, 0,
                      s->gradient_in + n * shape_size(x), (size_t)x->block, 0);
}

static const struct layer_kind layer_dense = {
    .name = "dense",
    .flags = LAYER_KEEPS_IN | LAYER_MAKES_ROWS,
    .make = layer_dense_make,
    .release = layer_dense_release,
    .forward_begin = layer_dense_forward_begin,
    .forward = layer_dense_forward,
    .backward = layer_dense_backward,
};

static int add_dense(struct network_builder *b, int in, const char *name, int each, int outputs,
                     const struct kernel_options *options)
{
    const struct shape x = network_builder_shape(b, in);
    const struct shape out = { each ? x.height : 1, each ? x.width : 1, outputs, outputs };
    const int64_t shape[2] = { each ? x.channels : (int64_t)shape_size(&x), outputs };
    struct layer *l = network_builder_layer(b, &layer_dense, in, out, sizeof(struct dense));
    struct dense *own;

    if (!l)
        return VALUE_NONE;
    l->whole = 1;
    own = l->state;
    own->inputs = (int)shape[0];
    own->bfloat16 = network_builder_computes(b) == PRECISION_BFLOAT16;
    own->rows_of_image = each ? (int)shape_pixels(&x) : 1;
    own->parameter = l->low = network_builder_kernel(b, name, 2, shape, options);
    if (!b->error.code && !each && network_builder_is_image(b, in))
        b->variables[b->variable_count - 1].pixels = (int)shape_pixels(&x);
    network_builder_note(
        b, name,
        &(struct network_call){
            .kind = &layer_call_dense,
            .inputs = { in },
            .input_count = 1,
            .out = l->out,
            .arguments = { { { outputs } }, INITIAL_ARGUMENT(options), { { options->decay } }, { { each } } },
            .multiplications = (double)shape_size(&x) * outputs,
        });
    return l->out;
}

int network_builder_dense(struct network_builder *b, int in, const char *name, int outputs,
                          const struct kernel_options *options)
{
    return add_dense(b, in, name, 0, outputs, options);
}

int network_builder_dense_each(struct network_builder *b, int in, const char *name, int outputs,
                               const struct kernel_options *options)
{
    const struct shape x = network_builder_shape(b, in);

    if (x.block != x.channels)
        in = network_builder_reblock(b, in);
    return add_dense(b, in, name, 1, outputs, options);
}

static int build_dense(struct network_builder *b, const int *in, int in_count, const char *name,
                       const struct argument *a)
{
    const struct kernel_options options = network_builder_kernel_options(&a[1], &a[2]);

    (void)in_count;
    return a[3].v[0] != 0 ? network_builder_dense_each(b, in[0], name, (int)a[0].v[0], &options)
                          : network_builder_dense(b, in[0], name, (int)a[0].v[0], &options);
}

const struct layer_call layer_call_dense = {
    .name = "dense",
    .help = "all of the input, or each pixel, times a kernel, without bias",
    .named = "kernel",
    .inputs_least = 1,
    .inputs_most = 1,
    .parameters = {
        { "outputs", PARAMETER_INTEGER, NULL, 1, 1 << 20, NULL, "channels of the result" },
        { "initial", PARAMETER_INITIAL, NULL, 0, 1e6, "glorot", "how the kernel begins" },
        { "decay", PARAMETER_REAL, NULL, 0, 1e6, "0", "weight decay of the kernel" },
        { "each", PARAMETER_FLAG, NULL, 0, 0, "no", "each pixel, such as a step of a sequence, by itself" },
    },
    .build = build_dense,
};
