/* Maximum and average pooling. */
#include "model/network_internal.h"

#include "model/kernels/pool.h"
#include "model/layers/layers.h"

#include <stdlib.h>

struct pool {
    struct pool_shape shape;
    int maximum;     /* else the average */
    uint8_t *winner; /* (batch, out) of maximum pooling in training; else NULL */
};

static int make_winners(struct layer *l, int slice, int batch, struct error *e)
{
    struct pool *own = l->state;

    (void)slice;
    own->maximum = 1;
    if (l->infers)
        return OK; /* only the backward pass asks who won */
    own->winner = malloc((size_t)batch * shape_size(&l->out_shape));
    return own->winner ? OK : error_memory(e, NULL, "for the winners of a max pool");
}

static void release_winners(struct layer *l)
{
    free(((struct pool *)l->state)->winner);
}

static size_t in_plane(const struct layer *l)
{
    return shape_pixels(&l->in_shape) * (size_t)l->in_shape.block;
}

static size_t out_plane(const struct layer *l)
{
    return shape_pixels(&l->out_shape) * (size_t)l->out_shape.block;
}

static size_t slice_planes(const struct layer *l, const struct slice *s)
{
    return (size_t)s->count * shape_planes(&l->in_shape);
}

static uint8_t *slice_winners(const struct layer *l, const struct slice *s)
{
    return ((const struct pool *)l->state)->winner + (size_t)s->first * shape_size(&l->out_shape);
}

static void layer_pool_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct pool *own = l->state;

    (void)r;
    for (size_t k = 0; k < slice_planes(l, s); k++) {
        const real *x = s->in + k * in_plane(l);
        real *y = s->out + k * out_plane(l);

        if (own->winner)
            pool_max_forward(&own->shape, x, y, slice_winners(l, s) + k * out_plane(l));
        else if (own->maximum)
            pool_max_infer(&own->shape, x, y);
        else
            pool_average_forward(&own->shape, x, y);
    }
}

static void layer_pool_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct pool *own = l->state;

    (void)r;
    for (size_t k = 0; s->gradient_in && k < slice_planes(l, s); k++) {
        const real *dy = s->gradient_out + k * out_plane(l);
        real *dx = s->gradient_in + k * in_plane(l);

        if (own->winner)
            pool_max_backward(&own->shape, dy, slice_winners(l, s) + k * out_plane(l), dx);
        else
            pool_average_backward(&own->shape, dy, dx);
    }
}

static const struct layer_kind layer_max_pool = {
    .name = "max pool",
    .flags = LAYER_MAKES_IMAGE,
    .make = make_winners,
    .release = release_winners,
    .forward = layer_pool_forward,
    .backward = layer_pool_backward,
};
static const struct layer_kind layer_average_pool = {
    .name = "average pool",
    .flags = LAYER_MAKES_IMAGE,
    .forward = layer_pool_forward,
    .backward = layer_pool_backward,
};

static int add_pool(struct network_builder *b, const struct layer_kind *kind, const struct layer_call *call, int in,
                    struct window window)
{
    const struct window given = window;
    const struct shape x = network_builder_shape(b, in);
    struct shape y = x;
    struct layer *l;

    if (!network_builder_fit(b, kind->name, &window, &x, &y))
        return VALUE_NONE;
    if (kind == &layer_max_pool && window.height > POOL_MAX_WINDOW / window.width)
        return network_builder_refuse(b, kind->name, "its window is too large");
    if (!(l = network_builder_layer(b, kind, in, y, sizeof(struct pool))))
        return VALUE_NONE;
    l->whole = 0;
    ((struct pool *)l->state)->shape = (struct pool_shape){ x.height, x.width, x.block, y.height, y.width, window };
    network_builder_note(b, "",
                         &(struct network_call){
                             .kind = call,
                             .inputs = { in },
                             .input_count = 1,
                             .out = l->out,
                             .arguments = { SIZE_ARGUMENT(given), STRIDE_ARGUMENT(given), PADDING_ARGUMENT(given) } });
    return l->out;
}

int network_builder_max_pool(struct network_builder *b, int in, struct window window)
{
    return add_pool(b, &layer_max_pool, &layer_call_max_pool, in, window);
}

int network_builder_average_pool(struct network_builder *b, int in, struct window window)
{
    return add_pool(b, &layer_average_pool, &layer_call_average_pool, in, window);
}

int network_builder_global_average_pool(struct network_builder *b, int in)
{
    const struct shape x = network_builder_shape(b, in);
    const struct window all = { .height = x.height, .width = x.width, .stride_height = 1, .stride_width = 1 };

    return add_pool(b, &layer_average_pool, &layer_call_global_average_pool, in, all);
}

static int build_max_pool(struct network_builder *b, const int *in, int in_count, const char *name,
                          const struct argument *a)
{
    (void)in_count, (void)name;
    return network_builder_max_pool(b, in[0], network_builder_window(&a[0], &a[1], &a[2], 0));
}

static int build_average_pool(struct network_builder *b, const int *in, int in_count, const char *name,
                              const struct argument *a)
{
    (void)in_count, (void)name;
    return network_builder_average_pool(b, in[0], network_builder_window(&a[0], &a[1], &a[2], 0));
}

#define POOL_PARAMETERS \
    { \
        { "size", PARAMETER_SIZE, NULL, 1, 4096, NULL, "the window: 2, or HEIGHTxWIDTH" }, \
            { "stride", PARAMETER_SIZE, NULL, 1, 4096, "size", "between windows" }, \
            { "padding", PARAMETER_PADDING, NULL, 0, 4095, "valid", "valid, same, or TOP,BOTTOM,LEFT,RIGHT" }, \
    }

const struct layer_call layer_call_max_pool = {
    .name = "max_pool",
    .help = "the maximum of each window",
    .inputs_least = 1,
    .inputs_most = 1,
    .parameters = POOL_PARAMETERS,
    .build = build_max_pool,
};

const struct layer_call layer_call_average_pool = {
    .name = "average_pool",
    .help = "the mean of each window, padding not counted",
    .inputs_least = 1,
    .inputs_most = 1,
    .parameters = POOL_PARAMETERS,
    .build = build_average_pool,
};

static int build_global_average_pool(struct network_builder *b, const int *in, int in_count, const char *name,
                                     const struct argument *a)
{
    (void)in_count, (void)name, (void)a;
    return network_builder_global_average_pool(b, in[0]);
}

const struct layer_call layer_call_global_average_pool = {
    .name = "global_average_pool",
    .help = "the mean of each channel over all pixels",
    .inputs_least = 1,
    .inputs_most = 1,
    .build = build_global_average_pool,
};
