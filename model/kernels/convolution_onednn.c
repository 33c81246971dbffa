/*
 * Convolution by oneDNN's compiled kernels. Images are in blocks of 16 channels (AVX-512) or 8 (AVX2), the network's
 * input in planes of one channel; once per step kernels are put into oneDNN's order, through a table of offsets made
 * once.
 *
 * Forward and backward data run image by image: this is as fast as several at a time, and the result of an image does
 * not depend on its neighbours. The weight gradient is computed for `images` at a time, and one by one for the rest.
 *
 * With bfloat16 images are NHWC, which is the only layout that oneDNN's kernels for AMX take: x, w and dy are rounded
 * on their way in, y, dx and dw come out as float32, in which all sums are made.
 */
#include "model/kernels/convolution.h"

#include "model/kernels/bfloat16.h"
#include "model/kernels/library_onednn.h"

#include <stdlib.h>
#include <string.h>

enum { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS, BACKWARD_WEIGHTS_ONE, PRIMITIVES };

struct primitive {
    dnnl_primitive_t primitive;
    dnnl_memory_t source, kernel, result; /* x or dx, w or dw, y or dy */
    dnnl_exec_arg_t arguments[3];
    union {
        float *kernel_memory;
        uint16_t *kernel_bfloat16; /* of forward and backward data with bfloat16 */
    };
    uint32_t *places;   /* of HWIO element k in kernel_memory */
    size_t kernel_size; /* elements */
};

struct convolution {
    struct convolution_shape s;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    struct primitive primitives[PRIMITIVES];
    size_t kernel_count;
    float *sum;    /* weight gradient so far, in oneDNN's order */
    float *planes; /* (images, channels, height, width): the network's input, reordered; NULL elsewhere */
    uint16_t *source_bfloat16, *result_bfloat16; /* (images, ...) of x and dy, rounded; NULL with float32 */
    const real *rounded_dy;                      /* what result_bfloat16 was made of, if backward_data still needs it */
};

static unsigned onednn_instructions(void)
{
    return (unsigned)dnnl.get_effective_cpu_isa();
}

static int onednn_block(int channels, int input)
{
    const int block = library_onednn_has(dnnl_cpu_isa_avx512_core) ? 16 : library_onednn_has(dnnl_cpu_isa_avx2) ? 8 : 0;

    if (input) /* with AVX2 it has but its reference for the weight gradient of one, two or four channels in planes */
        return block == 16 ? (channels <= 4 ? channels : 0) : block && channels == 3 ? channels : 0;
    return block && channels % block == 0 ? block : 0;
}

static int bfloat16_block(int channels, int input)
{
    return library_onednn_has(dnnl_cpu_isa_avx512_core_bf16) && onednn_block(channels, input) ? channels : 0;
}

static void release_primitive(struct primitive *p)
{
    dnnl.memory_destroy(p->source);
    dnnl.memory_destroy(p->kernel);
    dnnl.memory_destroy(p->result);
    dnnl.primitive_destroy(p->primitive);
    free(p->kernel_memory);
    free(p->places);
}

static void onednn_release(struct convolution *c)
{
    if (!c)
        return;
    for (int i = 0; i < PRIMITIVES; i++)
        release_primitive(&c->primitives[i]);
    dnnl.stream_destroy(c->stream);
    dnnl.engine_destroy(c->engine);
    free(c->sum);
    free(c->planes);
    free(c->source_bfloat16);
    free(c->result_bfloat16);
    free(c);
}

static size_t source_size(const struct convolution *c)
{
    return (size_t)c->s.channels * (size_t)c->s.height * (size_t)c->s.width;
}

static size_t result_size(const struct convolution *c)
{
    return (size_t)c->s.out_channels * (size_t)c->s.out_height * (size_t)c->s.out_width;
}

/* The offset of element (o, i, r, s) in memory with those blocks. */
static size_t place_of(const struct onednn_blocking *b, const int64_t at[4])
{
    int64_t rest[4] = { at[0], at[1], at[2], at[3] }, place = b->offset, inner = 1;

    for (int k = b->count - 1; k >= 0; k--) {
        const int64_t dimension = b->dimensions[k];
        place += rest[dimension] % b->sizes[k] * inner;
        rest[dimension] /= b->sizes[k];
        inner *= b->sizes[k];
    }
    for (int k = 0; k < 4; k++)
        place += rest[k] * b->strides[k];
    return (size_t)place;
}

