/*
 * captions.c - images with captions as a data set (caption_set.h says which files): a sample is a caption, and beside
 * its words are the features of its image. As in im2txt, the input is <S> and the words, the labels the words and </S>;
 * what is behind the end of a sentence is -1, both as input and as label, and counts nothing. Sentences that are too
 * long for the model lose their end.
 */
#include "dataset/dataset_kind.h"

#include "dataset/captions/caption_set.h"

#include <stdlib.h>

static struct caption_set *set_of(const struct dataset *d)
{
    return (struct caption_set *)(uintptr_t)d->captions;
}

static int read_features(const struct dataset *d, size_t i, float *out, struct error *e)
{
    const struct caption_set *s = set_of(d);
    const size_t width = feature_table_width(s->features), row = s->rows[s->file.captions[d->first + i].image];

    for (size_t k = width; k < (size_t)d->features; k++)
        out[k] = 0;
    return feature_table_read(s->features, row, out, e);
}

/* Input and labels of `length` numbers each. */
static int lay_out(struct dataset_owned *o, int length, struct error *e)
{
    const struct caption_set *s = set_of(&o->d);
    const size_t count = s->file.count, steps = (size_t)length;
    int32_t *input, *labels;

    free(o->input);
    free(o->labels);
    o->input = input = malloc(count * steps * sizeof *input);
    o->labels = labels = malloc(count * steps * sizeof *labels);
    if (!input || !labels)
        return error_memory(e, o->d.name, "for %zu captions of %d words", count, length);
    for (size_t i = 0; i < count; i++, input += steps, labels += steps) {
        const int32_t *words = s->tokens + s->starts[i];
        const size_t n = s->starts[i + 1] - s->starts[i];

        for (size_t t = 0; t < steps; t++) {
            input[t] = t == 0 ? s->words.start : t <= n ? words[t - 1] : -1;
            labels[t] = t < n ? words[t] : t == n ? s->words.end : -1;
        }
    }
    o->d.input = o->input;
    o->d.labels.data = o->labels;
    return OK;
}

static void release(struct dataset_owned *o)
{
    caption_set_free(set_of(&o->d));
}

static int read_captions(struct dataset_owned *o, const struct dataset_kind *kind, const char *directory,
                         enum dataset_split split, const struct shard *shard, const struct dataset_reading *how,
                         struct error *e)
{
    struct caption_set *s;
    int rc;

    (void)kind, (void)shard, (void)how;
    if ((rc = caption_set_open(&s, directory, split, 0, e)) < 0)
        return rc;
    o->d.captions = s;
    o->release = release;
    o->lay_out = lay_out;
    if (s->file.count > INT32_MAX || s->longest + 1 > UINT16_MAX)
        return error_set(e, ERR_CORRUPT, "%s: %zu captions of up to %zu words are too many", s->paths.annotations,
                         s->file.count, s->longest);
    dataset_owned_add_file(o, s->paths.annotations);
    o->d.element = o->d.labels.element = ELEMENT_INT32;
    o->d.count = s->file.count;
    o->d.classes = s->words.count;
    o->names = NULL;
    o->d.class_names = s->words.words;
    o->d.padded = 1;
    o->d.vocabulary = s->words.hash;
    o->d.height = (int)s->longest + 1;
    o->d.width = o->d.channels = 1;
    o->d.features = s->features ? (int)feature_table_width(s->features) : 0;
    o->d.read_features = read_features;
    return lay_out(o, o->d.height, e);
}

const struct dataset_kind dataset_kind_captions = {
    .how_to_get = "it needs images and captions as COCO's, from https://cocodataset.org/#download; or make some: "
                  "demo/make_captions.py",
    .files = { 1, 1 },
    .read = read_captions,
};
