#include "model/network_builder.h"

#include "model/kernels/activation.h"
#include "model/network_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS_MAX = 1 << 16, SIZE_MAX_REALS = 1 << 30 };

void network_builder_init(struct network_builder *b, const struct model *model)
{
    struct value *images;

    memset(b, 0, sizeof *b);
    b->model = model;
    if (!(images = network_plan_add_value(&b->plan))) {
        error_set(&b->error, ERR_NOMEM, "no memory for a network");
        return;
    }
    images->shape = (struct shape){ model->height, model->width, model->channels, model->channels };
    images->producer = -1;
    b->plan.logits = VALUE_NONE;
}

void network_builder_release(struct network_builder *b)
{
    network_plan_release(&b->plan);
    free(b->variables);
    memset(b, 0, sizeof *b);
}

int network_builder_images(struct network_builder *b)
{
    (void)b;
    return VALUE_IMAGES;
}

/* ---- variables --------------------------------------------------------------------------------------------------- */

static int join(char *to, size_t room, const char *scope, const char *name)
{
    return snprintf(to, room, "%s%s%s", scope, *name ? "/" : "", name) < (int)room;
}

/* A new variable, with its place; NULL and the mistake kept when it cannot be. */
static struct variable *add_variable(struct network_builder *b, const char *scope, const char *name,
                                     enum variable_kind kind, int rank, const int64_t *shape)
{
    struct variable *v;
    size_t *total = kind == VARIABLE_WEIGHT ? &b->parameters : &b->statistics;

    if (b->error.code)
        return NULL;
    if (b->variable_count == b->variable_room) {
        const size_t more = b->variable_room ? b->variable_room * 2 : 64;
        struct variable *grown = realloc(b->variables, more * sizeof *grown);
        if (!grown) {
            error_set(&b->error, ERR_NOMEM, "no memory for the variables of model %s", b->model->name);
            return NULL;
        }
        b->variables = grown;
        b->variable_room = more;
    }
    v = memset(&b->variables[b->variable_count], 0, sizeof *v);
    if (!join(v->name, sizeof v->name, scope, name)) {
        error_set(&b->error, ERR_ARG, "model %s: the name %s/%s is too long", b->model->name, scope, name);
        return NULL;
    }
    for (size_t i = 0; i < b->variable_count; i++)
        if (!strcmp(b->variables[i].name, v->name)) {
            error_set(&b->error, ERR_ARG, "model %s: two variables are called %s", b->model->name, v->name);
            return NULL;
        }
    v->kind = kind;
    v->rank = rank;
    v->count = 1;
    for (int d = 0; d < rank; d++) {
        v->shape[d] = shape[d];
        v->count *= (size_t)shape[d];
    }
    v->offset = *total;
    *total += v->count;
    b->variable_count++;
    return v;
}

static size_t add_kernel(struct network_builder *b, const char *name, int rank, const int64_t *shape,
                         const struct kernel_options *options)
{
    struct variable *v = add_variable(b, name, "", VARIABLE_WEIGHT, rank, shape);

    if (!v)
        return 0;
    v->decay = options->decay;
    v->initial = options->initial;
    v->initial_value = options->initial_value;
    return v->offset;
}

