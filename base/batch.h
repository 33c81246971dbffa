/*
 * batch.h - batches and scores: all that data sets, models and strategies need to know of each other's data. Nothing
 * here owns memory.
 */
#ifndef BASE_BATCH_H
#define BASE_BATCH_H

#include <stddef.h>
#include <stdint.h>

enum element { ELEMENT_FLOAT32, ELEMENT_FLOAT64, ELEMENT_UINT8, ELEMENT_INT32, ELEMENT_INT64 };
enum { FIELD_RANK_MAX = 5, BATCH_FIELDS_MAX = 4 };

/* An array in row-major order, whose first dimension counts samples. */
struct field {
    const void *data;
    enum element element;
    int rank;                      /* 1 to FIELD_RANK_MAX */
    int32_t shape[FIELD_RANK_MAX]; /* [0, rank) */
};

/* What a sample consists of, by index among the fields. A batch may end before the weights: then all are 1; and before
 * the features, which only some models read. */
enum {
    FIELD_INPUT,    /* the model's input: for images (count, height, width, channels) floats */
    FIELD_LABELS,   /* (count) integers, or (count, labels of a sample) */
    FIELD_WEIGHTS,  /* as labels: float32 weights of their losses; 0: padding */
    FIELD_FEATURES, /* (count, width) float32: what an encoder made of the image that the input is about */
};

/* The samples of one step. */
struct batch {
    int64_t step; /* of the batch, counted from 0 */
    int count;    /* samples: the first dimension of each field */
    int field_count;
    const int64_t *samples; /* (count) indices in the endless order of all workers, from which random numbers are
                               drawn; NULL: 0, 1, 2, ... */
    struct field fields[BATCH_FIELDS_MAX];
};

/* Sums over the scored units. */
struct score {
    double loss;   /* weighted */
    double weight; /* of all units: their number, unless each has its own weight */
    int64_t hits;  /* correct units */
    int64_t units; /* what can be correct: images, words; not those of weight 0 */
};

static inline size_t element_size(enum element element)
{
    static const size_t sizes[] = {
        [ELEMENT_UINT8] = 1, [ELEMENT_INT32] = 4, [ELEMENT_INT64] = 8, [ELEMENT_FLOAT32] = 4, [ELEMENT_FLOAT64] = 8
    };

    return sizes[element];
}

/* The first element of sample i. */
static inline const void *field_at(const struct field *f, size_t i)
{
    size_t bytes = element_size(f->element);

    for (int d = 1; d < f->rank; d++)
        bytes *= (size_t)f->shape[d];
    return (const char *)f->data + i * bytes;
}

/* Element i of all samples, an integer of any width. */
static inline int64_t field_integer(const struct field *f, size_t i)
{
    return f->element == ELEMENT_UINT8   ? ((const uint8_t *)f->data)[i]
           : f->element == ELEMENT_INT64 ? ((const int64_t *)f->data)[i]
                                         : ((const int32_t *)f->data)[i];
}

/* Samples [first, first + count) of b; b->samples must be given. */
static inline struct batch batch_part(const struct batch *b, int first, int count)
{
    struct batch part = *b;

    part.count = count;
    part.samples = b->samples + first;
    for (int i = 0; i < b->field_count; i++) {
        part.fields[i].data = field_at(&b->fields[i], (size_t)first);
        part.fields[i].shape[0] = count;
    }
    return part;
}

static inline void score_add(struct score *s, const struct score *part)
{
    s->loss += part->loss;
    s->weight += part->weight;
    s->hits += part->hits;
    s->units += part->units;
}

/* 0 if nothing was scored, as below. */
static inline double score_loss(const struct score *s)
{
    return s->weight > 0 ? s->loss / s->weight : 0;
}

static inline double score_precision(const struct score *s)
{
    return s->units > 0 ? (double)s->hits / (double)s->units : 0;
}

#endif
