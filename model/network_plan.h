/*
 * network_plan.h - the layers of a network in order: where their values are stored, and how they run.
 *
 * Layers are grouped into segments: a new one begins at a layer that needs the whole batch (the second half of batch
 * norm), and where layers change between working on slices and on the whole batch (dense layers). Within a segment a
 * slice of a few images goes through all layers before the next slice starts, so the values between them stay in the
 * cache. Values that cross segments, or that the backward pass reads and cannot cheaply compute again, are kept for the
 * whole batch; the others have room for one slice, which each segment reuses. The size of slices depends only on the
 * shapes, so results depend neither on max_batch nor on the machine's cache. In inference no layer before the dense
 * ones needs the whole batch: there a slice goes through all segments before the next one starts.
 *
 * The plan of a network for inference alone keeps nothing for a backward pass. There segments begin where values become
 * smaller, so that slices grow with depth: then a layer reads its weights, of which deep ones have more, for more
 * images, and pixels of several images fill the vectors and tiles of one product.
 */
#ifndef MODEL_NETWORK_PLAN_H
#define MODEL_NETWORK_PLAN_H

#include "model/layer.h"

struct segment {
    int first, last; /* layers [first, last) */
    int slice;       /* images at a time */
    size_t low;      /* lowest parameter offset of its layers; SIZE_MAX without parameters */
};

struct network_plan {
    struct layer *layers;
    struct value *values;
    int layer_count, value_count;
    size_t layer_room, value_room;
    struct segment *segments;
    int segment_count;
    int logits; /* value */
    int dropouts;
    int infers; /* 1: for inference alone */
    real *whole, *local, *temporary;
    void *memory;
};

void network_plan_release(struct network_plan *p);

/* Adds a zeroed layer or value; NULL: no memory. Pointers into the arrays are valid until the next call. */
struct layer *network_plan_add_layer(struct network_plan *p);
struct value *network_plan_add_value(struct network_plan *p);

/* Call after the last layer: makes segments, offsets and memory for batches of up to max_batch images. infers: no run
 * will be training. */
int network_plan_finish(struct network_plan *p, int max_batch, int infers, struct error *e);

/* Inference runs at most this many images at a time. */
enum { NETWORK_PLAN_INFERENCE = 128 };

/* Loads the parameters (and for inference the moving statistics): call once before any number of forward passes. */
void network_plan_begin(struct network_plan *p, const struct run *r);
/* Samples [r->first_sample, r->first_sample + r->count) of r->input. With r->batch they are scored. 1: done, 0: left
 * half-way, in training, because r->leave asked for it. */
int network_plan_forward(struct network_plan *p, const struct run *r);
int network_plan_backward(struct network_plan *p, const struct run *r);
const real *network_plan_logits(const struct network_plan *p); /* of the last forward pass */

#endif