static int make_places(struct primitive *p, const struct convolution_shape *s, const struct onednn_blocking *b,
                       size_t element)
{
    size_t k = 0;
    void *memory;

    p->kernel_size = b->bytes / element;
    p->places = malloc((size_t)(s->window.height * s->window.width) * (size_t)s->channels * (size_t)s->out_channels *
                       sizeof *p->places);
    if (posix_memalign(&memory, 64, b->bytes))
        memory = NULL;
    p->kernel_memory = memory;
    if (!p->places || !p->kernel_memory)
        return -1;
    memset(p->kernel_memory, 0, b->bytes); /* oneDNN's padding, if any, stays 0 */
    for (int64_t r = 0; r < s->window.height; r++)
        for (int64_t q = 0; q < s->window.width; q++)
            for (int64_t i = 0; i < s->channels; i++)
                for (int64_t o = 0; o < s->out_channels; o++) {
                    const int64_t at[4] = { o, i, r, q };
                    p->places[k++] = (uint32_t)place_of(b, at);
                }
    return 0;
}

/* Makes the descriptors of one convolution of `images` images, and the primitive of that kind. Returns a dnnl
 * status. */
static int make_primitive(struct convolution *c, int kind, int images)
{
    const struct convolution_shape *s = &c->s;
    const struct window *w = &s->window;
    const dnnl_dims_t source_dims = { images, s->channels, s->height, s->width };
    const dnnl_dims_t kernel_dims = { s->out_channels, s->channels, w->height, w->width };
    const dnnl_dims_t result_dims = { images, s->out_channels, s->out_height, s->out_width };
    const dnnl_format_tag_t result_tag = s->bfloat16 ? dnnl_nhwc : s->out_block == 16 ? dnnl_nChw16c : dnnl_nChw8c;
    const dnnl_format_tag_t source_tag = s->bfloat16      ? dnnl_nhwc
                                         : c->planes      ? dnnl_nchw
                                         : s->block == 16 ? dnnl_nChw16c
                                                          : dnnl_nChw8c;
    const int weights = kind >= BACKWARD_WEIGHTS;
    const dnnl_data_type_t given = s->bfloat16 ? dnnl_bf16 : dnnl_f32;
    const dnnl_data_type_t source_type = kind == BACKWARD_DATA ? dnnl_f32 : given;
    const dnnl_data_type_t result_type = kind == FORWARD ? dnnl_f32 : given;
    const enum onednn_direction direction = weights ? ONEDNN_WEIGHTS : kind == FORWARD ? ONEDNN_FORWARD : ONEDNN_DATA;
    struct primitive *p = &c->primitives[kind];
    struct onednn_convolution d = { .strides = { w->stride_height, w->stride_width },
                                    .before = { w->top, w->left },
                                    .after = { w->bottom, w->right } };
    struct onednn_blocking blocking;
    dnnl_primitive_desc_t hint = NULL, pd = NULL;
    dnnl_status_t rc;

    /* First a forward convolution, of which the others take a hint. */
    if ((rc = library_onednn_order(&d.source, source_dims, given, source_tag)) ||
        (rc = library_onednn_order(&d.kernel, kernel_dims, given, dnnl_format_tag_any)) ||
        (rc = library_onednn_order(&d.result, result_dims, result_type, result_tag)) ||
        (rc = library_onednn_convolution(&hint, c->engine, ONEDNN_FORWARD, &d, NULL)))
        goto out;
    if (direction == ONEDNN_DATA) {
        library_onednn_forget(&d.source);
        rc = library_onednn_order(&d.source, source_dims, source_type, source_tag);
    } else if (direction == ONEDNN_WEIGHTS) {
        library_onednn_forget(&d.kernel);
        rc = library_onednn_order(&d.kernel, kernel_dims, dnnl_f32, dnnl_format_tag_any);
    }
    if (rc || (rc = library_onednn_convolution(&pd, c->engine, direction, &d, kind == FORWARD ? NULL : hint)) ||
        (rc = dnnl.primitive_create(&p->primitive, pd)) ||
        (rc = library_onednn_kernel(&blocking, &p->kernel, pd, direction, c->engine)) ||
        (rc = library_onednn_memory(&p->source, &d.source, c->engine)) ||
        (rc = library_onednn_memory(&p->result, &d.result, c->engine)))
        goto out;
    if (make_places(p, s, &blocking, weights || given == dnnl_f32 ? sizeof(float) : sizeof(uint16_t)) < 0) {
        rc = dnnl_out_of_memory;
        goto out;
    }
    dnnl.memory_set_data_handle(p->kernel, p->kernel_memory);
    p->arguments[0] = (dnnl_exec_arg_t){ kind == BACKWARD_DATA ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, p->source };
    p->arguments[1] = (dnnl_exec_arg_t){ weights ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, p->kernel };
    p->arguments[2] = (dnnl_exec_arg_t){ kind == FORWARD ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, p->result };
out:
    dnnl.primitive_desc_destroy(pd);
    dnnl.primitive_desc_destroy(hint);
    library_onednn_forget(&d.source);
    library_onednn_forget(&d.kernel);
    library_onednn_forget(&d.result);
    return rc;
}

