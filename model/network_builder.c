#include "model/network_builder.h"

#include "base/array.h"
#include "model/kernels/bfloat16.h"
#include "model/kernels/convolution.h"
#include "model/network_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS_MAX = 1 << 20, SIZE_MAX_REALS = 1 << 30 };
/* Beyond any machine, and far from overflowing, also times the largest batch. */
static const size_t parameters_max = (size_t)1 << 36, values_max = (size_t)1 << 34;

void network_builder_init(struct network_builder *b, const struct model *model)
{
    struct value *images;

    memset(b, 0, sizeof *b);
    b->model = model;
    if (!(images = network_plan_add_value(&b->plan))) {
        error_memory(&b->error, NULL, "for a network");
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
    free(b->calls);
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

/* Adds a variable with its offset; NULL, and the mistake is kept, if it is impossible. */
static struct variable *add_variable(struct network_builder *b, const char *scope, const char *name,
                                     enum variable_kind kind, int rank, const int64_t *shape)
{
    struct variable *v;
    size_t *total = kind == VARIABLE_WEIGHT ? &b->parameters : &b->statistics;

    if (b->error.code)
        return NULL;
    if (!ARRAY_ROOM(b->variables, b->variable_room, b->variable_count + 1)) {
        error_memory(&b->error, NULL, "for the variables of model %s", b->model->name);
        return NULL;
    }
    v = memset(&b->variables[b->variable_count], 0, sizeof *v);
    if (!join(v->name, sizeof v->name, scope, name)) {
        network_builder_fail(b, ERR_ARG, "the name %s/%s is too long", scope, name);
        return NULL;
    }
    for (size_t i = 0; i < b->variable_count; i++)
        if (!strcmp(b->variables[i].name, v->name)) {
            network_builder_fail(b, ERR_ARG, "two variables are named %s", v->name);
            return NULL;
        }
    v->kind = kind;
    v->frozen = model_in_scope(b->model->frozen, v->name);
    v->rank = rank;
    v->count = 1;
    for (int d = 0; d < rank; d++) {
        v->shape[d] = shape[d];
        if (shape[d] < 1 || v->count > parameters_max / (size_t)shape[d]) {
            network_builder_fail(b, ERR_ARG, "its variable %s would have none or too many values", v->name);
            return NULL;
        }
        v->count *= (size_t)shape[d];
    }
    if (*total > parameters_max - v->count) {
        network_builder_fail(b, ERR_ARG, "the variables up to here have too many values");
        return NULL;
    }
    v->offset = *total;
    *total += v->count;
    b->variable_count++;
    return v;
}

/* The deviation of a standard normal that is cut at 2. */
static const double cut_deviation = 0.87962566103423978;

/* What depends on the kernel's inputs and outputs: those of a window's pixel times its pixels. A bias has, as in
 * TensorFlow, as many of both as channels. */
static void scale_initial(struct variable *v)
{
    const double pixels = v->rank == 4 ? (double)(v->shape[0] * v->shape[1]) : 1;
    const double in = pixels * (double)v->shape[v->rank > 1 ? v->rank - 2 : 0],
                 out = pixels * (double)v->shape[v->rank - 1];

    switch (v->initial) {
    case INITIAL_GLOROT: v->initial_value = sqrt(6.0 / (in + out)); break;
    case INITIAL_UNIT_SCALING: v->initial_value = sqrt(3.0 / in); break;
    case INITIAL_HE: v->initial_value = sqrt(2.0 / in); break;
    case INITIAL_HE_FAN_OUT: v->initial_value = sqrt(2.0 / out); break;
    case INITIAL_VARIANCE_SCALING:
        v->initial = INITIAL_TRUNCATED_NORMAL;
        v->initial_value = sqrt(1.0 / in) / cut_deviation;
        return;
    default: return;
    }
    v->initial = v->initial == INITIAL_GLOROT || v->initial == INITIAL_UNIT_SCALING ? INITIAL_UNIFORM : INITIAL_NORMAL;
}

size_t network_builder_kernel(struct network_builder *b, const char *name, int rank, const int64_t *shape,
                              const struct kernel_options *options)
{
    struct variable *v = add_variable(b, name, "", VARIABLE_WEIGHT, rank, shape);

    if (!v)
        return 0;
    v->decay = v->frozen ? 0 : options->decay;
    v->initial = options->initial;
    v->initial_value = options->initial_value;
    scale_initial(v);
    return v->offset;
}

size_t network_builder_constant(struct network_builder *b, const char *scope, const char *name, enum variable_kind kind,
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

int network_builder_fail(struct network_builder *b, int code, const char *format, ...)
{
    char text[300];
    va_list list;

    if (b->error.code)
        return VALUE_NONE;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (b->place)
        error_set(&b->error, code, "%s: %s", b->place, text);
    else
        error_set(&b->error, code, "model %s: %s", b->model->name, text);
    return VALUE_NONE;
}

int network_builder_refuse(struct network_builder *b, const char *what, const char *why)
{
    if (b->place)
        return network_builder_fail(b, ERR_ARG, "%s", why);
    return network_builder_fail(b, ERR_ARG, "layer %d (%s): %s", b->plan.layer_count, what, why);
}

void network_builder_note(struct network_builder *b, const char *name, const struct network_call *call)
{
    const struct value *shown;
    struct network_call *to;

    if (b->error.code)
        return;
    if (!ARRAY_ROOM(b->calls, b->call_room, b->call_count + 1)) {
        error_memory(&b->error, NULL, "for the calls of model %s", b->model->name);
        return;
    }
    to = &b->calls[b->call_count++];
    *to = *call;
    snprintf(to->name, sizeof to->name, "%s", name);
    shown = &b->plan.values[call->out == VALUE_NONE ? call->inputs[0] : call->out];
    to->height = shown->shape.height;
    to->width = shown->shape.width;
    to->channels = shown->shape.channels;
    to->parameters = b->parameters - b->noted[0];
    to->statistics = b->statistics - b->noted[1];
    b->noted[0] = b->parameters;
    b->noted[1] = b->statistics;
}

struct window network_builder_window(const struct argument *size, const struct argument *stride,
                                     const struct argument *padding, int standard)
{
    struct window w = {
        .height = (int)size->v[0],
        .width = (int)size->v[1],
        .stride_height = (int)stride->v[0],
        .stride_width = (int)stride->v[1],
        .padding = padding->v[0] != 0 ? PADDING_SAME : PADDING_EXPLICIT,
        .top = (int)padding->v[1],
        .bottom = (int)padding->v[2],
        .left = (int)padding->v[3],
        .right = (int)padding->v[4],
    };

    if (!w.stride_height) {
        w.stride_height = standard ? standard : w.height;
        w.stride_width = standard ? standard : w.width;
    }
    return w;
}

struct kernel_options network_builder_kernel_options(const struct argument *initial, const struct argument *decay)
{
    return (struct kernel_options){ (enum initial_kind)(int)initial->v[0], initial->v[1], decay->v[0] };
}

/* 1 if an activation's gradient reads the sign of this value's memory. */
static int sign_is_read(const struct network_plan *p, int in)
{
    for (int i = 0; i < p->layer_count; i++) {
        const struct layer *l = &p->layers[i];
        if (l->out >= 0 && p->values[l->out].data == p->values[in].data && l->reads_sign)
            return 1;
    }
    return 0;
}

static void no_memory(struct network_builder *b)
{
    if (!b->error.code)
        error_memory(&b->error, NULL, "for the layers of model %s", b->model->name);
}

/* 1 if value `in` may have another layer with these flags; else the mistake is kept. */
static int check_input(struct network_builder *b, int in, const char *name, unsigned flags)
{
    const struct network_plan *p = &b->plan;

    if (b->error.code)
        return 0;
    if (in < 0 || in >= p->value_count)
        network_builder_refuse(b, name, "its input is not a value of this network");
    else if (p->logits != VALUE_NONE)
        network_builder_refuse(b, name, "comes after the cross entropy");
    else if ((flags & LAYER_READS_INTEGERS) && (in != VALUE_IMAGES || !b->model->integers))
        network_builder_refuse(b, name, "it reads integers, and its input is none");
    else if (in == VALUE_IMAGES && b->model->integers && !(flags & LAYER_READS_INTEGERS))
        network_builder_refuse(b, name, "its input is integers; an embedding makes reals of them");
    else if (p->values[in].overwritten)
        network_builder_refuse(b, name, "its input was changed in place by an earlier layer");
    else if ((flags & LAYER_IN_PLACE) && (p->values[in].consumers || in == VALUE_IMAGES))
        network_builder_refuse(b, name, "it works in place, but others read its input");
    else if ((flags & LAYER_IN_PLACE) && !(flags & LAYER_KEEPS_SIGN) && sign_is_read(p, in))
        network_builder_refuse(b, name, "it works in place on what the activation before it still needs");
    return b->error.code == OK;
}

struct layer *network_builder_layer_to(struct network_builder *b, const struct layer_kind *kind, int in, int out,
                                       size_t state_size)
{
    struct layer *l = network_plan_add_layer(&b->plan);

    if (!l || (state_size && !(l->state = calloc(1, state_size)))) {
        no_memory(b);
        return NULL;
    }
    l->kind = kind;
    l->out = out;
    l->out_shape = b->plan.values[out].shape;
    b->plan.values[out].producer = b->plan.layer_count - 1;
    network_builder_input(b, l, in, 0);
    l->whole = shape_pixels(&l->in_shape) == 1;
    return l;
}

void network_builder_input(struct network_builder *b, struct layer *l, int in, int gradient_only)
{
    l->in_shapes[l->input_count] = b->plan.values[in].shape;
    l->inputs[l->input_count++] = (struct layer_input){ .value = in, .gradient_only = gradient_only };
    b->plan.values[in].consumers += !gradient_only;
}

struct layer *network_builder_layer_of(struct network_builder *b, const struct layer_kind *kind, const int *in,
                                       int in_count, struct shape out, size_t state_size)
{
    struct layer *l;
    struct value *v;

    for (int i = 0; i < in_count; i++)
        if (!check_input(b, in[i], kind->name, i == 0 ? kind->flags : 0))
            return NULL;
    if (out.height < 1 || out.width < 1 || out.channels < 1 || out.channels > CHANNELS_MAX ||
        shape_size(&out) > SIZE_MAX_REALS) {
        network_builder_refuse(b, kind->name, "its output would have no pixels, or too many");
        return NULL;
    }
    if (b->values + shape_size(&out) > values_max) {
        network_builder_refuse(b, kind->name, "the values up to here are too many");
        return NULL;
    }
    if (!(v = network_plan_add_value(&b->plan))) {
        no_memory(b);
        return NULL;
    }
    b->values += shape_size(&out);
    v->shape = out;
    if (!(l = network_builder_layer_to(b, kind, in[0], b->plan.value_count - 1, state_size)))
        return NULL;
    for (int i = 1; i < in_count; i++)
        network_builder_input(b, l, in[i], 0);
    if (kind->flags & LAYER_IN_PLACE) {
        b->plan.values[in[0]].overwritten = 1;
        v->data = b->plan.values[in[0]].data;
        v->gradient = b->plan.values[in[0]].gradient;
    }
    return l;
}

struct layer *network_builder_layer(struct network_builder *b, const struct layer_kind *kind, int in, struct shape out,
                                    size_t state_size)
{
    return network_builder_layer_of(b, kind, &in, 1, out, state_size);
}

enum precision network_builder_computes(const struct network_builder *b)
{
    return bfloat16_units() == BFLOAT16_NONE ? PRECISION_FLOAT32 : b->model->precision;
}

const struct convolution_backend *network_builder_convolves(const struct network_builder *b)
{
    const int rounded = network_builder_computes(b) == PRECISION_BFLOAT16;

#if CONVOLUTION_AVX512
    if (rounded && bfloat16_units() == BFLOAT16_AVX512)
        return &convolution_avx512;
#endif
#if CONVOLUTION_ONEDNN
    return rounded ? &convolution_bfloat16 : &convolution_onednn;
#else
    (void)rounded;
    return &convolution_blas;
#endif
}

int network_builder_block(const struct network_builder *b, int channels)
{
    return network_builder_convolves(b)->block(channels, 0);
}

struct shape network_builder_shape(const struct network_builder *b, int value)
{
    return value >= 0 && value < b->plan.value_count ? b->plan.values[value].shape : (struct shape){ 1, 1, 1, 1 };
}

int network_builder_is_image(const struct network_builder *b, int value)
{
    while (value > VALUE_IMAGES && value < b->plan.value_count) {
        const struct layer *l = &b->plan.layers[b->plan.values[value].producer];

        if (l->kind->flags & (LAYER_MAKES_IMAGE | LAYER_MAKES_ROWS))
            return (l->kind->flags & LAYER_MAKES_IMAGE) != 0;
        value = l->inputs[0].value;
    }
    return value == VALUE_IMAGES && !b->model->integers;
}

int network_builder_fit(struct network_builder *b, const char *layer, struct window *w, const struct shape *x,
                        struct shape *y)
{
    if (!window_fit(w, x->height, x->width)) {
        network_builder_refuse(b, layer, "its window needs positive strides, and less padding than its own size");
        return 0;
    }
    y->height = window_rows(w, x->height);
    y->width = window_columns(w, x->width);
    return 1;
}
