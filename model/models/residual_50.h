/* residual_50.h - the layers of ResNet-50, which resnet50, resnet50b and resnet50_torchvision share. */
#ifndef MODEL_MODELS_RESIDUAL_50_H
#define MODEL_MODELS_RESIDUAL_50_H

#include "model/network_builder.h"

struct residual_50 {
    int stride_first;   /* 1: the stride of a stage is that of its first 1x1 convolution (v1); 0: of its 3x3 (b) */
    struct window pool; /* of the maximum behind the first convolution */
    struct kernel_options head, bias; /* of the dense layer */
    enum initial_kind initial;        /* of convolutions */
};

/* All layers, to the cross entropy of 1000 classes. */
void residual_50_build(struct network_builder *b, const struct residual_50 *r);

#endif
