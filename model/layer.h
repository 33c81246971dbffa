/*
 * layer.h - inside a network: values (what flows between layers), layers, and the calls that run a layer on some
 * images. Only files of this folder include it; users see network.h, models see network_builder.h.
 *
 * A value is one array of reals per image, laid out (channels / block, height width, block): block = channels is NHWC,
 * block 16 is what vector code likes. Its gradient has the same shape. A layer works on a slice of a few images, so
 * that what one layer leaves in the cache the next one still finds there (network_plan.h says who decides).
 */
#ifndef MODEL_LAYER_H
#define MODEL_LAYER_H

#include "base/error.h"
#include "model/kernels/convolution.h"
#include "model/kernels/lrn.h"
#include "model/kernels/pool.h"
#include "model/network.h"
#include "model/real.h"

#include <stddef.h>
#include <stdint.h>

struct shape {
    int height, width, channels, block; /* block divides channels */
};

static inline size_t shape_pixels(const struct shape *s)
{
    return (size_t)s->height * (size_t)s->width;
}

static inline size_t shape_size(const struct shape *s) /* reals of one image */
{
    return shape_pixels(s) * (size_t)s->channels;
}

static inline size_t shape_planes(const struct shape *s) /* planes of (pixels, block) of one image */
{
    return (size_t)(s->channels / s->block);
}

enum { VALUE_NONE = -1, VALUE_IMAGES = 0 }; /* value 0 is what the network is fed */

struct value {
    struct shape shape;
    int producer;       /* layer that writes it; -1: the images */
    int consumers;
    int overwritten;    /* a layer works in place on it: nobody may use it any more */
    int data, gradient; /* the value whose memory it uses, itself unless it shares */
    /* Set by network_plan on values that own memory: whole batch (in the plan's long memory) or one slice (in the
     * memory that each segment uses anew), and the place in reals. */
    int data_whole, gradient_whole;
    int wanted_whole;   /* a layer wants it of all images at once */
    size_t data_place, gradient_place;
};

/* What one call on one batch is about. */
struct run {
    const real *parameters, *statistics;
    real *exchange;
    size_t parameter_count;
    int training, count;   /* count: images of the batch */
    const struct network_batch *batch;
    int64_t first_sample;  /* place of the batch's first image in the caller's */
    uint64_t seed;
    int64_t step;
    int ties_are_correct;
    struct network_result *result;
    network_leave *leave;  /* NULL: never */
    void *leave_context;
};

/* Images [first, first + count) of the batch, as pointers to the first of them. Gradients only in the backward pass.
 * other is the second input of layers that have one. */
struct slice {
    int first, count;
    const real *in, *other;
    real *out;
    real *gradient_in, *gradient_other;
    real *gradient_out;
};

struct layer;

struct layer_kind {
    const char *name;
    unsigned flags;
    /* Allocates what the layer needs for at most `slice` images a call and `batch` a step. */
    int (*make)(struct layer *l, int slice, int batch, struct error *e);
    void (*release)(struct layer *l);
    /* Each of these may be NULL. begin, end: once before and after all slices of the layer's segment. */
    void (*forward_begin)(struct layer *l, const struct run *r);
    void (*forward)(struct layer *l, const struct run *r, const struct slice *s);
    void (*forward_end)(struct layer *l, const struct run *r);
    void (*backward_begin)(struct layer *l, const struct run *r);
    void (*backward)(struct layer *l, const struct run *r, const struct slice *s);
    void (*backward_end)(struct layer *l, const struct run *r);
};

enum layer_flag {
    LAYER_KEEPS_IN = 1,         /* backward reads the input's data */
    LAYER_KEEPS_OUT = 2,        /* backward reads the output's data */
    LAYER_IN_PLACE = 4,         /* output and its gradient are the input's memory, changed */
    LAYER_AGAIN = 8,            /* cheap: made again in the backward pass instead of kept */
    LAYER_BARRIER = 16,         /* forward needs all earlier layers done on the whole batch */
    LAYER_TRAINING_ONLY = 32,   /* not run by inference */
    LAYER_NO_GRADIENT_IN = 64,  /* backward leaves the input's gradient to another layer */
    LAYER_OTHER_GRADIENT = 128, /* of its second value it wants the gradient only, and changes nothing there */
    LAYER_ADDS = 256,           /* backward can add to gradient_in by itself when accumulate is set */
    LAYER_SCORES = 512,         /* needs labels */
    LAYER_KEEPS_SIGN = 1024,    /* in place, but what was positive stays so unless its gradient becomes 0 */
};

struct batch_norm; /* layer_batch_norm.c */
struct batch_norm *layer_batch_norm_new(size_t channels); /* NULL without memory; layer_statistics releases it */

struct layer {
    const struct layer_kind *kind;
    int in, other, out;           /* values; VALUE_NONE where there is none */
    int whole;                    /* wants all images of the batch in one slice */
    struct shape in_shape, out_shape;
    size_t parameter[2];          /* offsets of its variables: kernel, or bias, or beta and gamma */
    size_t statistic[2];          /* moving mean, moving variance */
    size_t low;                   /* lowest offset of its parameters; SIZE_MAX without */
    /* Set by network_plan: */
    int segment;
    int wants_gradient;           /* 0: nothing before it learns, gradient_in is NULL */
    int accumulate;               /* the input's gradient holds another consumer's part: add to it */
    int accumulate_other, shares_other; /* the same for the second input; shares: nothing to do */
    /* Options and memory of the kinds: */
    const struct convolution_backend *backend;
    struct convolution *convolution;
    struct convolution_shape convolution_shape;
    struct pool_shape pool;
    uint8_t *winner;              /* (batch, out) of max pooling */
    struct lrn_shape lrn;
    struct batch_norm *norm;      /* shared by the two halves; the first owns it */
    double epsilon, keep, slope;
    int relu, leaky_rule, number; /* number: of this dropout among the network's */
    double *sums;                 /* (channels) */
    real *flat;                   /* (batch, size) */
};

/* A sample's random numbers come in 2^24 blocks of four (base/random.h): so many each for so many dropouts. */
enum { DROPOUT_BLOCKS = 18, DROPOUTS_MAX = 1 << (24 - DROPOUT_BLOCKS), DROPOUT_SIZE_MAX = 4 << DROPOUT_BLOCKS };

/* The kinds, one file a family: layer_convolution.c, layer_batch_norm.c, layer_pool.c, layer_activation.c,
 * layer_dense.c. */
extern const struct layer_kind layer_convolution, layer_statistics, layer_normalize, layer_max_pool,
    layer_average_pool, layer_widen, layer_reblock, layer_lrn, layer_bias, layer_leaky, layer_add, layer_dropout,
    layer_dense, layer_cross_entropy;

#endif
