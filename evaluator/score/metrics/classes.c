/* classes: precision and recall of each class (left out if 0 of 0), and their means over the classes that occur. */
#include "evaluator/score/metrics/metric.h"

#include "evaluator/score/classification.h"

#include <math.h>
#include <stdio.h>

static int classes_add(const struct metric_evaluation *v, const int64_t *cells, struct evaluation_metrics *out,
                       struct error *e)
{
    static const char *const prefixes[] = { "class_precision/", "class_recall/" };
    const struct classification *c = v->counts;
    int rc;

    (void)cells;
    if ((rc = evaluation_metrics_add(out, "precision_mean", classification_mean_precision(c), e)) != OK ||
        (rc = evaluation_metrics_add(out, "recall_mean", classification_mean_recall(c), e)) != OK)
        return rc;
    for (int recall = 0; recall < 2; recall++)
        for (int k = 0; k < c->classes; k++) {
            const double value = recall ? classification_recall(c, k) : classification_precision(c, k);
            char name[EVALUATION_NAME_MAX];

            snprintf(name, sizeof name, "%s%s", prefixes[recall], v->names[k]);
            if (!isnan(value) && (rc = evaluation_metrics_add(out, name, value, e)) != OK)
                return rc;
        }
    return OK;
}

const struct metric metric_classes = { .of_classes = 1, .add = classes_add };
