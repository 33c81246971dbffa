/*
 * network_internal.h - a network under construction: the table of variables and the plan, and the calls with which the
 * layers (model/layers/, one file per layer with its builder call, kind and state) add to them. Only files in model/
 * include it.
 */
#ifndef MODEL_NETWORK_INTERNAL_H
#define MODEL_NETWORK_INTERNAL_H

#include "model/layer_call.h"
#include "model/network_builder.h"
#include "model/network_plan.h"

struct convolution_backend;

struct network_builder {
    const struct model *model;
    struct variable *variables; /* in order of construction */
    size_t variable_count, variable_room;
    size_t parameters, statistics; /* reals so far */
    struct network_plan plan;
    struct network_call *calls; /* (call_count) in order */
    size_t call_count, call_room;
    size_t values;      /* reals of all values of one sample */
    size_t noted[2];    /* parameters and statistics of the calls so far */
    const char *place;  /* "net.model: line 3: dense" for the first mistake; NULL: the number of the layer */
    struct error error; /* the first mistake */
};

/* Remembers a call that succeeded: each builder call ends with it. name: of its variables, or "". */
void network_builder_note(struct network_builder *b, const char *name, const struct network_call *call);

/* A window as arguments of a call, and back. standard: the stride where none is said; 0: the size. */
#define SIZE_ARGUMENT(w) \
    { \
        { \
            (w).height, (w).width \
        } \
    }
#define STRIDE_ARGUMENT(w) \
    { \
        { \
            (w).stride_height, (w).stride_width \
        } \
    }
#define PADDING_ARGUMENT(w) \
    { \
        { \
            (double)(w).padding, (w).top, (w).bottom, (w).left, (w).right \
        } \
    }
#define INITIAL_ARGUMENT(options) \
    { \
        { \
            (double)(options)->initial, (options)->initial_value \
        } \
    }
struct window network_builder_window(const struct argument *size, const struct argument *stride,
                                     const struct argument *padding, int standard);
struct kernel_options network_builder_kernel_options(const struct argument *initial, const struct argument *decay);

/* Keeps the first mistake. VALUE_NONE. */
int network_builder_fail(struct network_builder *b, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds a layer of that kind from value `in` to a new value of shape `out`, with `state_size` zeroed bytes of state.
 * NULL: impossible, and the mistake is kept. Valid until the next layer is added. */
struct layer *network_builder_layer(struct network_builder *b, const struct layer_kind *kind, int in, struct shape out,
                                    size_t state_size);
/* The same from 1 to LAYER_INPUTS_MAX values. */
struct layer *network_builder_layer_of(struct network_builder *b, const struct layer_kind *kind, const int *in,
                                       int in_count, struct shape out, size_t state_size);
/* The same to an existing value: the second half of a layer made of two. */
struct layer *network_builder_layer_to(struct network_builder *b, const struct layer_kind *kind, int in, int out,
                                       size_t state_size);
/* Adds an input to l, unchecked. */
void network_builder_input(struct network_builder *b, struct layer *l, int in, int gradient_only);
/* Keeps the first mistake. Returns VALUE_NONE. */
int network_builder_refuse(struct network_builder *b, const char *layer, const char *why);

/* What convolutions and products compute in: the model's precision, or float32 where the processor lacks it. */
enum precision network_builder_computes(const struct network_builder *b);
/* What computes convolutions in that precision; OpenBLAS, on NHWC, computes what it cannot. */
const struct convolution_backend *network_builder_convolves(const struct network_builder *b);
/* The block in which it wants values of so many channels; 0: it wants none. */
int network_builder_block(const struct network_builder *b, int channels);

struct shape network_builder_shape(const struct network_builder *b, int value);
/* 1: its pixels are those of an image, 0: steps of a sequence or the like, as the last layer says that decides it. */
int network_builder_is_image(const struct network_builder *b, int value);
/* The same values with all channels side by side. */
int network_builder_reblock(struct network_builder *b, int in);
/* Fits w to images of x's size, and sets y to the size of the output. 0: impossible, and the mistake is kept. */
int network_builder_fit(struct network_builder *b, const char *layer, struct window *w, const struct shape *x,
                        struct shape *y);

/* Add variables; return their offsets. */
size_t network_builder_kernel(struct network_builder *b, const char *name, int rank, const int64_t *shape,
                              const struct kernel_options *options);
size_t network_builder_constant(struct network_builder *b, const char *scope, const char *name, enum variable_kind kind,
                                int channels, double initial, const char *debias_scope);

void network_builder_init(struct network_builder *b, const struct model *model);
void network_builder_release(struct network_builder *b);

#endif