static float *new_floats(size_t n)
{
    void *memory;

    return posix_memalign(&memory, 64, n * sizeof(float)) ? NULL : memory;
}

static int make_rounded(struct convolution *c)
{
    c->source_bfloat16 = bfloat16_new((size_t)c->s.images * source_size(c));
    c->result_bfloat16 = bfloat16_new((size_t)c->s.images * result_size(c));
    return c->source_bfloat16 && c->result_bfloat16 ? 0 : -1;
}

static int onednn_make(struct convolution **out, const struct convolution_shape *s, struct error *e)
{
    struct convolution *c = calloc(1, sizeof *c);
    int rc, threads;

    if (!c)
        return error_memory(e, NULL, "for a convolution");
    c->s = *s;
    c->kernel_count = (size_t)(s->window.height * s->window.width) * (size_t)s->channels * (size_t)s->out_channels;
    if (!s->bfloat16 && s->block == s->channels && onednn_block(s->channels, 0) != s->block &&
        !(c->planes = new_floats((size_t)s->images * (size_t)s->channels * (size_t)s->height * (size_t)s->width))) {
        free(c);
        return error_memory(e, NULL, "for a convolution");
    }
    if (s->bfloat16 && make_rounded(c) < 0) {
        onednn_release(c);
        return error_memory(e, NULL, "for a convolution");
    }
    threads = library_onednn_one_thread();
    if (!(rc = dnnl.engine_create(&c->engine, dnnl_cpu, 0)) &&
        !(rc = dnnl.stream_create(&c->stream, c->engine, dnnl_stream_default_flags)) &&
        !(rc = make_primitive(c, FORWARD, 1)) &&
        !(rc = s->need_data_gradient ? make_primitive(c, BACKWARD_DATA, 1) : 0) &&
        !(rc = s->forward_only ? 0 : make_primitive(c, BACKWARD_WEIGHTS_ONE, 1)) && !s->forward_only && s->images > 1)
        rc = make_primitive(c, BACKWARD_WEIGHTS, s->images);
    library_onednn_threads(threads);
    if (!rc && !s->forward_only && !(c->sum = new_floats(c->primitives[BACKWARD_WEIGHTS_ONE].kernel_size)))
        rc = dnnl_out_of_memory;
    if (rc) {
        onednn_release(c);
        return error_set(e, rc == dnnl_out_of_memory ? ERR_NOMEM : ERR_ARG,
                         "oneDNN cannot do a %dx%d convolution of %d to %d channels (status %d)", s->window.height,
                         s->window.width, s->channels, s->out_channels, rc);
    }
    *out = c;
    return OK;
}

static void put_kernel(const struct convolution *c, struct primitive *p, const float *w)
{
    if (p->primitive && c->s.bfloat16)
        for (size_t k = 0; k < c->kernel_count; k++)
            p->kernel_bfloat16[p->places[k]] = bfloat16_of(w[k]);
    else if (p->primitive)
        for (size_t k = 0; k < c->kernel_count; k++)
            p->kernel_memory[p->places[k]] = w[k];
}

static void onednn_prepare(struct convolution *c, const real *w, int backward)
{
    put_kernel(c, &c->primitives[FORWARD], w);
    if (backward) {
        put_kernel(c, &c->primitives[BACKWARD_DATA], w);
        memset(c->sum, 0, c->primitives[BACKWARD_WEIGHTS_ONE].kernel_size * sizeof *c->sum);
    }
}

/* Shapes and offsets are right by construction, and these calls allocate nothing, so nothing can fail. */
static void execute(struct convolution *c, struct primitive *p, const void *source, const void *result)
{
    dnnl.memory_set_data_handle(p->source, (void *)(uintptr_t)source);
    dnnl.memory_set_data_handle(p->result, (void *)(uintptr_t)result);
    dnnl.primitive_execute(p->primitive, c->stream, 3, p->arguments);
}

/* NHWC to planes, for the network's few input channels. */
static const float *source_of(struct convolution *c, int images, const float *x)
{
    const size_t pixels = (size_t)c->s.height * (size_t)c->s.width, channels = (size_t)c->s.channels;

    if (!c->planes)
        return x;
    for (size_t n = 0; n < (size_t)images; n++)
        for (size_t k = 0; k < channels; k++)
            for (size_t p = 0; p < pixels; p++)
                c->planes[(n * channels + k) * pixels + p] = x[(n * pixels + p) * channels + k];
    return c->planes;
}

static void onednn_forward(struct convolution *c, int images, const real *x, real *y)
{
    const float *source = source_of(c, images, x);

    for (size_t n = 0; n < (size_t)images; n++)
        execute(c, &c->primitives[FORWARD], source + n * source_size(c), y + n * result_size(c));
}

