/*
 * metric_choice.h - which metrics the built-in runner measures beside precision, loss and cross entropy, as --metrics
 * names them. Pure.
 */
#ifndef EVALUATOR_METRIC_CHOICE_H
#define EVALUATOR_METRIC_CHOICE_H

#include "base/error.h"

enum metric_choice {
    METRIC_TOP = 1,        /* "top5": is the label among the five highest? */
    METRIC_CLASSES = 2,    /* "classes": precision and recall of each class, and their means */
    METRIC_CONFUSION = 4,  /* "confusion": the confusion matrix as picture and table */
    METRIC_CURVES = 8,     /* "curves": precision-recall curve of each class */
    METRIC_SPEED = 16,     /* "speed": examples a second, seconds an evaluation, lag behind the trainer */
    METRIC_SETTINGS = 32,  /* "hparams": settings of the training, for TensorBoard's HParams tab */
    METRIC_ALL = 63,
};

/* The --help of it: "basic", "all" or names with commas between. */
#define METRIC_CHOICE_NAMES "top5, classes, confusion, curves, speed, hparams"

/* text: "basic", "all", or names as above with commas between; NULL: "basic". ERR_ARG: a name is unknown. */
int metric_choice_parse(const char *text, unsigned *out, struct error *e);

#endif
