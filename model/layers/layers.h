/* layers.h - the table of layers: a row is the end of layer_call_NAME, in the order in which documents show them. */
#ifndef MODEL_LAYERS_LAYERS_H
#define MODEL_LAYERS_LAYERS_H

#include "model/layer_call.h"

#define LAYERS(ROW) \
    ROW(convolution) \
    ROW(dense) \
    ROW(bias) \
    ROW(relu) \
    ROW(leaky) \
    ROW(batch_norm) \
    ROW(max_pool) \
    ROW(average_pool) \
    ROW(global_average_pool) \
    ROW(lrn) \
    ROW(dropout) \
    ROW(add) \
    ROW(concat) \
    ROW(widen) \
    ROW(embedding) \
    ROW(image_features) \
    ROW(stack) \
    ROW(lstm) \
    ROW(cross_entropy)

#define LAYER_DECLARATION(name) extern const struct layer_call layer_call_##name;
LAYERS(LAYER_DECLARATION)
#undef LAYER_DECLARATION

#endif
