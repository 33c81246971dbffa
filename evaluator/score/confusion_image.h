/*
 * confusion_image.h - draws a confusion matrix: one row per label, one column per predicted class; the darker a cell,
 * the larger its share of its row. With up to CONFUSION_IMAGE_NAMED classes, cells show their counts, rows their names,
 * and columns their numbers; with more there are only cells. Pure.
 */
#ifndef EVALUATOR_SCORE_CONFUSION_IMAGE_H
#define EVALUATOR_SCORE_CONFUSION_IMAGE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { CONFUSION_IMAGE_NAMED = 32, CONFUSION_IMAGE_CLASSES_MAX = 1024 };

struct confusion_image {
    size_t height, width;
    uint8_t *pixels; /* (height, width, 3): red, green, blue */
};

/* counts: (classes, classes), row: label, column: prediction. names: (classes), NULL: only numbers; they are drawn in
 * capitals, cut after 16 characters; characters other than letters, digits and - _ / . : become a box. ERR_ARG: no
 * classes, or too many; ERR_NOMEM. On OK confusion_image_release() it. */
int confusion_image_draw(struct confusion_image *out, const int64_t *counts, int classes, const char *const *names,
                         struct error *e);
void confusion_image_release(struct confusion_image *image);

#endif
