/* Convolution, by oneDNN or kernels of our own where these are fast, else by matrix products. */
#include "model/network_internal.h"

#include "model/kernels/convolution.h"
#include "model/kernels/convolution_winograd.h"
#include "model/layers/layers.h"

struct convolution_layer {
    size_t parameter;
    const struct convolution_backend *backend;
    struct convolution_shape shape;
    struct convolution *convolution;
    /* What computes gradients, and its plan; NULL: the same. In training what goes forward decides the signs of
     * activations, so there the sum itself is computed, with the least rounding; gradients, and what goes forward where
     * none are computed, may be rounded a little more. */
    const struct convolution_backend *gradient_backend;
    struct convolution *gradients;
    /* In inference: what a later layer would do with the result. */
    struct layer_finish finish;
    int finishes;
};

static int layer_convolution_make(struct layer *l, int slice, int batch, struct error *e)
{
    struct convolution_layer *own = l->state;
    int rc;

    (void)batch;
    own->shape.images = slice;
    own->shape.need_data_gradient = l->inputs[0].wanted;
    own->shape.forward_only = l->infers;
#if CONVOLUTION_WINOGRAD
    if (own->backend != &convolution_blas && convolution_winograd_pays(&own->shape)) {
        if (l->infers)
            own->backend = &convolution_winograd;
        else
            own->gradient_backend = &convolution_winograd;
    }
#endif
    if (own->gradient_backend) {
        if ((rc = own->gradient_backend->make(&own->gradients, &own->shape, e)) < 0)
            return rc;
        own->shape.need_data_gradient = 0;
        own->shape.forward_only = 1;
    }
    rc = own->backend->make(&own->convolution, &own->shape, e);
    if (rc != ERR_ARG || !own->shape.bfloat16)
        return rc;
    own->backend = &convolution_blas; /* oneDNN has no bfloat16 for this shape; the layout is OpenBLAS's, too */
    return own->backend->make(&own->convolution, &own->shape, e);
}

static void layer_convolution_release(struct layer *l)
{
    struct convolution_layer *own = l->state;

    if (own->convolution)
        own->backend->release(own->convolution);
    if (own->gradients)
        own->gradient_backend->release(own->gradients);
}

static void forward_begin(struct layer *l, const struct run *r)
{
    struct convolution_layer *own = l->state;
    const real *w = r->parameters + own->parameter;
    const int backward = r->training && !l->idle;

    own->backend->prepare(own->convolution, w, backward && !own->gradients);
    if (own->gradients && backward)
        own->gradient_backend->prepare(own->gradients, w, 1);
}

static void layer_convolution_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    struct convolution_layer *own = l->state;

    (void)r;
    if (!own->finishes) {
        own->backend->forward(own->convolution, s->count, s->in, s->out);
        return;
    }
    const struct convolution_finish finish = { own->finish.scale, own->finish.offset, own->finish.slope,
                                               own->finish.scale ? NULL : s->ins[l->input_count - 1] };

    own->backend->forward_and_finish(own->convolution, s->count, s->in, &finish, s->out);
}

static int take_finish(struct layer *l, const struct layer_finish *f)
{
    struct convolution_layer *own = l->state;

    if (!own->backend->forward_and_finish)
        return 0;
    own->finish = *f;
    own->finishes = 1;
    return 1;
}

static void layer_convolution_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    struct convolution_layer *own = l->state;
    const struct convolution_backend *backend = own->gradients ? own->gradient_backend : own->backend;
    struct convolution *c = own->gradients ? own->gradients : own->convolution;

    (void)r;
    if (!l->frozen)
        backend->backward_weights(c, s->count, s->in, s->gradient_out);
    if (s->gradient_in)
        backend->backward_data(c, s->count, s->gradient_out, s->gradient_in);
}

static void backward_end(struct layer *l, const struct run *r)
{
    struct convolution_layer *own = l->state;

    if (!l->frozen && own->gradients)
        own->gradient_backend->weights_gradient(own->gradients, r->exchange + own->parameter);
    else if (!l->frozen)
        own->backend->weights_gradient(own->convolution, r->exchange + own->parameter);
}

