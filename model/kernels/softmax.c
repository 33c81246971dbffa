#include "model/kernels/softmax.h"

#include <math.h>

double softmax_cross_entropy(int classes, const real *logits, int32_t label, real *gradient)
{
    double max = (double)logits[0], sum = 0;

    for (int c = 1; c < classes; c++)
        if ((double)logits[c] > max)
            max = (double)logits[c];
    for (int c = 0; c < classes; c++)
        sum += exp((double)logits[c] - max);
    if (gradient)
        for (int c = 0; c < classes; c++)
            gradient[c] = (real)(exp((double)logits[c] - max) / sum - (c == label));
    return log(sum) - ((double)logits[label] - max);
}

int softmax_correct(int classes, const real *logits, int32_t label, int ties_are_correct)
{
    int top = 0;

    if (!ties_are_correct) {
        for (int c = 1; c < classes; c++)
            if (logits[c] > logits[top])
                top = c;
        return top == label;
    }
    for (int c = 0; c < classes; c++)
        if (!isfinite(logits[c]) || logits[c] > logits[label])
            return 0;
    return 1;
}
