/*
 * ResNet-50 as torchvision has it: resnet50b, but the maximum pads one pixel on each side, and the initial values are
 * PyTorch's. Its published weights give here what they give there.
 */
#include "model/models/models.h"

#include "model/models/residual_50.h"

static int resnet50_torchvision_build(struct network_builder *b, struct error *e)
{
    static const double bound = 0.022097086912079608; /* sqrt(1 / 2048) */
    struct window pool = window_valid(3, 2);

    (void)e;
    pool.top = pool.bottom = pool.left = pool.right = 1;
    residual_50_build(b, &(struct residual_50){
                             .pool = pool,
                             .head = { INITIAL_UNIFORM, bound, 1e-4 },
                             .bias = { INITIAL_UNIFORM, bound, 0 },
                             .initial = INITIAL_HE_FAN_OUT,
                         });
    return OK;
}

const struct model model_resnet50_torchvision = {
    .name = "resnet50_torchvision",
    .height = 224,
    .width = 224,
    .channels = 3,
    .classes = 1000,
    .transform = "imagenet-eval",
    .statistics_decay = 0.9,
    .build = resnet50_torchvision_build,
};
