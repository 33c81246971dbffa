/*
 * network_internal.h - a network under construction: the table of variables and the plan, and the calls with which the
 * layers (model/layers/, one file per layer with its builder call, kind and state) add to them. Only files in model/
 * include it.
 */
#ifndef MODEL_NETWORK_INTERNAL_H
#define MODEL_NETWORK_INTERNAL_H

#include "model/network_builder.h"
#include "model/network_plan.h"

struct network_builder {
    const struct model *model;
    struct variable *variables; /* in order of construction */
    size_t variable_count, variable_room;
    size_t parameters, statistics; /* reals so far */
    struct network_plan plan;
    struct error error; /* the first mistake */
};

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

struct shape network_builder_shape(const struct network_builder *b, int value);
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
