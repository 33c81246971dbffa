/*
 * metric_choice.h - which metrics the built-in runner measures beside precision, loss and cross entropy, as --metrics
 * names them. Pure.
 */
#ifndef EVALUATOR_SCORE_METRIC_CHOICE_H
#define EVALUATOR_SCORE_METRIC_CHOICE_H

enum metric_choice {
    METRIC_TOP = 1,        /* "top5": is the label among the five highest? */
    METRIC_CLASSES = 2,    /* "classes": precision and recall of each class, and their means */
    METRIC_CONFUSION = 4,  /* "confusion": the confusion matrix as picture and table */
    METRIC_CURVES = 8,     /* "curves": precision-recall curve of each class */
    METRIC_SPEED = 16,     /* "speed": examples per second, seconds per evaluation, lag behind the trainer */
    METRIC_SETTINGS = 32,  /* "hparams": settings of the training, for TensorBoard's HParams tab */
    METRIC_ALL = 63,
};

/* What --metrics accepts, which is one or more of these with commas between. */
#define METRIC_CHOICES "basic|all|top5|classes|confusion|curves|speed|hparams"

/* text: as above; NULL: "basic". */
unsigned metric_choice_bits(const char *text);

#endif
