/*
 * layer.h - the inside of a network: values (the data between layers), layers, and the calls that run a layer on some
 * images. Only files in model/ include it; users include network.h, models network_builder.h.
 *
 * A value is one array of reals per image, laid out (channels / block, height width, block): block = channels is NHWC,
 * block 16 suits vector code. Its gradient has the same shape. A layer works on a slice of a few images, so that what
 * one layer leaves in the cache is still there for the next one (network_plan.h decides the slices).
 */
#ifndef MODEL_LAYER_H
#define MODEL_LAYER_H

#include "base/batch.h"
#include "base/error.h"
#include "model/model.h"
#include "model/real.h"
#include "model/variable.h"

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

enum { VALUE_NONE = -1, VALUE_IMAGES = 0 }; /* value 0 is the network's input */

struct value {
    struct shape shape;
    int producer; /* layer that writes it; -1: the images */
    int consumers;
    int overwritten;    /* a layer works on it in place: nobody else may use it any more */
    int data, gradient; /* the value whose memory it uses; itself unless shared */
    /* Set by network_plan on values that own memory: whole batch (in the plan's long memory) or one slice (in the
     * memory that each segment reuses), and the offset in reals. */
    int data_whole, gradient_whole;
    int wanted_whole; /* a layer needs it for all images at once */
    size_t data_place, gradient_place;
};

/* The parameters of one call on one batch. */
struct run {
    const real *parameters, *statistics;
    real *exchange;
    size_t parameter_count;
    int training, count;              /* count: images of the batch */
    const struct field *input;        /* the network's input, for all samples of the batch */
    const struct field *features;     /* beside it, of models that read some; NULL: zeros */
    const struct gradient_sink *sink; /* training; NULL: nobody is told */
    const struct batch *batch;        /* NULL: not scored */
    const float *weights;             /* of the batch's labels; NULL: all are 1 */
    double weight;                    /* of the whole batch; training */
    int64_t first_sample;             /* index of the batch's first image in the caller's batch */
    uint64_t seed;
    int ties_are_correct;
    struct score *score;
    network_leave *leave; /* NULL: never */
    void *leave_context;
};

enum { LAYER_INPUTS_MAX = 8 };

/* Images [first, first + count) of the batch, as pointers to the first of them; in and gradient_in are the first
 * input's. Gradients only in the backward pass; an input's gradient only if the layer must make it, or only reads
 * it. */
struct slice {
    int first, count;
    union {
        const real *in, *ins[LAYER_INPUTS_MAX];
    };
    union {
        real *gradient_in, *gradients_in[LAYER_INPUTS_MAX];
    };
    real *out, *gradient_out;
};

struct layer;

/* What a layer does to each number of its first input, where it is no more than this: leaky(scale x + offset), with
 * numbers of its channel, or, if scale is NULL, x plus its second input. */
struct layer_finish {
    const real *scale, *offset; /* (channels), aligned to 64 bytes; right once forward_begin was called */
    real slope;                 /* from 0 to 1 */
};

struct layer_kind {
    const char *name;
    unsigned flags;
    /* Allocates what the layer needs for at most `slice` images per call and `batch` per step. */
    int (*make)(struct layer *l, int slice, int batch, struct error *e);
    void (*release)(struct layer *l);
    /* Each of these may be NULL. begin, end: called once before and after all slices of the layer's segment. */
    void (*forward_begin)(struct layer *l, const struct run *r);
    void (*forward)(struct layer *l, const struct run *r, const struct slice *s);
    void (*forward_end)(struct layer *l, const struct run *r);
    void (*backward_begin)(struct layer *l, const struct run *r);
    void (*backward)(struct layer *l, const struct run *r, const struct slice *s);
    void (*backward_end)(struct layer *l, const struct run *r);
    /* Inference, after make: what forward does, if it is that. 0: it is more. */
    int (*finish)(const struct layer *l, struct layer_finish *f);
    /* Inference: forward does this, too, from now on, and a later layer no longer; if that adds, its second input is
     * the last of this one's. 0: it cannot. */
    int (*take_finish)(struct layer *l, const struct layer_finish *f);
};

enum layer_flag {
    LAYER_KEEPS_IN = 1,          /* backward reads the inputs' data */
    LAYER_KEEPS_OUT = 2,         /* backward reads the output's data */
    LAYER_IN_PLACE = 4,          /* the output and its gradient replace the first input's in its memory */
    LAYER_AGAIN = 8,             /* cheap: computed again in the backward pass instead of kept */
    LAYER_BARRIER = 16,          /* forward needs all earlier layers done on the whole batch */
    LAYER_TRAINING_ONLY = 32,    /* not run by inference */
    LAYER_NO_GRADIENT_IN = 64,   /* backward leaves the inputs' gradients to another layer */
    LAYER_ADDS = 128,            /* backward itself adds to inputs' gradients, in order, if accumulate is set */
    LAYER_SCORES = 256,          /* needs labels */
    LAYER_KEEPS_SIGN = 512,      /* in place, but positive values stay positive unless their gradient becomes 0 */
    LAYER_READS_INTEGERS = 1024, /* its input is the network's, and holds integers */
    LAYER_MAKES_IMAGE = 2048,    /* the pixels of its output are those of an image, whatever its input is */
    LAYER_MAKES_ROWS = 4096,     /* they are steps of a sequence, or rows of another kind */
};

struct layer_input {
    int value;
    int gradient_only; /* a later layer makes it; this layer only reads its gradient in backward */
    /* Set by network_plan: */
    int wanted;     /* 0: nothing before it learns, so its gradient is not needed */
    int accumulate; /* its gradient holds another consumer's part: add to it */
    int shared;     /* its gradient is already in the output's memory */
};

struct layer {
    const struct layer_kind *kind;
    struct layer_input inputs[LAYER_INPUTS_MAX];
    int input_count, out; /* out: value; VALUE_NONE: none */
    int reads_sign;       /* 1: backward reads the sign of its output */
    int whole;            /* needs all images of the batch in one slice */
    union {
        struct shape in_shape, in_shapes[LAYER_INPUTS_MAX];
    }; /* in_shape: the first input's */
    struct shape out_shape;
    size_t low;            /* lowest offset of its parameters; SIZE_MAX without */
    size_t zero, zero_end; /* parameters [zero, zero_end) are frozen: no gradient */
    int frozen;            /* all its parameters are */
    int idle;              /* set by network_plan: nothing in it or before it learns, so it has no backward pass */
    void *state;           /* of its kind: options, offsets of variables, memory; the plan frees it */
    int infers;            /* set by network_plan: the network is for inference alone */
    int taken;             /* set by network_plan: an earlier layer does what its forward does */
    int segment;           /* set by network_plan */
};

#endif
