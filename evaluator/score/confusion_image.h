/*
 * confusion_image.h - a confusion matrix as a picture: a row of cells for each label, a column for each class that was
 * predicted; the darker a cell, the larger its share of its row. Up to CONFUSION_IMAGE_NAMED classes it has the count
 * in each cell, names beside the rows and their numbers above the columns; above that it is cells alone. Pure.
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

/* counts: (classes, classes), row the label, column what was predicted. names: (classes), NULL: numbers alone; they are
 * written in capitals, cut after 16 characters, and what is not a letter, a digit or one of - _ / . : is a box.
 * ERR_ARG: no classes, or too many; ERR_NOMEM. On OK confusion_image_release() it. */
int confusion_image_draw(struct confusion_image *out, const int64_t *counts, int classes, const char *const *names,
                         struct error *e);
void confusion_image_release(struct confusion_image *image);

#endif
