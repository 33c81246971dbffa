/*
 * synthetic.c - made data that fit any model, of nothing but chance: images of uniform bytes, or words of which the
 * k-th is drawn about in proportion to 1/k, as in natural texts (Zipf's law). All that can be learned is how frequent
 * words are; they are for measuring speed where the real data are missing, or their reading is not to be measured.
 *
 * An image is made when it is wanted, from its index alone, so that all runs and ranks have the same ones.
 */
#include "base/random.h"
#include "dataset/dataset_kind.h"
#include "dataset/stream/streamed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 1, COLOURS = 3 };
enum draws { OF_INPUT, OF_LABELS };

static const size_t images[] = { [DATASET_TRAIN] = 50000, [DATASET_TEST] = 10000 };
static const size_t words[] = { [DATASET_TRAIN] = 1000000, [DATASET_TEST] = 100000 };

struct noise {
    enum dataset_split split;
    size_t bytes;
};

/* Each part of the data has draws of its own. */
static void begin(struct random *r, enum dataset_split split, enum draws what, uint64_t i)
{
    random_init(r, SEED, RANDOM_SYNTHETIC, 2 * (uint64_t)split + (uint64_t)what, i);
}

static int read_noise(const void *context, size_t i, void *out, struct error *e)
{
    const struct noise *n = context;
    struct random r;

    (void)e;
    begin(&r, n->split, OF_INPUT, i);
    for (size_t at = 0; at < n->bytes; at += sizeof(uint32_t)) {
        const uint32_t drawn = random_u32(&r);

        memcpy((char *)out + at, &drawn, n->bytes - at < sizeof drawn ? n->bytes - at : sizeof drawn);
    }
    return OK;
}

static int make_images(struct dataset_owned *o, enum dataset_split split, const struct dataset_reading *how,
                       struct error *e)
{
    static const struct sample_stream_format format = { read_noise, free };
    const size_t count = images[split];
    struct noise *n = malloc(sizeof *n);
    int32_t *labels = o->labels = malloc(count * sizeof *labels);
    struct random r;

    if (!n || !labels) {
        free(n);
        return error_memory(e, NULL, "for %zu labels", count);
    }
    o->d.height = how->height ? how->height : how->fit.height;
    o->d.width = how->width ? how->width : how->fit.width;
    o->d.channels = how->fit.channels ? how->fit.channels : COLOURS;
    *n = (struct noise){ split, dataset_bytes(&o->d) };
    begin(&r, split, OF_LABELS, 0);
    for (size_t i = 0; i < count; i++)
        labels[i] = (int32_t)random_below(&r, (uint64_t)o->d.classes);
    return streamed_take(o, &format, n, count, split, how, e);
}

static int make_words(struct dataset_owned *o, enum dataset_split split, const struct dataset_reading *how,
                      struct error *e)
{
    const size_t row = (size_t)how->fit.height * (size_t)how->fit.width, count = words[split] + row;
    const double range = log((double)o->d.classes + 1);
    int32_t *tokens = o->input = malloc(count * sizeof *tokens);
    struct random r;

    if (!tokens)
        return error_memory(e, NULL, "for %zu words", count);
    begin(&r, split, OF_INPUT, 0);
    for (size_t i = 0; i < count; i++) { /* P(word k) = log((k + 2) / (k + 1)) / log(classes + 1) */
        const int32_t k = (int32_t)exp(random_uniform(&r) * range) - 1;

        tokens[i] = k < o->d.classes ? k : o->d.classes - 1;
    }
    o->d.element = o->d.labels.element = ELEMENT_INT32;
    o->d.stride = 1;
    o->d.labels.data = tokens + row;
    o->d.count = words[split];
    o->d.height = o->d.channels = 1;
    o->d.width = (int)row;
    return OK;
}

static int make(struct dataset_owned *o, const struct dataset_kind *kind, const char *directory,
                enum dataset_split split, const struct shard *shard, const struct dataset_reading *how, struct error *e)
{
    (void)directory;
    if (shard->kind == SHARD_FILES)
        return error_set(e, ERR_ARG, "--shard files: %s data have no files; use records", o->d.name);
    if (!how->fit.classes)
        return error_set(e, ERR_ARG, "%s data: how many classes? %s", o->d.name, kind->how_to_get);
    if (!how->fit.height && !how->height)
        return error_set(e, ERR_ARG, "%s data: how large are images? %s, or give --image-size", o->d.name,
                         kind->how_to_get);
    o->d.classes = how->fit.classes;
    return how->fit.integers ? make_words(o, split, how, e) : make_images(o, split, how, e);
}

const struct dataset_kind dataset_kind_synthetic = {
    .made = 1,
    .how_to_get = "they are made to fit the model; say 'input HxWxC' and 'classes N' in the model file",
    .read = make,
};
