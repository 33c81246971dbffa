/* images_batch.h - batches of images and labels that a test made itself. */
#ifndef TESTS_MODEL_IMAGES_BATCH_H
#define TESTS_MODEL_IMAGES_BATCH_H

#include "model/model.h"
#include "model/real.h"

/* All of it borrowed. images: as model_input(). labels (count, of a sample) int32; samples as in struct batch. */
static inline struct batch images_batch(const struct model *m, const void *images, const int32_t *labels,
                                        const int64_t *samples, int count)
{
    struct batch b = { .count = count, .field_count = 2, .samples = samples };

    b.fields[FIELD_INPUT] = model_input(m, images, count);
    b.fields[FIELD_LABELS] = (struct field){ labels, ELEMENT_INT32, m->labels ? 2 : 1, { count, model_labels(m) } };
    return b;
}

static inline const struct batch *at_step(struct batch *b, int64_t step)
{
    b->step = step;
    return b;
}

#endif
