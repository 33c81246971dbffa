/* top5: is the label among the five highest? Ties as TensorFlow's in_top_k. */
#include "evaluator/score/metrics/metric.h"

#include "evaluator/score/classification.h"
#include "model/task.h"

static size_t top5_cells(int classes)
{
    (void)classes;
    return 1;
}

static void top5_count(const struct metric_example *x, int64_t *cells)
{
    *cells += task_in_top(x->classes, x->logits, x->label, 5);
}

static int top5_add(const struct metric_evaluation *v, const int64_t *cells, struct evaluation_metrics *out,
                    struct error *e)
{
    return evaluation_metrics_add(out, "precision_top_5", classification_share(*cells, v->counts->examples), e);
}

const struct metric metric_top5 = { .cells = top5_cells, .count = top5_count, .add = top5_add };
