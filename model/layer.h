/*
 * layer.h - inside a network: values (what flows between layers), layers, and the calls that run a layer on some
 * images. Only files of model/ include it; users see network.h, models see network_builder.h.
 *
 * A value is one array of reals per image, laid out (channels / block, height width, block): block = channels is NHWC,
 * block 16 is what vector code likes. Its gradient has the same shape. A layer works on a slice of a few images, so
 * that what one layer leaves in the cache the next one still finds there (network_plan.h says who decides).
 */
#ifndef MODEL_LAYER_H
#define MODEL_LAYER_H

#include "base/error.h"
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
    const struct field *input; /* what the network is fed, of all samples of the batch */
    const struct gradient_sink *sink; /* training; NULL: nobody is told */
    const struct batch *batch; /* NULL: it is not scored */
    const float *weights;  /* of the batch's labels; NULL: all are 1 */
    double weight;         /* of the whole batch; training */
    int64_t first_sample;  /* place of the batch's first image in the caller's */
    uint64_t seed;
    int ties_are_correct;
    struct score *score;
    network_leave *leave;  /* NULL: never */
    void *leave_context;
};

enum { LAYER_INPUTS_MAX = 8 };

/* Images [first, first + count) of the batch, as pointers to the first of them; in and gradient_in are the first
 * input's. Gradients only in the backward pass, an input's only where the layer has to make it, or only reads it. */
struct slice {
    int first, count;
    union { const real *in, *ins[LAYER_INPUTS_MAX]; };
    union { real *gradient_in, *gradients_in[LAYER_INPUTS_MAX]; };
    real *out, *gradient_out;
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
    LAYER_KEEPS_IN = 1,         /* backward reads the inputs' data */
    LAYER_KEEPS_OUT = 2,        /* backward reads the output's data */
    LAYER_IN_PLACE = 4,         /* output and its gradient are the first input's memory, changed */
    LAYER_AGAIN = 8,            /* cheap: made again in the backward pass instead of kept */
    LAYER_BARRIER = 16,         /* forward needs all earlier layers done on the whole batch */
    LAYER_TRAINING_ONLY = 32,   /* not run by inference */
    LAYER_NO_GRADIENT_IN = 64,  /* backward leaves the inputs' gradients to another layer */
    LAYER_ADDS = 128,           /* backward adds to inputs' gradients by itself, in order, where accumulate is set */
    LAYER_SCORES = 256,         /* needs labels */
    LAYER_READS_INTEGERS = 1024, /* its input is what the network is fed, and that is integers */
    LAYER_KEEPS_SIGN = 512,     /* in place, but what was positive stays so unless its gradient becomes 0 */
};

struct layer_input {
    int value;
    int gradient_only; /* a later layer makes it: backward reads its gradient, and that is all the layer does with it */
    /* Set by network_plan: */
    int wanted;        /* 0: nothing before it learns, so nobody needs its gradient */
    int accumulate;    /* its gradient holds another consumer's part: add to it */
    int shared;        /* its gradient is in the output's memory already */
};

struct layer {
    const struct layer_kind *kind;
    struct layer_input inputs[LAYER_INPUTS_MAX];
    int input_count, out;         /* out: value; VALUE_NONE where there is none */
    int reads_sign;               /* 1: backward looks at the sign of its output */
    int whole;                    /* wants all images of the batch in one slice */
    union { struct shape in_shape, in_shapes[LAYER_INPUTS_MAX]; }; /* in_shape: the first input's */
    struct shape out_shape;
    size_t low;                   /* lowest offset of its parameters; SIZE_MAX without */
    void *state;                  /* of its kind: options, places of variables, memory; the plan frees it */
    int segment;                  /* set by network_plan */
};

#endif
