/* What is beside the words of a sample: the numbers that an encoder made of an image (FIELD_FEATURES). */
#include "model/network_internal.h"

#include "model/layers/layers.h"

#include <string.h>

static void image_features_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const size_t width = (size_t)l->out_shape.channels, first = (size_t)r->first_sample + (size_t)s->first;

    if (!r->features) {
        memset(s->out, 0, (size_t)s->count * width * sizeof *s->out);
        return;
    }
    for (size_t n = 0; n < (size_t)s->count; n++) {
        const float *from = field_at(r->features, first + n);

        for (size_t k = 0; k < width; k++)
            s->out[n * width + k] = (real)from[k];
    }
}

static const struct layer_kind layer_image_features = {
    .name = "image_features",
    .flags = LAYER_READS_INTEGERS | LAYER_MAKES_ROWS,
    .forward = image_features_forward,
};

int network_builder_image_features(struct network_builder *b, int in)
{
    const int width = b->model->features;
    struct layer *l;

    if (!b->error.code && width < 1)
        return network_builder_refuse(b, layer_image_features.name, "the model has no features beside its input");
    if (!(l = network_builder_layer(b, &layer_image_features, in, (struct shape){ 1, 1, width, width }, 0)))
        return VALUE_NONE;
    network_builder_note(b, "",
                         &(struct network_call){
                             .kind = &layer_call_image_features, .inputs = { in }, .input_count = 1, .out = l->out });
    return l->out;
}

static int build_image_features(struct network_builder *b, const int *in, int in_count, const char *name,
                                const struct argument *a)
{
    (void)in_count, (void)name, (void)a;
    return network_builder_image_features(b, in[0]);
}

const struct layer_call layer_call_image_features = {
    .name = "image_features",
    .help = "beside integer input: what an encoder made of the image that the words are about",
    .inputs_least = 1,
    .inputs_most = 1,
    .build = build_image_features,
};
