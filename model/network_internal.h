/*
 * network_internal.h - what is built: the table of variables and the plan; and what the layers' builder calls add to it
 * (model/layers/, one file a layer with its call, its kind and its state). Only files of model/ include it.
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
    struct error error;         /* the first mistake */
};

/* A layer of that kind from value `in` to a new value of shape `out`, with so many bytes of state of its own, zeroed.
 * NULL, and the mistake is kept, where it cannot be. Good until the next layer is added. */
struct layer *network_builder_layer(struct network_builder *b, const struct layer_kind *kind, int in, struct shape out,
                                    size_t state_size);
/* The same from 1 to LAYER_INPUTS_MAX values. */
struct layer *network_builder_layer_of(struct network_builder *b, const struct layer_kind *kind, const int *in,
                                       int in_count, struct shape out, size_t state_size);
/* The same to a value that is there: the second half of a layer that is two. */
struct layer *network_builder_layer_to(struct network_builder *b, const struct layer_kind *kind, int in, int out,
                                       size_t state_size);
/* One more input of l, unchecked. */
void network_builder_input(struct network_builder *b, struct layer *l, int in, int gradient_only);
/* Keeps the first mistake. Returns VALUE_NONE. */
int network_builder_refuse(struct network_builder *b, const char *layer, const char *why);

struct shape network_builder_shape(const struct network_builder *b, int value);
/* The same values with all channels side by side. */
int network_builder_reblock(struct network_builder *b, int in);
/* Fits w to images of x's size, and gives y the size of what comes of it. 0, and the mistake is kept, if it cannot. */
int network_builder_fit(struct network_builder *b, const char *layer, struct window *w, const struct shape *x,
                        struct shape *y);

/* New variables; their places. */
size_t network_builder_kernel(struct network_builder *b, const char *name, int rank, const int64_t *shape,
                              const struct kernel_options *options);
size_t network_builder_constant(struct network_builder *b, const char *scope, const char *name, enum variable_kind kind,
                                int channels, double initial, const char *debias_scope);

void network_builder_init(struct network_builder *b, const struct model *model);
void network_builder_release(struct network_builder *b);

#endif
