#include "evaluator/score/classification.h"

#include "model/task.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t cells(const struct classification *c)
{
    return (size_t)c->classes * (size_t)c->classes;
}

static size_t buckets(const struct classification *c)
{
    return (size_t)c->classes * (size_t)c->thresholds;
}

int classification_init(struct classification *c, int classes, int ties_are_correct, int thresholds, struct error *e)
{
    *c = (struct classification){ .classes = classes, .ties_are_correct = ties_are_correct, .thresholds = thresholds };
    if (classes < 1 || classes > CLASSIFICATION_CLASSES_MAX || thresholds < 0 || thresholds == 1 ||
        thresholds > CLASSIFICATION_CLASSES_MAX)
        return error_set(e, ERR_ARG, "%d classes with curves of %d thresholds cannot be counted", classes, thresholds);
    c->confusion = calloc(cells(c), sizeof *c->confusion);
    c->positives = calloc(buckets(c) + 1, sizeof *c->positives);
    c->negatives = calloc(buckets(c) + 1, sizeof *c->negatives);
    c->softmax = calloc((size_t)classes, sizeof *c->softmax);
    if (c->confusion && c->positives && c->negatives && c->softmax)
        return OK;
    classification_release(c);
    return error_memory(e, NULL, "for the counts of %d classes", classes);
}

void classification_release(struct classification *c)
{
    free(c->confusion);
    free(c->positives);
    free(c->negatives);
    free(c->softmax);
    memset(c, 0, sizeof *c);
}

void classification_clear(struct classification *c)
{
    c->examples = c->correct = c->correct_top = 0;
    memset(c->confusion, 0, cells(c) * sizeof *c->confusion);
    memset(c->positives, 0, buckets(c) * sizeof *c->positives);
    memset(c->negatives, 0, buckets(c) * sizeof *c->negatives);
}

double classification_add(struct classification *c, const float *logits, int32_t label)
{
    const double loss = task_cross_entropy(c->classes, logits, label, c->softmax);
    const int predicted = task_predicted(c->classes, logits);

    c->examples++;
    c->correct += c->ties_are_correct ? task_in_top(c->classes, logits, label, 1) : predicted == label;
    c->correct_top += task_in_top(c->classes, logits, label, CLASSIFICATION_TOP);
    c->confusion[(size_t)label * (size_t)c->classes + (size_t)predicted]++;
    for (int k = 0; c->thresholds && k < c->classes; k++) {
        const float p = (float)c->softmax[k]; /* NaN goes to the lowest bucket: predicted by threshold 0 alone */
        const size_t bucket = p > 0 ? (size_t)floorf(p * (float)(c->thresholds - 1)) : 0;

        (k == label ? c->positives : c->negatives)[(size_t)k * (size_t)c->thresholds + bucket]++;
    }
    return loss;
}

static void add(int64_t *into, const int64_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        into[i] += from[i];
}

void classification_merge(struct classification *into, const struct classification *from)
{
    into->examples += from->examples;
    into->correct += from->correct;
    into->correct_top += from->correct_top;
    add(into->confusion, from->confusion, cells(into));
    add(into->positives, from->positives, buckets(into));
    add(into->negatives, from->negatives, buckets(into));
}

static double share(int64_t part, int64_t whole)
{
    return whole ? (double)part / (double)whole : NAN;
}

double classification_top1(const struct classification *c)
{
    return share(c->correct, c->examples);
}

double classification_top(const struct classification *c)
{
    return share(c->correct_top, c->examples);
}

static int64_t row(const struct classification *c, int class)
{
    int64_t sum = 0;

    for (int k = 0; k < c->classes; k++)
        sum += c->confusion[(size_t)class * (size_t)c->classes + (size_t)k];
    return sum;
}

static int64_t column(const struct classification *c, int class)
{
    int64_t sum = 0;

    for (int k = 0; k < c->classes; k++)
        sum += c->confusion[(size_t)k * (size_t)c->classes + (size_t)class];
    return sum;
}

static int64_t hits(const struct classification *c, int class)
{
    return c->confusion[(size_t)class * (size_t)c->classes + (size_t)class];
}

double classification_precision(const struct classification *c, int class)
{
    return share(hits(c, class), column(c, class));
}

double classification_recall(const struct classification *c, int class)
{
    return share(hits(c, class), row(c, class));
}

static double mean(const struct classification *c, double (*of)(const struct classification *c, int class))
{
    double sum = 0;
    int64_t occurring = 0;

    for (int k = 0; k < c->classes; k++) {
        const double value = of(c, k);

        occurring += row(c, k) || column(c, k);
        sum += isnan(value) ? 0 : value;
    }
    return occurring ? sum / (double)occurring : NAN;
}

double classification_mean_precision(const struct classification *c)
{
    return mean(c, classification_precision);
}

double classification_mean_recall(const struct classification *c)
{
    return mean(c, classification_recall);
}

void classification_curve(const struct classification *c, int class, double *counts)
{
    const size_t n = (size_t)c->thresholds;
    const int64_t *positives = c->positives + (size_t)class * n, *negatives = c->negatives + (size_t)class * n;
    int64_t all_positives = 0, all_negatives = 0, true_positives = 0, false_positives = 0;

    for (size_t j = 0; j < n; j++) {
        all_positives += positives[j];
        all_negatives += negatives[j];
    }
    for (size_t j = n; j-- > 0;) {
        true_positives += positives[j];
        false_positives += negatives[j];
        counts[j] = (double)true_positives;
        counts[n + j] = (double)false_positives;
        counts[2 * n + j] = (double)(all_negatives - false_positives);
        counts[3 * n + j] = (double)(all_positives - true_positives);
    }
}