static void onednn_backward_data(struct convolution *c, int images, const real *dy, real *dx)
{
    const size_t pixels = (size_t)c->s.height * (size_t)c->s.width, channels = (size_t)c->s.channels;
    float *source = c->planes ? c->planes : dx;

    for (size_t n = 0; n < (size_t)images; n++)
        execute(c, &c->primitives[BACKWARD_DATA], source + n * source_size(c), dy + n * result_size(c));
    if (c->planes) /* a network never needs its input's gradient; other callers get it in NHWC */
        for (size_t n = 0; n < (size_t)images; n++)
            for (size_t k = 0; k < channels; k++)
                for (size_t p = 0; p < pixels; p++)
                    dx[(n * pixels + p) * channels + k] = c->planes[(n * channels + k) * pixels + p];
}

/* The primitives for all and for one image may order dw differently; both are added in the order of the latter. */
static void add_gradient(struct convolution *c, const struct primitive *p)
{
    const struct primitive *one = &c->primitives[BACKWARD_WEIGHTS_ONE];

    if (p == one || !memcmp(p->places, one->places, c->kernel_count * sizeof *p->places))
        for (size_t k = 0; k < one->kernel_size; k++)
            c->sum[k] += p->kernel_memory[k];
    else
        for (size_t k = 0; k < c->kernel_count; k++)
            c->sum[one->places[k]] += p->kernel_memory[p->places[k]];
}

static void onednn_backward_weights(struct convolution *c, int images, const real *x, const real *dy)
{
    const float *source = source_of(c, images, x);

    if (images == c->s.images && images > 1) {
        execute(c, &c->primitives[BACKWARD_WEIGHTS], source, dy);
        add_gradient(c, &c->primitives[BACKWARD_WEIGHTS]);
        return;
    }
    for (size_t n = 0; n < (size_t)images; n++) {
        execute(c, &c->primitives[BACKWARD_WEIGHTS_ONE], source + n * source_size(c), dy + n * result_size(c));
        add_gradient(c, &c->primitives[BACKWARD_WEIGHTS_ONE]);
    }
}

static void onednn_weights_gradient(struct convolution *c, real *dw)
{
    const uint32_t *places = c->primitives[BACKWARD_WEIGHTS_ONE].places;

    for (size_t k = 0; k < c->kernel_count; k++)
        dw[k] = c->sum[places[k]];
}

/* ---- bfloat16 ---------------------------------------------------------------------------------------------------- */

static void bfloat16_forward(struct convolution *c, int images, const real *x, real *y)
{
    bfloat16_round((size_t)images * source_size(c), x, c->source_bfloat16);
    for (size_t n = 0; n < (size_t)images; n++)
        execute(c, &c->primitives[FORWARD], c->source_bfloat16 + n * source_size(c), y + n * result_size(c));
}

static void bfloat16_backward_data(struct convolution *c, int images, const real *dy, real *dx)
{
    if (c->rounded_dy != dy)
        bfloat16_round((size_t)images * result_size(c), dy, c->result_bfloat16);
    c->rounded_dy = NULL;
    for (size_t n = 0; n < (size_t)images; n++)
        execute(c, &c->primitives[BACKWARD_DATA], dx + n * source_size(c), c->result_bfloat16 + n * result_size(c));
}

static void bfloat16_backward_weights(struct convolution *c, int images, const real *x, const real *dy)
{
    const int together = images == c->s.images && images > 1;
    struct primitive *p = &c->primitives[together ? BACKWARD_WEIGHTS : BACKWARD_WEIGHTS_ONE];

    bfloat16_round((size_t)images * source_size(c), x, c->source_bfloat16);
    bfloat16_round((size_t)images * result_size(c), dy, c->result_bfloat16);
    c->rounded_dy = dy;
    for (size_t n = 0; n < (together ? 1 : (size_t)images); n++) {
        execute(c, p, c->source_bfloat16 + n * source_size(c), c->result_bfloat16 + n * result_size(c));
        add_gradient(c, p);
    }
}

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
const struct convolution_backend convolution_onednn = {
    "oneDNN " TEXT(DNNL_VERSION_MAJOR) "." TEXT(DNNL_VERSION_MINOR),
    library_onednn_load,
    onednn_instructions,
    onednn_block,
    onednn_make,
    onednn_release,
    onednn_prepare,
    onednn_forward,
    onednn_backward_data,
    onednn_backward_weights,
    onednn_weights_gradient,
    NULL,
};
const struct convolution_backend convolution_bfloat16 = {
    "oneDNN " TEXT(DNNL_VERSION_MAJOR) "." TEXT(DNNL_VERSION_MINOR) " in bfloat16",
    library_onednn_load,
    onednn_instructions,
    bfloat16_block,
    onednn_make,
    onednn_release,
    onednn_prepare,
    bfloat16_forward,
    bfloat16_backward_data,
    bfloat16_backward_weights,
    onednn_weights_gradient,
    NULL,
};
