#include "model/task.h"

#include <math.h>

double task_cross_entropy(int classes, const real *logits, int32_t label, double *softmax)
{
    double max = (double)logits[0], sum = 0;

    for (int c = 1; c < classes; c++)
        if ((double)logits[c] > max)
            max = (double)logits[c];
    for (int c = 0; c < classes; c++) {
        const double e = exp((double)logits[c] - max);

        sum += e;
        if (softmax)
            softmax[c] = e;
    }
    for (int c = 0; softmax && c < classes; c++)
        softmax[c] /= sum;
    return log(sum) - ((double)logits[label] - max);
}

int task_predicted(int classes, const real *logits)
{
    int top = 0;

    for (int c = 1; c < classes; c++)
        if (logits[c] > logits[top])
            top = c;
    return top;
}

int task_in_top(int classes, const real *logits, int32_t label, int k)
{
    int above = 0;

    for (int c = 0; c < classes; c++) {
        if (!isfinite(logits[c]))
            return 0;
        above += logits[c] > logits[label];
    }
    return above < k;
}

int task_correct(int classes, const real *logits, int32_t label, int ties_are_correct)
{
    return ties_are_correct ? task_in_top(classes, logits, label, 1) : task_predicted(classes, logits) == label;
}
