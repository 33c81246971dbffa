/*
 * Inception v3 (Szegedy et al. 2015, "Rethinking the Inception architecture for computer vision") without its logits,
 * as TensorFlow's slim has it and im2txt uses it: 94 convolutions with batch norms that have no gamma, and the mean
 * over all pixels, 2,048 features of an image. 21,768,352 parameters and 34,432 moving statistics, in slim's names, two
 * of which tell another shape than their layer has (Conv_1_0c_5x5, Conv2d_1a_1x1 of 3x3). Specification of the seed
 * models, section 6. Images are 299x299; smaller ones, down to 75x75, give smaller planes, of which the mean is taken.
 *
 * What a checkpoint of slim has beside it, the logits and the auxiliary head, is not read.
 */
#include "model/models/models.h"

#include "model/network_builder.h"

#include <stdio.h>

enum { FEATURES = 2048 };
enum place { AROUND, WITHIN }; /* SAME, VALID */

static const double epsilon = 0.001;

static int inception_convolution(struct network_builder *b, int x, const char *scope, const char *name, int height,
                                 int width, int channels, int stride, enum place place)
{
    const struct kernel_options kernel = { INITIAL_VARIANCE_SCALING, 0, 0.00004 };
    const struct batch_norm_options norm = { .epsilon = epsilon, .slope = 0, .unbiased = 1, .leave_gamma = 1 };
    struct window window = window_valid(height, stride);
    char full[96];

    window.width = width;
    window.padding = place == AROUND ? PADDING_SAME : PADDING_EXPLICIT;
    snprintf(full, sizeof full, "InceptionV3/%s%s/weights", scope, name);
    x = network_builder_convolution(b, x, full, channels, window, &kernel);
    snprintf(full, sizeof full, "InceptionV3/%s%s/BatchNorm", scope, name);
    return network_builder_batch_norm(b, x, full, &norm);
}

/* A row of a branch; those of a branch follow each other. */
struct step {
    const char *scope, *name;
    int height, width, channels;
};

static int branch(struct network_builder *b, int x, const struct step *steps, int count)
{
    for (int k = 0; k < count; k++)
        x = inception_convolution(b, x, steps[k].scope, steps[k].name, steps[k].height, steps[k].width,
                                  steps[k].channels, 1, AROUND);
    return x;
}

/* The mean of each 3x3 window, and a 1x1 convolution. */
static int pooled(struct network_builder *b, int x, const char *scope, int channels)
{
    x = network_builder_average_pool(b, x, window_same(3, 1));
    return inception_convolution(b, x, scope, "Conv2d_0b_1x1", 1, 1, channels, 1, AROUND);
}

/* The scopes of a block's branches. */
struct block {
    char of[4][24];
};

static struct block block_named(const char *name)
{
    struct block s;

    for (int k = 0; k < 4; k++)
        snprintf(s.of[k], sizeof s.of[k], "Mixed_%s/Branch_%d/", name, k);
    return s;
}

/* Of 35x35 pixels. */
static int block_5(struct network_builder *b, int x, const char *name, const char *first, const char *second, int last)
{
    const struct block s = block_named(name);
    const struct step one[] = { { s.of[0], "Conv2d_0a_1x1", 1, 1, 64 } },
                      two[] = { { s.of[1], first, 1, 1, 48 }, { s.of[1], second, 5, 5, 64 } },
                      three[] = { { s.of[2], "Conv2d_0a_1x1", 1, 1, 64 },
                                  { s.of[2], "Conv2d_0b_3x3", 3, 3, 96 },
                                  { s.of[2], "Conv2d_0c_3x3", 3, 3, 96 } };
    int all[4];

    all[0] = branch(b, x, one, 1);
    all[1] = branch(b, x, two, 2);
    all[2] = branch(b, x, three, 3);
    all[3] = pooled(b, x, s.of[3], last);
    return network_builder_concat(b, all, 4);
}

/* From 35x35 to 17x17 pixels. */
static int block_6a(struct network_builder *b, int x)
{
    const struct block s = block_named("6a");
    const struct step two[] = { { s.of[1], "Conv2d_0a_1x1", 1, 1, 64 }, { s.of[1], "Conv2d_0b_3x3", 3, 3, 96 } };
    int all[3];

    all[0] = inception_convolution(b, x, s.of[0], "Conv2d_1a_1x1", 3, 3, 384, 2, WITHIN);
    all[1] = inception_convolution(b, branch(b, x, two, 2), s.of[1], "Conv2d_1a_1x1", 3, 3, 96, 2, WITHIN);
    all[2] = network_builder_max_pool(b, x, window_valid(3, 2));
    return network_builder_concat(b, all, 3);
}

