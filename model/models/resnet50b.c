/*
 * ResNet-50 "b", also known as v1.5: the stride of a stage is that of the 3x3 convolution of its first unit.
 * Padding of the maximum and initial values are those of TensorFlow's benchmarks.
 */
#include "model/models/models.h"

#include "model/models/residual_50.h"

static int resnet50b_build(struct network_builder *b, struct error *e)
{
    (void)e;
    residual_50_build(b, &(struct residual_50){
                             .stride_first = 0,
                             .pool = window_same(3, 2),
                             .head = { INITIAL_TRUNCATED_NORMAL, 0.022097086912079608, 1e-4 }, /* sqrt(1 / 2048) */
                             .initial = INITIAL_VARIANCE_SCALING,
                         });
    return OK;
}

const struct model model_resnet50b = {
    .name = "resnet50b",
    .height = 224,
    .width = 224,
    .channels = 3,
    .classes = 1000,
    .transform = "imagenet-eval",
    .statistics_decay = 0.9,
    .build = resnet50b_build,
};
