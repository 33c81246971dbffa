#include "evaluator/score/classification.h"

#include "model/task.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int classification_init(struct classification *c, int classes, int ties_are_correct, unsigned metrics, struct error *e)
{
    size_t first[METRIC_COUNT];

    *c = (struct classification){ .classes = classes, .ties_are_correct = ties_are_correct, .metrics = metrics };
    if (classes < 1 || classes > CLASSIFICATION_CLASSES_MAX)
        return error_set(e, ERR_ARG, "cannot count %d classes", classes);
    c->cell_count = classes <= CLASSIFICATION_CONFUSION_MAX ? (size_t)classes * (size_t)classes : 0;
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        first[i] = c->cell_count;
        c->cell_count += metrics & 1u << i && metric_table[i]->cells ? metric_table[i]->cells(classes) : 0;
    }
    c->counts = calloc(c->cell_count + 1, sizeof *c->counts);
    c->softmax = calloc((size_t)classes, sizeof *c->softmax);
    if (!c->counts || !c->softmax) {
        classification_release(c);
        return error_memory(e, NULL, "for the counts of %d classes", classes);
    }
    c->confusion = classes <= CLASSIFICATION_CONFUSION_MAX ? c->counts : NULL;
    for (size_t i = 0; i < METRIC_COUNT; i++)
        c->cells[i] = metrics & 1u << i && metric_table[i]->cells ? c->counts + first[i] : NULL;
    return OK;
}

void classification_release(struct classification *c)
{
    free(c->counts);
    free(c->softmax);
    memset(c, 0, sizeof *c);
}

void classification_clear(struct classification *c)
{
    c->examples = c->correct = 0;
    memset(c->counts, 0, c->cell_count * sizeof *c->counts);
}

double classification_add(struct classification *c, const float *logits, int32_t label)
{
    const double loss = task_cross_entropy(c->classes, logits, label, c->softmax);
    const struct metric_example x = { c->classes, logits, c->softmax, label, task_predicted(c->classes, logits) };

    c->examples++;
    c->correct += c->ties_are_correct ? task_in_top(c->classes, logits, label, 1) : x.predicted == label;
    if (c->confusion)
        c->confusion[(size_t)label * (size_t)c->classes + (size_t)x.predicted]++;
    for (size_t i = 0; i < METRIC_COUNT; i++)
        if (c->cells[i])
            metric_table[i]->count(&x, c->cells[i]);
    return loss;
}

void classification_merge(struct classification *into, const struct classification *from)
{
    into->examples += from->examples;
    into->correct += from->correct;
    for (size_t i = 0; i < into->cell_count; i++)
        into->counts[i] += from->counts[i];
}

double classification_top1(const struct classification *c)
{
    return classification_share(c->correct, c->examples);
}

static int64_t row(const struct classification *c, int class)
{
    int64_t sum = 0;

    for (int k = 0; k < c->classes; k++)
        sum += c->confusion[(size_t) class * (size_t)c->classes + (size_t)k];
    return sum;
}

static int64_t column(const struct classification *c, int class)
{
    int64_t sum = 0;

    for (int k = 0; k < c->classes; k++)
        sum += c->confusion[(size_t)k * (size_t)c->classes + (size_t) class];
    return sum;
}

static int64_t hits(const struct classification *c, int class)
{
    return c->confusion[(size_t) class * (size_t)c->classes + (size_t) class];
}

double classification_precision(const struct classification *c, int class)
{
    return classification_share(hits(c, class), column(c, class));
}

double classification_recall(const struct classification *c, int class)
{
    return classification_share(hits(c, class), row(c, class));
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