static size_t add_constant(struct network_builder *b, const char *scope, const char *name, enum variable_kind kind,
                           int channels, double initial, const char *debias_scope)
{
    const int64_t shape[1] = { channels };
    struct variable *v = add_variable(b, scope, name, kind, 1, shape);

    if (!v)
        return 0;
    v->initial = INITIAL_CONSTANT;
    v->initial_value = initial;
    snprintf(v->debias_scope, sizeof v->debias_scope, "%s", debias_scope);
    return v->offset;
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

static int refuse(struct network_builder *b, const char *what, const char *why)
{
    if (!b->error.code)
        error_set(&b->error, ERR_ARG, "model %s: layer %d (%s): %s", b->model->name, b->plan.layer_count, what, why);
    return VALUE_NONE;
}

/* 1 if an activation's gradient looks at the sign of this value's memory. */
static int sign_is_read(const struct network_plan *p, int in)
{
    for (int i = 0; i < p->layer_count; i++) {
        const struct layer *l = &p->layers[i];
        if (l->out >= 0 && p->values[l->out].data == p->values[in].data && (l->kind->flags & LAYER_KEEPS_OUT) &&
            (l->kind != &layer_bias || l->relu))
            return 1;
    }
    return 0;
}

/* 1 if value in can be given to one more layer. */
static int check_input(struct network_builder *b, int in, const struct layer_kind *kind)
{
    if (b->error.code)
        return 0;
    if (in < 0 || in >= b->plan.value_count)
        return refuse(b, kind->name, "its input is not a value of this network"), 0;
    if (b->plan.logits != VALUE_NONE)
        return refuse(b, kind->name, "comes after the cross entropy"), 0;
    if (b->plan.values[in].overwritten)
        return refuse(b, kind->name, "its input was changed in place by an earlier layer"), 0;
    if ((kind->flags & LAYER_IN_PLACE) && (b->plan.values[in].consumers || in == VALUE_IMAGES))
        return refuse(b, kind->name, "it works in place, but others read its input"), 0;
    if ((kind->flags & LAYER_IN_PLACE) && !(kind->flags & LAYER_KEEPS_SIGN) && sign_is_read(&b->plan, in))
        return refuse(b, kind->name, "it works in place on what the activation before it still needs"), 0;
    return 1;
}

/* Adds a layer from value in to a new value of shape out; NULL and the mistake kept when it cannot be. */
static struct layer *add_layer(struct network_builder *b, const struct layer_kind *kind, int in, struct shape out)
{
    struct layer *l;
    struct value *v;

    if (!check_input(b, in, kind))
        return NULL;
    if (out.height < 1 || out.width < 1 || out.channels < 1 || out.channels > CHANNELS_MAX ||
        shape_size(&out) > SIZE_MAX_REALS) {
        refuse(b, kind->name, "its output would have no pixels, or too many");
        return NULL;
    }
    v = network_plan_add_value(&b->plan);
    l = network_plan_add_layer(&b->plan);
    if (!v || !l) {
        error_set(&b->error, ERR_NOMEM, "no memory for the layers of model %s", b->model->name);
        return NULL;
    }
    v->shape = out;
    v->producer = b->plan.layer_count - 1;
    l->kind = kind;
    l->in = in;
    l->other = VALUE_NONE;
    l->out = b->plan.value_count - 1;
    l->in_shape = b->plan.values[in].shape;
    l->out_shape = out;
    l->whole = shape_pixels(&l->in_shape) == 1;
    b->plan.values[in].consumers++;
    if (kind->flags & LAYER_IN_PLACE) {
        b->plan.values[in].overwritten = 1;
        v->data = b->plan.values[in].data;
        v->gradient = b->plan.values[in].gradient;
    }
    return l;
}

static struct shape shape_of(const struct network_builder *b, int value)
{
    return value >= 0 && value < b->plan.value_count ? b->plan.values[value].shape : (struct shape){ 1, 1, 1, 1 };
}

/* Output size along one axis, and the zeros before it. */
static int window_count(int n, int size, int stride, enum padding padding, int *before)
{
    int out, total;

    *before = 0;
    if (n < 1 || size < 1 || stride < 1)
        return 0;
    if (padding == PADDING_VALID)
        return n < size ? 0 : (n - size) / stride + 1;
    out = (n + stride - 1) / stride;
    total = (out - 1) * stride + size - n;
    *before = total > 0 ? total / 2 : 0;
    return out;
}

static int reblock(struct network_builder *b, int in)
{
    struct shape out = shape_of(b, in);
    struct layer *l;

    out.block = out.channels;
    l = add_layer(b, &layer_reblock, in, out);
    return l ? l->out : VALUE_NONE;
}

/* oneDNN where it computes such a convolution in layouts that fit, else OpenBLAS on NHWC. */
static const struct convolution_backend *choose_backend(int in, const struct shape *x, int channels, int *out_block)
{
#if CONVOLUTION_ONEDNN
    const int in_block = convolution_onednn.block(x->channels, in == VALUE_IMAGES);

    *out_block = convolution_onednn.block(channels, 0);
    if (*out_block && in_block && in_block == x->block)
        return &convolution_onednn;
#endif
    (void)in, (void)x;
    *out_block = convolution_blas.block(channels, 0);
    return &convolution_blas;
}

int network_builder_convolution(struct network_builder *b, int in, const char *name, int channels, int size,
                                int stride, enum padding padding, const struct kernel_options *options)
{
    struct shape x = shape_of(b, in), y = { 0, 0, channels, channels };
    int before_height, before_width;
    const struct convolution_backend *backend = choose_backend(in, &x, channels, &y.block);
    struct layer *l;

    if (backend == &convolution_blas && x.block != x.channels) {
        in = reblock(b, in);
        x = shape_of(b, in);
    }
    y.height = window_count(x.height, size, stride, padding, &before_height);
    y.width = window_count(x.width, size, stride, padding, &before_width);
    if (!(l = add_layer(b, &layer_convolution, in, y)))
        return VALUE_NONE;
    const int64_t shape[4] = { size, size, x.channels, channels };
    l->whole = 0;
    l->backend = backend;
    l->convolution_shape = (struct convolution_shape){
        .height = x.height, .width = x.width, .channels = x.channels, .block = x.block,
        .out_height = y.height, .out_width = y.width, .out_channels = channels, .out_block = y.block,
        .kernel = size, .stride = stride, .before_height = before_height, .before_width = before_width,
    };
    l->parameter[0] = l->low = add_kernel(b, name, 4, shape, options);
    return l->out;
}

int network_builder_dense(struct network_builder *b, int in, const char *name, int outputs,
                          const struct kernel_options *options)
{
    const struct shape x = shape_of(b, in);
    const int64_t shape[2] = { (int64_t)shape_size(&x), outputs };
    struct layer *l = add_layer(b, &layer_dense, in, (struct shape){ 1, 1, outputs, outputs });

    if (!l)
        return VALUE_NONE;
    l->whole = 1;
    l->parameter[0] = l->low = add_kernel(b, name, 2, shape, options);
    return l->out;
}

int network_builder_bias(struct network_builder *b, int in, const char *name, double initial, enum relu relu)
{
    const struct shape x = shape_of(b, in);
    struct layer *l = add_layer(b, &layer_bias, in, x);

    if (!l)
        return VALUE_NONE;
    l->relu = relu == RELU;
    l->parameter[0] = l->low = add_constant(b, name, "", VARIABLE_WEIGHT, x.channels, initial, "");
    return l->out;
}

int network_builder_batch_norm(struct network_builder *b, int in, const char *scope, double epsilon, double slope,
                               int debias)
{
    const struct shape x = shape_of(b, in);
    const char *debias_scope = debias ? scope : "";
    struct layer *l = add_layer(b, &layer_statistics, in, x);
    struct batch_norm *norm;
    int statistics, out;

    if (!l)
        return VALUE_NONE;
    statistics = b->plan.layer_count - 1;
    out = l->out;
    if (!(norm = l->norm = layer_batch_norm_new((size_t)x.channels))) {
        error_set(&b->error, ERR_NOMEM, "no memory for a batch norm");
        return VALUE_NONE;
    }
    l->epsilon = epsilon;
    l->other = out; /* whose gradient the backward pass needs; the value is written by the second half */
    l->out = VALUE_NONE;
    if (!(l = network_plan_add_layer(&b->plan))) {
        error_set(&b->error, ERR_NOMEM, "no memory for the layers of model %s", b->model->name);
        return VALUE_NONE;
    }
    l->kind = &layer_normalize;
    l->in = in;
    l->other = VALUE_NONE;
    l->out = out;
    l->in_shape = l->out_shape = x;
    l->whole = b->plan.layers[statistics].whole;
    l->norm = norm;
    l->epsilon = epsilon;
    l->slope = slope;
    b->plan.values[in].consumers++;
    b->plan.values[out].producer = b->plan.layer_count - 1;
    l->parameter[0] = l->low = add_constant(b, scope, "beta", VARIABLE_WEIGHT, x.channels, 0, "");
    l->parameter[1] = add_constant(b, scope, "gamma", VARIABLE_WEIGHT, x.channels, 1, "");
    l->statistic[0] = add_constant(b, scope, "moving_mean", VARIABLE_STATISTIC, x.channels, 0, debias_scope);
    l->statistic[1] = add_constant(b, scope, "moving_variance", VARIABLE_STATISTIC, x.channels, 1, debias_scope);
    memcpy(b->plan.layers[statistics].parameter, l->parameter, sizeof l->parameter);
    memcpy(b->plan.layers[statistics].statistic, l->statistic, sizeof l->statistic);
    return out;
}

int network_builder_leaky(struct network_builder *b, int in, double slope, enum leaky_gradient gradient)
{
    struct layer *l = add_layer(b, &layer_leaky, in, shape_of(b, in));

    if (!l)
        return VALUE_NONE;
    if (!(slope > 0))
        return refuse(b, l->kind->name, "its slope must be positive; for ReLU give it to the bias");
    l->slope = slope;
    l->leaky_rule = gradient == LEAKY_GRADIENT_SLOPE ? LEAKY_SLOPE_AT_ZERO : LEAKY_ONE_AT_ZERO;
    return l->out;
}

static int add_pool(struct network_builder *b, const struct layer_kind *kind, int in, int size, int stride,
                    enum padding padding)
{
    const struct shape x = shape_of(b, in);
    struct shape y = x;
    struct pool_shape pool = { x.height, x.width, x.block, 0, 0, size, stride, 0, 0 };
    struct layer *l;

    if (kind == &layer_max_pool && size > POOL_MAX_KERNEL)
        return refuse(b, kind->name, "its window is too large");
    y.height = pool.out_height = window_count(x.height, size, stride, padding, &pool.before_height);
    y.width = pool.out_width = window_count(x.width, size, stride, padding, &pool.before_width);
    if (!(l = add_layer(b, kind, in, y)))
        return VALUE_NONE;
    l->whole = 0;
    l->pool = pool;
    return l->out;
}

int network_builder_max_pool(struct network_builder *b, int in, int size, int stride, enum padding padding)
{
    return add_pool(b, &layer_max_pool, in, size, stride, padding);
}

int network_builder_average_pool(struct network_builder *b, int in, int size, int stride, enum padding padding)
{
    return add_pool(b, &layer_average_pool, in, size, stride, padding);
}

int network_builder_widen(struct network_builder *b, int in, int channels)
{
    const struct shape x = shape_of(b, in);
    struct shape y = x;
    struct layer *l;

    if (channels < x.channels)
        return refuse(b, layer_widen.name, "it can only add channels");
    y.channels = channels;
    y.block = x.block == x.channels ? channels : x.block;
#if CONVOLUTION_ONEDNN
    if (convolution_onednn.block(x.channels, 0) == x.block)
        y.block = convolution_onednn.block(channels, 0);
#endif
    if (!y.block || channels % y.block)
        return refuse(b, layer_widen.name, "the new number of channels does not fit the layout");
    l = add_layer(b, &layer_widen, in, y);
    return l ? l->out : VALUE_NONE;
}

/* First and last layer that touch the gradient memory of value root. */
static void gradient_span(const struct network_plan *p, int root, int *first, int *last)
{
    *first = p->layer_count;
    *last = -1;
    for (int i = 0; i < p->layer_count; i++) {
        const struct layer *l = &p->layers[i];
        if (p->values[l->in].gradient == root || (l->other >= 0 && p->values[l->other].gradient == root) ||
            (l->out >= 0 && p->values[l->out].gradient == root)) {
            *first = i < *first ? i : *first;
            *last = i;
        }
    }
}

/* Both inputs' gradient is the sum's. They can share its memory when all that adds to other's later in the backward
 * pass stands before the first layer that reads changed's. So the gradient along a residual network's shortcuts is one
 * array that every unit adds to. */
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
    const struct shape x = shape_of(b, changed), y = shape_of(b, other);
    struct network_plan *p = &b->plan;
    struct layer *l;

    if (!check_input(b, other, &layer_dense))
        return VALUE_NONE;
    if (x.height != y.height || x.width != y.width || x.channels != y.channels || x.block != y.block)
        return refuse(b, layer_add.name, "its inputs differ in shape or layout");
    if (changed == other)
        return refuse(b, layer_add.name, "its inputs are one value");
    if (b->error.code == OK)
        share_gradient(p, changed, other);
    if (!(l = add_layer(b, &layer_add, changed, x)))
        return VALUE_NONE;
    l->other = other;
    p->values[other].consumers++;
    return l->out;
}