static const struct layer_kind layer_convolution = {
    .name = "convolution",
    .flags = LAYER_KEEPS_IN | LAYER_MAKES_IMAGE,
    .make = layer_convolution_make,
    .release = layer_convolution_release,
    .forward_begin = forward_begin,
    .forward = layer_convolution_forward,
    .backward = layer_convolution_backward,
    .backward_end = backward_end,
    .take_finish = take_finish,
};

static const struct convolution_backend *choose_backend(const struct network_builder *b, int in, const struct shape *x,
                                                        int channels, int *out_block)
{
    const struct convolution_backend *backend = network_builder_convolves(b);
    int in_block = backend->block(x->channels, in == VALUE_IMAGES);

#if CONVOLUTION_AVX512
    if (backend == &convolution_avx512 && x->block == x->channels) /* it reads NHWC, too */
        in_block = x->channels;
#endif
    *out_block = backend->block(channels, 0);
    if (*out_block && in_block && in_block == x->block)
        return backend;
    *out_block = convolution_blas.block(channels, 0);
    return &convolution_blas;
}

int network_builder_convolution(struct network_builder *b, int in, const char *name, int channels, struct window window,
                                const struct kernel_options *options)
{
    struct shape x = network_builder_shape(b, in), y = { 0, 0, channels, channels };
    const struct convolution_backend *backend = choose_backend(b, in, &x, channels, &y.block);
    const struct window given = window;
    const int from = in;
    struct convolution_layer *own;
    struct layer *l;

    if (backend == &convolution_blas && x.block != x.channels) {
        in = network_builder_reblock(b, in);
        x = network_builder_shape(b, in);
    }
    if (!network_builder_fit(b, layer_convolution.name, &window, &x, &y) ||
        !(l = network_builder_layer(b, &layer_convolution, in, y, sizeof *own)))
        return VALUE_NONE;
    const int64_t shape[4] = { window.height, window.width, x.channels, channels };
    l->whole = 0;
    own = l->state;
    own->backend = backend;
    own->shape = (struct convolution_shape){
        .height = x.height,
        .width = x.width,
        .channels = x.channels,
        .block = x.block,
        .out_height = y.height,
        .out_width = y.width,
        .out_channels = channels,
        .out_block = y.block,
        .window = window,
        .bfloat16 = network_builder_computes(b) == PRECISION_BFLOAT16,
    };
    own->parameter = l->low = network_builder_kernel(b, name, 4, shape, options);
    network_builder_note(
        b, name,
        &(struct network_call){
            .kind = &layer_call_convolution,
            .inputs = { from },
            .input_count = 1,
            .out = l->out,
            .arguments = { { { channels } },
                           SIZE_ARGUMENT(given),
                           STRIDE_ARGUMENT(given),
                           PADDING_ARGUMENT(given),
                           INITIAL_ARGUMENT(options),
                           { { options->decay } } },
            .multiplications = (double)shape_pixels(&y) * window.height * window.width * x.channels * channels,
        });
    return l->out;
}

static int build_convolution(struct network_builder *b, const int *in, int in_count, const char *name,
                             const struct argument *a)
{
    const struct kernel_options options = network_builder_kernel_options(&a[4], &a[5]);

    (void)in_count;
    return network_builder_convolution(b, in[0], name, (int)a[0].v[0], network_builder_window(&a[1], &a[2], &a[3], 1),
                                       &options);
}

const struct layer_call layer_call_convolution = {
    .name = "convolution",
    .help = "windows of the input times a kernel, without bias",
    .named = "kernel",
    .inputs_least = 1,
    .inputs_most = 1,
    .parameters = {
        { "channels", PARAMETER_INTEGER, NULL, 1, 65536, NULL, "of the result" },
        { "size", PARAMETER_SIZE, NULL, 1, 4096, NULL, "the window: 3, or HEIGHTxWIDTH" },
        { "stride", PARAMETER_SIZE, NULL, 1, 4096, "1", "between windows" },
        { "padding", PARAMETER_PADDING, NULL, 0, 4095, "valid", "valid, same, or TOP,BOTTOM,LEFT,RIGHT" },
        { "initial", PARAMETER_INITIAL, NULL, 0, 1e6, "glorot", "how the kernel begins" },
        { "decay", PARAMETER_REAL, NULL, 0, 1e6, "0", "weight decay of the kernel" },
    },
    .build = build_convolution,
};