/* Of 17x17 pixels, whose inner layers are so wide. */
static int block_6(struct network_builder *b, int x, const char *name, int inner)
{
    const struct block s = block_named(name);
    const struct step one[] = { { s.of[0], "Conv2d_0a_1x1", 1, 1, 192 } },
                      two[] = { { s.of[1], "Conv2d_0a_1x1", 1, 1, inner },
                                { s.of[1], "Conv2d_0b_1x7", 1, 7, inner },
                                { s.of[1], "Conv2d_0c_7x1", 7, 1, 192 } },
                      three[] = { { s.of[2], "Conv2d_0a_1x1", 1, 1, inner },
                                  { s.of[2], "Conv2d_0b_7x1", 7, 1, inner },
                                  { s.of[2], "Conv2d_0c_1x7", 1, 7, inner },
                                  { s.of[2], "Conv2d_0d_7x1", 7, 1, inner },
                                  { s.of[2], "Conv2d_0e_1x7", 1, 7, 192 } };
    int all[4];

    all[0] = branch(b, x, one, 1);
    all[1] = branch(b, x, two, 3);
    all[2] = branch(b, x, three, 5);
    all[3] = pooled(b, x, s.of[3], 192);
    return network_builder_concat(b, all, 4);
}

/* From 17x17 to 8x8 pixels. */
static int block_7a(struct network_builder *b, int x)
{
    const struct block s = block_named("7a");
    const struct step one[] = { { s.of[0], "Conv2d_0a_1x1", 1, 1, 192 } },
                      two[] = { { s.of[1], "Conv2d_0a_1x1", 1, 1, 192 },
                                { s.of[1], "Conv2d_0b_1x7", 1, 7, 192 },
                                { s.of[1], "Conv2d_0c_7x1", 7, 1, 192 } };
    int all[3];

    all[0] = inception_convolution(b, branch(b, x, one, 1), s.of[0], "Conv2d_1a_3x3", 3, 3, 320, 2, WITHIN);
    all[1] = inception_convolution(b, branch(b, x, two, 3), s.of[1], "Conv2d_1a_3x3", 3, 3, 192, 2, WITHIN);
    all[2] = network_builder_max_pool(b, x, window_valid(3, 2));
    return network_builder_concat(b, all, 3);
}

/* Of 8x8 pixels; column: the name of the 3x1 convolution of the second branch. */
static int block_7(struct network_builder *b, int x, const char *name, const char *column)
{
    const struct block s = block_named(name);
    const struct step one[] = { { s.of[0], "Conv2d_0a_1x1", 1, 1, 320 } },
                      two[] = { { s.of[1], "Conv2d_0a_1x1", 1, 1, 384 } },
                      three[] = { { s.of[2], "Conv2d_0a_1x1", 1, 1, 448 }, { s.of[2], "Conv2d_0b_3x3", 3, 3, 384 } };
    int all[6], y;

    all[0] = branch(b, x, one, 1);
    y = branch(b, x, two, 1);
    all[1] = inception_convolution(b, y, s.of[1], "Conv2d_0b_1x3", 1, 3, 384, 1, AROUND);
    all[2] = inception_convolution(b, y, s.of[1], column, 3, 1, 384, 1, AROUND);
    y = branch(b, x, three, 2);
    all[3] = inception_convolution(b, y, s.of[2], "Conv2d_0c_1x3", 1, 3, 384, 1, AROUND);
    all[4] = inception_convolution(b, y, s.of[2], "Conv2d_0d_3x1", 3, 1, 384, 1, AROUND);
    all[5] = pooled(b, x, s.of[3], 192);
    return network_builder_concat(b, all, 6);
}

static int inception_v3_build(struct network_builder *b, struct error *e)
{
    int x = network_builder_images(b);

    (void)e;
    x = inception_convolution(b, x, "", "Conv2d_1a_3x3", 3, 3, 32, 2, WITHIN);
    x = inception_convolution(b, x, "", "Conv2d_2a_3x3", 3, 3, 32, 1, WITHIN);
    x = inception_convolution(b, x, "", "Conv2d_2b_3x3", 3, 3, 64, 1, AROUND);
    x = network_builder_max_pool(b, x, window_valid(3, 2));
    x = inception_convolution(b, x, "", "Conv2d_3b_1x1", 1, 1, 80, 1, WITHIN);
    x = inception_convolution(b, x, "", "Conv2d_4a_3x3", 3, 3, 192, 1, WITHIN);
    x = network_builder_max_pool(b, x, window_valid(3, 2));
    x = block_5(b, x, "5b", "Conv2d_0a_1x1", "Conv2d_0b_5x5", 32);
    x = block_5(b, x, "5c", "Conv2d_0b_1x1", "Conv_1_0c_5x5", 64);
    x = block_5(b, x, "5d", "Conv2d_0a_1x1", "Conv2d_0b_5x5", 64);
    x = block_6a(b, x);
    x = block_6(b, x, "6b", 128);
    x = block_6(b, x, "6c", 160);
    x = block_6(b, x, "6d", 160);
    x = block_6(b, x, "6e", 192);
    x = block_7a(b, x);
    x = block_7(b, x, "7b", "Conv2d_0b_3x1");
    x = block_7(b, x, "7c", "Conv2d_0c_3x1");
    network_builder_cross_entropy(b, network_builder_global_average_pool(b, x));
    return OK;
}

const struct model model_inception_v3 = {
    .name = "inception_v3",
    .height = 299,
    .width = 299,
    .channels = 3,
    .classes = FEATURES,
    .transform = "symmetric",
    .statistics_decay = 0.9997,
    .build = inception_v3_build,
};