int network_builder_lrn(struct network_builder *b, int in, int radius, double bias, double alpha, double beta)
{
    const struct shape x = shape_of(b, in);
    struct layer *l;

    if (x.channels > LRN_CHANNELS_MAX || radius < 0 || radius > LRN_RADIUS_MAX)
        return refuse(b, layer_lrn.name, "it has too many channels, or too wide a window");
    if (!(l = add_layer(b, &layer_lrn, in, x)))
        return VALUE_NONE;
    l->lrn = (struct lrn_shape){ shape_pixels(&x), (size_t)x.channels, (size_t)x.block,
                                 shape_pixels(&x) * (size_t)x.block, radius, (real)bias, (real)alpha, (real)beta };
    return l->out;
}

int network_builder_dropout(struct network_builder *b, int in, double keep)
{
    const struct shape x = shape_of(b, in);
    struct layer *l;

    if (b->plan.dropouts == DROPOUTS_MAX || shape_size(&x) > DROPOUT_SIZE_MAX)
        return refuse(b, layer_dropout.name, "there are too many, or it is too large");
    if (!(keep > 0 && keep <= 1))
        return refuse(b, layer_dropout.name, "what it keeps must be in (0, 1]");
    if (!(l = add_layer(b, &layer_dropout, in, x)))
        return VALUE_NONE;
    l->keep = keep;
    l->number = b->plan.dropouts++;
    return l->out;
}

void network_builder_cross_entropy(struct network_builder *b, int logits)
{
    const struct shape x = shape_of(b, logits);
    struct layer *l;

    if (!b->error.code && (shape_pixels(&x) != 1 || x.channels != b->model->classes)) {
        refuse(b, layer_cross_entropy.name, "its input is not one logit a class");
        return;
    }
    if (!(l = add_layer(b, &layer_cross_entropy, logits, x)))
        return;
    l->whole = 1;
    l->out = VALUE_NONE;
    b->plan.value_count--;
    b->plan.logits = logits;
}
